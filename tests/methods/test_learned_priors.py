"""Priors and posteriors beyond the Gaussian as free choices: what goes together, what is refused, what a run keeps."""

from __future__ import annotations

import math
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from contract import FIT, newest

from elboroom.build.parts import Choices, Parts
from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.families.flow import SplinePosterior
from elboroom.families.flow_prior import FlowPrior
from elboroom.families.mixture import GaussianVampPrior, MixturePrior
from elboroom.families.sphere import PowerSpherical, SpherePrior, SphericalPosterior, VonMisesFisher
from elboroom.methods import card
from elboroom.runs.lifecycle import load, train
from elboroom.terms.evidence import log_weights

SMALL: dict[str, Any] = {**FIT, "net": "mlp-300", "pseudo_inputs": 20}


def built(data: DataSet, name: str, **choices: Any) -> Any:
    return card(name).build(Parts(data.about, Choices(**{"latent": 3, "net": "mlp-300", **choices})), {}).model


def test_each_name_makes_what_it_says(pixels: DataSet) -> None:
    for name, choices, posterior, prior in (
        ("vae", {"posterior": "vmf"}, SphericalPosterior, SpherePrior),
        ("vae-annealed", {"posterior": "power-spherical", "prior": "sphere"}, SphericalPosterior, SpherePrior),
        ("vae", {"posterior": "nsf", "prior": "flow"}, SplinePosterior, FlowPrior),
        ("iwae", {"prior": "mog"}, None, MixturePrior),
        ("control-vae", {"prior": "vamp"}, None, GaussianVampPrior),
    ):
        model = built(pixels, name, **choices)
        assert posterior is None or isinstance(model.posterior, posterior)
        assert isinstance(model.prior, prior)
    assert built(pixels, "vmf-vae", kappa=7.0).posterior.kappa == 7.0
    assert built(pixels, "vmf-vae").posterior.family is VonMisesFisher
    assert built(pixels, "vmf-vae", posterior="power-spherical").posterior.family is PowerSpherical
    assert not built(pixels, "vmf-vae").posterior.learned
    assert built(pixels, "vmf-vae", kappa_learned=True).posterior(Batch(pixels.x([0]))).kappa.shape == (1,)
    assert built(pixels, "mog-vae", components=17).prior.loc.shape == (17, 3)
    assert len(built(pixels, "vamp-vae", pseudo_inputs=13).prior.pseudo) == 13
    assert len(built(pixels, "flow-prior", flow_layers=2).prior.flow.transforms) == 2


