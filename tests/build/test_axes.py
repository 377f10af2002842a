"""Every posterior with every prior, on vectors, pixels and sentences: it trains and is measured, or a sentence refuses it."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from elboroom.build.axes import POSTERIORS, PRIORS
from elboroom.core.kl import has_density
from elboroom.core.method import adam
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.evaluate import likelihood
from elboroom.evaluate.split import Split
from elboroom.training import session
from elboroom.training.batches import Batches
from elboroom.training.loop import Loop
from elboroom.training.session import Own
from elboroom.training.spec import specify

SMALL: dict[str, dict[str, Any]] = {
    "vectors": {"net": "mlp-300"},
    "pixels": {"net": "mlp-300", "pseudo_inputs": 20},
    "tokens": {"embed": 5, "hidden": 6},
}
OF_PIXELS = ("anisotropic", "student")  # which are read off the spectrum of the data


@pytest.fixture
def data(request: pytest.FixtureRequest, kind: str) -> DataSet:
    found: DataSet = request.getfixturevalue("sentences" if kind == "tokens" else kind)
    return found.hold_out(found.holdout or 0.1)


def legal(posterior: str, prior: str, kind: str) -> bool:
    """Whether the two live in one place and have a rate."""
    if posterior in ("point", "implicit", "wrapped-implicit") or (kind == "tokens" and prior in OF_PIXELS):
        return False
    if prior == "vamp":
        return posterior not in ("iaf", "nsf")
    return PRIORS[prior].space is POSTERIORS[posterior].space


@pytest.mark.parametrize("kind", SMALL)
@pytest.mark.parametrize("posterior", POSTERIORS)
def test_every_prior_beside_every_posterior(posterior: str, kind: str, data: DataSet) -> None:
    for prior in PRIORS:
        options = {"latent": 4, "posterior": posterior, "prior": prior, "batch_size": 8, "steps": 4, **SMALL[kind]}
        spec = specify("vae", data, "array", None, options)
        if not legal(posterior, prior, kind):
            with pytest.raises(Problem):
                session.build(spec, Own(data), data)
            continue
        method = session.build(spec, Own(data), data)
        method.prepare(adam(1e-3))
        loop = Loop(method, Batches(data, "train", 8, 0, (), torch.device("cpu")), 0)
        logged = [loop.step(step) for step in range(2)]
        assert all(torch.isfinite(torch.as_tensor(value)) for line in logged for value in line.values()), prior
        split = Split.of(method.model.eval(), data, "test", (), 6)
        found = likelihood.evaluate(split, samples=3)
        assert found["log_likelihood"].value is not None, prior
        assert found["log_likelihood"].value >= found["log_likelihood"].parts["elbo_of_these_rows"] - 1e-9
        assert found["rate"].value is not None


def test_the_chain_is_a_prior_like_any_other(vectors: DataSet) -> None:
    """--prior ar1 is the prior of delta-vae-ar1."""
    common = {"latent": 6, "net": "mlp-300", "batch_size": 8, "steps": 4}
    chain = {**common, "ar1_alpha": 0.7, "ar1_channels": 2}
    one = specify("vae", vectors, "array", None, {**chain, "prior": "ar1"})
    two = specify("delta-vae-ar1", vectors, "array", None, chain)
    z = torch.randn(5, 6)
    laws = [session.build(spec, Own(vectors)).model.prior(None) for spec in (one, two)]
    assert torch.equal(laws[0].log_prob(z), laws[1].log_prob(z))


@pytest.mark.parametrize("posterior", ["vmf", "wrapped"])
def test_pseudo_inputs_lie_where_the_posterior_does(posterior: str, vectors: DataSet) -> None:
    options = {"latent": 3, "net": "mlp-300", "posterior": posterior, "prior": "vamp", "pseudo_inputs": 4, "steps": 4}
    model = session.build(
        specify("vae", vectors, "array", None, {**options, "batch_size": 8}), Own(vectors), vectors
    ).model
    p = model.prior(None)
    assert has_density(type(p))
    z = p.sample((50,))
    size = z.norm(dim=-1)
    assert torch.allclose(size, torch.ones_like(size), atol=1e-5) if posterior == "vmf" else (size < 1).all()
    law = model.posterior.law(p.pseudo.read(model.posterior.net, torch.arange(4)))
    each = law.log_prob(z.unsqueeze(-2))
    torch.testing.assert_close(p.log_prob(z), each.logsumexp(1) - math.log(4), rtol=1e-5, atol=1e-5)


def test_a_generator_is_said_once(vectors: DataSet) -> None:
    for name, posterior in (("implicit-vae", "implicit-linear"), ("apo-vae", "wrapped-implicit")):
        spec = specify(name, vectors, "array", None, {"latent": 3, "posterior": posterior, "batch_size": 8})
        with pytest.raises(Problem, match=r"--generator (linear|mlp), not --posterior"):
            session.build(spec, Own(vectors))
