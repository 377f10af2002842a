"""The likelihood of posteriors without a density, against models in which it is known, and what stands beside it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from contract import newest
from quadrature import disc
from torch import Tensor, nn

from elboroom.core.batch import Batch
from elboroom.core.model import LatentModel
from elboroom.data import arrays
from elboroom.data.dataset import DataSet
from elboroom.evaluate import likelihood
from elboroom.evaluate.likelihood import proposal
from elboroom.evaluate.result import Result
from elboroom.evaluate.split import Split
from elboroom.families import ball as balls
from elboroom.families import fitted
from elboroom.families.ball import Wrapped, WrappedImplicit, WrappedPrior
from elboroom.families.implicit import Implicit, SharedGaussian
from elboroom.families.pixels import GaussianLikelihood
from elboroom.geometry.ball import Ball
from elboroom.nets.gyroplane import Gyroplanes
from elboroom.runs.lifecycle import train

K = 5000


class Bent(nn.Module):
    """z = mu + sigma (e + 0.15 (e_1^2 - 1)): no Gaussian, and without a density."""

    def __init__(self, scale: Tensor) -> None:
        super().__init__()
        self.scale = nn.Parameter(scale)

    def forward(self, both: Tensor) -> Tensor:
        mean, e = both.chunk(2, -1)
        return mean + self.scale * (e + 0.15 * (e[..., :1].square() - 1))


class Sampler(nn.Module):
    """q(z|x), the exact mean with bent noise around it."""

    family = Implicit

    def __init__(self, known: Any) -> None:
        super().__init__()
        self.exact = known.model.posterior
        self.generator = Bent(self.exact(Batch(known.x[:1])).stddev[0].detach())

    def forward(self, batch: Batch) -> Implicit:
        mean = self.exact(Batch(batch.x.double())).mean
        return Implicit(mean, self.generator, mean.shape[-1], mean.shape[-1])


def sampled(known: Any, n: int) -> Split:
    """The first n rows of a linear Gaussian model whose posterior is only sampled; the others are for tuning."""
    model = LatentModel(Sampler(known), known.model.prior, known.model.likelihood)
    data = arrays.dataset(known.x.numpy().astype(np.float32))
    data.splits.update(test=np.arange(n), valid=np.arange(n, 200))
    return Split(model, data, "test", np.arange(n))


@pytest.mark.parametrize("kind", ["gaussian", "flow"])
def test_a_fitted_proposal_finds_the_likelihood(ppca: Any, kind: proposal.Kind) -> None:
    """IW-5,000 within 4 standard errors of log N(x; b, W W' + s^2 I)."""
    known, n = ppca(), 12
    found = proposal.fitted(sampled(known, n), K, kind)
    truth = known.log_p(known.x[:n]).mean().item()
    assert found.value is not None
    assert found.estimator == f"iw-5000, fitted {kind} + prior"
    assert found.settings["K"] == K
    assert abs(found.value - truth) < 4 * found.errors["importance_noise"]
    assert found.errors["importance_noise"] < 0.02
    assert 0.1 * K < found.parts["effective_samples"] < K


def test_it_is_a_bound_that_tightens(ppca: Any) -> None:
    known = ppca()
    split, truth = sampled(known, 100), known.log_p(known.x[:100]).mean().item()
    values = [proposal.fitted(split, k).value for k in (1, 10, 300)]
    assert values[0] < values[1] < values[2] < truth + 0.02  # type: ignore[operator]


@pytest.mark.parametrize("kind", ["gaussian", "flow"])
def test_a_posterior_that_has_shrunk_to_a_point_does_not_ruin_the_bound(ppca: Any, kind: proposal.Kind) -> None:
    """Draws of the prior are a tenth: by r alone the bound would be some 100 nats below."""
    known = ppca()
    split = sampled(known, 12)
    truth = known.log_p(known.x[:12]).mean().item()
    sampler: Any = split.model.posterior
    with torch.no_grad():
        sampler.generator.scale.mul_(1e-6)
    found = proposal.fitted(split, K, kind)
    assert found.value is not None
    assert truth - 1 < found.value < truth + 4 * found.errors["importance_noise"]


@pytest.mark.parametrize("kind", ["gaussian", "flow"])
def test_a_proposal_is_a_density_wider_than_what_it_was_fitted_to(ppca: Any, kind: str) -> None:
    split = sampled(ppca(), 3)
    fit = fitted.gaussian if kind == "gaussian" else proposal.flow(split.tuning, steps=60)  # type: ignore[arg-type]
    with torch.no_grad():
        q = split.model.posterior(next(split.batches()))
        r = fitted.around(q, fit)
        z = q.sample((4000,))
        other = r.rsample((4000,))
        ratio = other.std(0) / z.std(0)
        assert ((ratio > 1.05) & (ratio < 1.4)).all()
        step, axis = 12 / 150, torch.linspace(-6, 6, 151).double()
        grid = torch.cartesian_prod(axis, axis).unsqueeze(1) * z.std() + z.mean((0, 1))
        mass = r.log_prob(grid.expand(-1, 3, -1)).exp().sum(0) * (step * z.std()) ** 2
    torch.testing.assert_close(mass, torch.ones(3).double(), atol=0.02, rtol=0)


# -- on the ball -------------------------------------------------------------------------------------------------------


class Turned(nn.Module):
    """v = e turned and bent, the same for every x."""

    def forward(self, both: Tensor) -> Tensor:
        e = both[..., 1:]
        return 0.8 * torch.stack([e[..., 0] + 0.5 * e[..., 1], e[..., 1] - 0.3 * e[..., 0].square() + 0.3], -1)


class OnBall(nn.Module):
    """q(z|x) around exp_0 of part of the first two coordinates of x: a wrapped normal, one by a linear map, or a sampler."""

    def __init__(self, ball: Ball, kind: str) -> None:
        super().__init__()
        self.ball, self.generator, self.kind = ball, Turned(), kind
        self.family = WrappedImplicit if kind == "sampler" else Wrapped

    def forward(self, batch: Batch) -> Wrapped:
        loc = self.ball.exp0(0.3 * batch.x[:, :2].double())
        if self.kind == "normal":
            return balls.normal(self.ball, loc, torch.full_like(loc, -1.0))
        if self.kind == "linear":
            root = torch.tensor([[0.6, 0.2, 0.0], [-0.1, 0.4, 0.5]]).double()
            return Wrapped(self.ball, loc, SharedGaussian(torch.zeros_like(loc), root))
        return WrappedImplicit(self.ball, loc, Implicit(torch.zeros(len(loc), 1).double(), self.generator, 2, 2))


def on_ball(c: float, kind: str, n: int = 6) -> tuple[Split, float]:
    """Rows of a model on the disc, and their mean log-likelihood by quadrature."""
    ball = Ball(c)
    net = nn.Linear(2, 4).double()

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = net

        def forward(self, z: Tensor, u: Tensor | None = None) -> Tensor:
            out: Tensor = self.linear(z.double())
            return out

    model = LatentModel(
        OnBall(ball, kind),
        WrappedPrior(2, ball),
        Gyroplanes(GaussianLikelihood(Decoder(), 1, 0.7), 2, ball).double(),
    )
    x = torch.randn(n, 4).double()
    split = Split(model, arrays.dataset(x.numpy().astype(np.float32)), "train", np.arange(n))
    grid, volume = disc(c, 24.0, 300)
    batch = Batch(x.float().double())
    with torch.no_grad():
        log_x = model.likelihood(grid.unsqueeze(1).expand(-1, n, -1), batch).log_prob(batch.x)  # (G, n)
        log_p = model.prior(batch).log_prob(grid).unsqueeze(1) + volume.log().unsqueeze(1)
    return split, torch.logsumexp(log_x + log_p, 0).mean().item()


@pytest.mark.parametrize("c", [0.5, 1.0])
@pytest.mark.parametrize("kind", ["normal", "linear", "sampler"])
def test_the_likelihood_of_a_model_on_the_ball_is_that_of_quadrature(c: float, kind: str) -> None:
    """Of a wrapped normal by its own density, of a sampler by a wrapped normal fitted to it."""
    split, truth = on_ball(c, kind)
    found = likelihood.log_likelihood(split, K)
    assert found.estimator == ("iw-5000, fitted wrapped normal + prior" if kind == "sampler" else "iw-5000")
    assert found.value is not None
    assert abs(found.value - truth) < 4 * found.errors["importance_noise"]
    assert found.errors["importance_noise"] < 0.05


def test_a_flow_is_wrapped_too() -> None:
    split, truth = on_ball(1.0, "sampler")
    found = proposal.fitted(split, K, "flow")
    assert found.estimator == "iw-5000, fitted wrapped flow + prior"
    assert found.value is not None
    assert abs(found.value - truth) < 4 * found.errors["importance_noise"]
    assert found.errors["importance_noise"] < 0.01
    assert found.parts["effective_samples"] > 0.3 * K


# -- what is printed ---------------------------------------------------------------------------------------------------

TINY: dict[str, Any] = {"steps": 2, "batch_size": 8, "latent": 3, "net": "mlp-300", "threads": 1}


def measured(name: str, data: DataSet, folder: Path, **more: Any) -> dict[str, Result]:
    run = train(name, data, folder / "run", **TINY, **more)
    return likelihood.evaluate(run.split("test", 20), samples=3)


@pytest.mark.parametrize("name", ["avb", "apo-vae"])
def test_a_sampler_has_a_likelihood_and_no_elbo(pixels: DataSet, tmp_path: Path, name: str) -> None:
    found = measured(name, pixels, tmp_path)
    assert found["log_likelihood"].value is not None
    assert found["log_likelihood"].estimator.startswith("iw-3, fitted ")
    assert found["log_likelihood"].parts["effective_samples"] >= 1
    assert found["elbo"].value is None
    assert "log_likelihood_posthoc" not in found


def test_a_deterministic_encoder_keeps_its_post_hoc_row(pixels: DataSet, tmp_path: Path) -> None:
    found = measured("ae", pixels, tmp_path)
    assert found["log_likelihood"].value is None
    assert found["log_likelihood_posthoc"].value is not None


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("implicit-vae", {"rate_dual", "elbo_dual"}),
        ("implicit-vae-mi", {"aggregate_rate_dual"}),
        ("apo-vae", {"rate_dual", "elbo_dual"}),
        ("vae", set()),
    ],
)
def test_what_a_critic_says_has_rows_of_its_own(pixels: DataSet, tmp_path: Path, name: str, rows: set[str]) -> None:
    found = measured(name, pixels, tmp_path)
    for row, number in found.items():
        assert (number.estimator == "dual") == (row in rows)
        assert number.value is None or ("not a bound" in str(number)) == (row in rows)
        assert "dual" not in row or row in rows
    if "elbo_dual" in rows:
        total = -(found["distortion"].value + found["rate_dual"].value)  # type: ignore[operator]
        assert found["elbo_dual"].value == pytest.approx(total, abs=1.0)