@pytest.mark.parametrize(
    ("name", "choices", "sentence"),
    [
        ("vae", {"posterior": "vmf", "prior": "normal"}, "--posterior vmf and --prior normal are on different spaces"),
        ("vae", {"posterior": "vmf", "prior": "mog"}, "use --prior sphere"),
        ("vae", {"prior": "sphere"}, "--posterior gaussian and --prior sphere are on different spaces"),
        ("vmf-vae", {"posterior": "gaussian"}, "are on different spaces"),
        ("mog-vae", {"posterior": "vmf"}, "are on different spaces"),
        ("svi", {"prior": "sphere"}, "--prior sphere needs a posterior on the same space"),
        ("vae", {"posterior": "iaf", "prior": "vamp"}, "--prior vamp .* use --posterior gaussian"),
        ("svi", {"prior": "vamp"}, "--prior vamp .* use --posterior gaussian"),
        ("aae", {"prior": "flow"}, "--prior flow is learned, which needs the full KL in the loss"),
        ("bn-vae", {"prior": "mog"}, "--prior mog is learned, which needs the full KL in the loss"),
        (
            "bn-vae",
            {"prior": "student", "variances_learned": True},
            "--prior student is learned, which needs the full KL",
        ),
        ("ae", {"prior": "mog"}, "this method has no prior"),
        ("ae", {"prior": "normal"}, "this method has no prior"),
        ("ae", {"posterior": "wrapped"}, "this method has no prior, which --posterior wrapped needs"),
        ("beta-tcvae", {"prior": "clustered"}, "a prior with independent dimensions"),
        ("beta-tcvae", {"prior": "ar1"}, "a prior with independent dimensions"),
        ("free-bits", {"prior": "mog"}, "free-bits with --unit total"),
        ("beta-tcvae", {"posterior": "vmf"}, "use --posterior gaussian"),
        ("dip-vae-i", {"posterior": "vmf"}, "use --posterior gaussian"),
        ("wae-s", {"posterior": "power-spherical"}, "use --posterior gaussian"),
        ("vmf-vae", {"latent": 1}, "use --latent 2 or more"),
        ("flow-prior", {"latent": 1}, "use --latent 2 or more"),
    ],
)
def test_what_does_not_go_together_is_refused(
    pixels: DataSet, name: str, choices: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(Problem, match=sentence):
        built(pixels, name, **choices)


@pytest.mark.parametrize("samples", [1, 4])
def test_both_bounds_of_the_flow_prior_are_of_as_many_samples_as_asked_for(pixels: DataSet, samples: int) -> None:
    parts = Parts(pixels.about, Choices(latent=3, net="mlp-300"))
    method = card("flow-prior").build(parts, {"samples": samples})
    draw = method.draw(method.players[0], Batch(pixels.x([0, 1, 2])))
    log_w = log_weights(draw)
    assert log_w.shape == (samples, 3)
    by_hand = math.log(samples) - torch.logsumexp(log_w, 0) - log_w.mean(0)
    torch.testing.assert_close(method.players[0].objective(draw).total, by_hand.mean())


def test_a_run_on_the_sphere_stays_on_it(pixels: DataSet, tmp_path: Path) -> None:
    """Codes and draws of the prior are points of the sphere, the rate is that of --kappa in the log and after."""
    run = train("vmf-vae", pixels, tmp_path / "run", **{**FIT, "net": "mlp-300", "kappa": 12.0})
    codes = run.encode(run.examples(20))
    np.testing.assert_allclose(np.linalg.norm(codes, axis=1), 1.0, rtol=1e-5)
    seen: list[Any] = []
    run._decoded = lambda z, u, decoding: seen.append(z.numpy())  # type: ignore[func-returns-value, method-assign]
    run.sample(400)
    np.testing.assert_allclose(np.linalg.norm(seen[0], axis=1), 1.0, rtol=1e-5)
    assert abs(seen[0].mean(0)).max() < 5 * 0.58 / 20
    rate = 12 / np.tanh(12) - 1 + np.log(12 / np.sinh(12))  # in three dimensions
    assert [line["kl"] for line in run.log] == pytest.approx([rate] * len(run.log), rel=1e-6)
    found = run.evaluate(samples=5)
    assert found["rate"]["value"] == pytest.approx(rate, rel=1e-6)
    assert found["log_likelihood"]["value"] >= found["elbo"]["value"] - 1


def test_a_run_keeps_a_shared_encoder_once_and_its_pseudo_inputs_where_they_were(
    pixels: DataSet, tmp_path: Path
) -> None:
    run = train("vamp-vae", pixels, tmp_path / "run", **{**SMALL, "lr": 1e-6})
    state = newest(run.folder).state
    assert [key for key in state if key.startswith("model.prior.")] == ["model.prior.pseudo.x"]
    x = torch.sigmoid(run.model.prior.pseudo.x).flatten(1)
    train_rows = run.data.x(run.data.splits["train"]).flatten(1)
    assert torch.cdist(x, train_rows).amin(1).max() < 0.3, "they started at training examples"
    again = load(run.folder, data=pixels)
    assert torch.equal(again.model.prior.pseudo.x, run.model.prior.pseudo.x)
    assert again.model.prior.posterior.module is again.model.posterior
    assert np.array_equal(again.sample(3), run.sample(3))
    read: list[Any] = []
    again.model.posterior.net.register_forward_pre_hook(lambda *_: read.append(1))
    assert again.latent == again.encode(again.examples(2)).shape[1]
    assert len(read) == 1, "to know its dimensions a run reads no pseudo-inputs"


def test_a_prior_that_shares_the_encoder_is_moved_with_it(pixels: DataSet) -> None:
    """In other precision, in evaluation and in a copy, the encoder of the prior is that of the posterior."""
    model = deepcopy(built(pixels, "vamp-vae", pseudo_inputs=5).double().eval())
    assert model.prior.posterior.module is model.posterior
    assert not model.prior.posterior.module.training
    draw = Draw(model, Batch(pixels.x([0, 1, 2]).double()))
    assert draw.p.loc.dtype == torch.float64
    assert torch.isfinite(draw.rate).all()