def test_a_linear_generator_has_its_exact_rate_beside_the_dual_one(pixels: DataSet, tmp_path: Path) -> None:
    found = measured("implicit-vae", pixels, tmp_path, generator="linear")
    for row in ("rate", "elbo", "log_likelihood", "rate_dual", "elbo_dual"):
        assert found[row].value is not None, row
    assert found["log_likelihood"].estimator == "iw-3"


def test_a_loaded_run_has_the_critic_that_it_was_trained_against(pixels: DataSet, tmp_path: Path) -> None:
    run = train("implicit-vae", pixels, tmp_path / "run", **TINY)
    kept = newest(run.folder).state
    state = {key: value for key, value in run.model.state_dict().items() if key.startswith("critic.head.")}
    assert len(state) == 8
    for key, value in state.items():
        assert torch.equal(value, kept[f"model.{key}"])


def test_a_prior_without_a_density_has_no_likelihood(pixels: DataSet, tmp_path: Path) -> None:
    found = measured("apo-vae-vamp", pixels, tmp_path, generator="mlp", pseudo_inputs=5)
    assert found["log_likelihood"].value is None
    assert found["log_likelihood"].reason == "not a bound: p(z) has no density"
    assert math.isfinite(found["rate_dual"].value)  # type: ignore[arg-type]
