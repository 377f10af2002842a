"""Posteriors normalised over the batch: their moments, and the floors that follow for the rate."""

from __future__ import annotations

import math
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.kl import kl_divergence
from elboroom.core.method import descend
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.families.gaussian import Gaussian, GaussianPosterior, StandardNormal
from elboroom.families.normalised import BatchNormed, BatchNormedBoth, standardised
from elboroom.families.point import PointPosterior
from elboroom.runs.lifecycle import train
from elboroom.terms.aggregate import total_correlation
from elboroom.terms.evidence import kl, nll
from elboroom.training import session
from elboroom.training.session import Own
from elboroom.training.spec import specify

B, D, J = 40, 6, 3
ZERO = Gaussian(torch.zeros(J).double(), torch.zeros(J).double())


class Net(nn.Module):
    """A linear net that ignores u."""

    def __init__(self, inputs: int, outputs: int, gain: float = 1.0) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        with torch.no_grad():
            self.linear.weight.mul_(gain)

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        out: Tensor = self.linear(x)
        return out


def posterior(gain: float = 1.0) -> GaussianPosterior:
    return GaussianPosterior(Net(D, 2 * J, gain))


def batch(rows: int = B, seed: int = 0) -> Batch:
    return Batch(torch.randn(rows, D, generator=torch.Generator().manual_seed(seed), dtype=torch.float64))


def rate(q: Gaussian) -> Tensor:
    return kl_divergence(q, ZERO, lambda: torch.empty(0))


# -- means ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gain", [1e-6, 1e-3, 1.0, 100.0])
@pytest.mark.parametrize("gamma", [0.5, 0.7])
def test_the_second_moment_of_the_means(gain: float, gamma: float) -> None:
    """E[mu'^2] = gamma^2 v / (v + eps) + b^2, so that a collapsing encoder cannot take the means along."""
    normed = BatchNormed(posterior(gain), J, gamma, eps=1e-5).double()
    nn.init.uniform_(normed.shift, -1, 1)
    q, plain = normed(batch()), normed.posterior(batch())
    v = plain.loc.var(0, unbiased=False)
    found = q.loc.square().mean(0)
    torch.testing.assert_close(found, gamma**2 * v / (v + 1e-5) + normed.shift.square())
    torch.testing.assert_close(q.loc.mean(0), normed.shift)
    assert torch.equal(q.logvar, plain.logvar)


@pytest.mark.parametrize(("gamma", "floor"), [(0.6, 5.76), (0.7, 7.84)])
def test_the_floor_of_the_rate(gamma: float, floor: float) -> None:
    """mean D >= J (gamma^2 + b^2) / 2, reached where sigma is 1: 5.76 and 7.84 nats for 32 dimensions."""
    normed = BatchNormed(posterior(), J, gamma, eps=1e-14).double()
    found = rate(normed(batch())).sum(1).mean()
    assert found > J * gamma**2 / 2
    with torch.no_grad():
        normed.posterior.net.linear.weight[J:] = 0
        normed.posterior.net.linear.bias[J:] = 0
        normed.shift.fill_(0.3)
    least = rate(normed(batch())).sum(1).mean().item()
    assert least == pytest.approx(J * (gamma**2 + 0.09) / 2, rel=1e-12)
    assert 32 * gamma**2 / 2 == pytest.approx(floor)


def test_evaluation_reads_running_averages_and_no_batch() -> None:
    normed = BatchNormed(posterior(), J, 0.6, eps=1e-5).double()
    for seed in range(200):
        normed(batch(seed=seed))
    kept = deepcopy(normed.state_dict())
    normed.eval()
    q = normed(batch())
    torch.testing.assert_close(normed(batch(1)).loc[0], normed(Batch(batch(1).x.repeat(3, 1))).loc[2])
    for name, value in normed.state_dict().items():
        assert torch.equal(value, kept[name])
    plain = normed.posterior(batch()).loc
    by_hand = 0.6 * (plain - normed.norm.running_mean) / (normed.norm.running_var + 1e-5).sqrt()
    torch.testing.assert_close(q.loc, by_hand)
    many = normed.posterior(batch(20_000, seed=5)).loc
    torch.testing.assert_close(normed.norm.running_mean, many.mean(0), atol=0.15, rtol=0)
    torch.testing.assert_close(normed.norm.running_var, many.var(0), rtol=0.2, atol=0)


def test_running_averages_are_of_the_right_size_from_the_start() -> None:
    """Plain averages over the first ten batches: no trace of the 0 and 1 that they begin with."""
    normed = BatchNormed(posterior(1e-4), J, 0.6).double()
    normed(batch())
    plain = normed.posterior(batch()).loc
    torch.testing.assert_close(normed.norm.running_mean, plain.mean(0))
    torch.testing.assert_close(normed.norm.running_var, plain.var(0))
    for seed in range(1, 10):
        normed(batch(seed=seed))
    means = torch.stack([normed.posterior(batch(seed=seed)).loc.mean(0) for seed in range(10)])
    torch.testing.assert_close(normed.norm.running_mean, means.mean(0))
    normed(batch(seed=10))
    last = normed.posterior(batch(seed=10)).loc.mean(0)
    torch.testing.assert_close(normed.norm.running_mean, 0.9 * means.mean(0) + 0.1 * last)


@pytest.mark.parametrize("gain", [1e-6, 1.0])
def test_an_encoder_that_shrinks_its_means_is_not_past_the_floor(gain: float) -> None:
    """With the published eps of 1e-5 it would be: means that vary by 1e-6 keep nothing of their rate."""
    q = BatchNormed(posterior(gain), J, 0.6).double()(batch())
    torch.testing.assert_close(q.loc.square().mean(0), torch.full((J,), 0.36).double(), rtol=1e-6, atol=0)
    published = BatchNormed(posterior(gain), J, 0.6, eps=1e-5).double()(batch())
    assert published.loc.square().mean() < 1e-3 if gain < 1 else published.loc.square().mean() > 0.3


def test_the_size_of_the_encoder_has_no_gradient() -> None:
    """So that no optimiser, whatever it makes of small gradients, shrinks the means until eps outweighs them."""
    normed = BatchNormed(posterior(), J, 0.6).double()
    weight = normed.posterior.net.linear.weight
    loss = rate(normed(batch())).sum(1).mean() + (normed(batch()).loc * torch.randn(B, J)).mean()
    grad = torch.autograd.grad(loss, weight)[0][:J]
    assert (grad * weight[:J]).sum(1).abs().max() < 1e-12 * grad.norm() * weight.norm()


# -- both heads ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tau", [0.0, 0.3, 0.5, 0.9])
def test_the_two_scales_share_a_second_moment_of_one(tau: float) -> None:
    both = BatchNormedBoth(posterior(), J, tau).double()
    nn.init.uniform_(both.theta, -3, 3)
    gamma_mu, gamma_sigma = both.scales
    torch.testing.assert_close(gamma_mu.square() + gamma_sigma.square(), torch.ones(J).double())
    assert (gamma_mu.square() >= tau).all()
    q = both(batch())
    torch.testing.assert_close(q.loc.square().mean(0), gamma_mu.square(), rtol=1e-6, atol=0)
    torch.testing.assert_close(q.variance.mean(0), gamma_sigma.square(), rtol=1e-5, atol=0)
    torch.testing.assert_close(q.loc.mean(0), torch.zeros(J).double())


@pytest.mark.parametrize("tau", [0.0, 0.5])
def test_the_rate_is_minus_half_the_mean_log_variance(tau: float) -> None:
    """mean D_i = -1/2 E[log sigma_i^2] >= -1/2 log gamma_sigma^2: 0.693 at theta = 0, never below 0.347 at tau = 0.5."""
    both = BatchNormedBoth(posterior(), J, tau).double()
    q = both(batch())
    found = rate(q).mean(0)
    torch.testing.assert_close(found, -0.5 * q.logvar.mean(0), rtol=1e-5, atol=1e-6)
    assert (found >= -0.5 * both.scales[1].square().log()).all()
    if tau == 0.5:
        assert -0.5 * both.scales[1].square().log()[0].item() == pytest.approx(math.log(2), abs=1e-6)
        nn.init.constant_(both.theta, -50.0)
        assert -0.5 * both.scales[1].square().log()[0].item() == pytest.approx(0.5 * math.log(2), abs=1e-6)


def test_the_sign_of_a_deviation_means_nothing_and_its_size_is_kept_from_zero() -> None:
    both = BatchNormedBoth(posterior(), J, 0.5).double()
    q = both(batch())
    with torch.no_grad():
        both.posterior.net.linear.weight[J:] *= -1
        both.posterior.net.linear.bias[J:] *= -1
    torch.testing.assert_close(both(batch()).logvar, q.logvar)
    x = torch.cat([torch.zeros(1, D).double(), batch().x, -batch().x])  # the first row has the mean of both heads
    assert both(Batch(x)).stddev[0].tolist() == pytest.approx([1e-3] * J)


# -- what a batch is -----------------------------------------------------------------------------------------------


def test_the_statistics_are_those_of_the_global_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ranks see what one process with the whole batch would: here the second half, with the first gathered before it."""
    whole, norm = torch.randn(B, J).double(), nn.BatchNorm1d(J, affine=False).double()
    expected = standardised(norm, whole)
    kept = deepcopy(norm.state_dict())
    norm.reset_running_stats()
    monkeypatch.setattr(distributed, "rank", lambda: 1)
    monkeypatch.setattr(distributed, "gather", lambda h: torch.cat([whole[: B // 2], h]))
    torch.testing.assert_close(standardised(norm, whole[B // 2 :]), expected[B // 2 :])
    torch.testing.assert_close(norm.state_dict(), kept)


def test_a_model_that_couples_a_batch_says_so() -> None:
    def method(wrap: Any, *more: Any) -> bool:
        model = LatentModel(wrap(posterior()), StandardNormal(J), nn.Identity())
        objective = nll() + kl()
        for term in more:
            objective = objective + term
        return descend(model, objective).couples

    assert not method(lambda q: q)
    assert method(lambda q: q, total_correlation(B))
    assert method(lambda q: BatchNormed(q, J, 0.6))
    assert method(lambda q: BatchNormedBoth(q, J, 0.5))


@pytest.mark.parametrize("name", ["bn-vae", "bn-vae-tau"])
def test_a_batch_too_small_for_statistics_is_refused(vectors: DataSet, name: str) -> None:
    spec = specify(name, vectors, "array", None, {"batch_size": 7, "latent": J})
    with pytest.raises(Problem, match="--batch-size 7 is too small for batch statistics; use 8 or more"):
        session.build(spec, Own(vectors))
    session.build(spec.model_copy(update={"fit": spec.fit.model_copy(update={"batch_size": 8})}), Own(vectors))


@pytest.mark.parametrize("wrap", [BatchNormed, BatchNormedBoth])
def test_only_gaussians_are_normalised(wrap: Any) -> None:
    with pytest.raises(Problem, match="not point; use --posterior gaussian"):
        wrap(PointPosterior(Net(D, J)), J, 0.5)


def test_given_labels_the_prior_cannot_follow(vectors: DataSet) -> None:
    for name in ("bn-vae", "bn-vae-tau"):
        method = session.build(specify(name, vectors, "array", None, {"given": "label"}), Own(vectors))
        assert isinstance(method.model.prior, StandardNormal)


@pytest.mark.slow
def test_a_rate_that_buys_nothing_stays_above_its_floor(vectors: DataSet, tmp_path: Path) -> None:
    """Where x is far noisier than its mean can tell, the rate of a VAE vanishes and that of these does not."""
    options: dict[str, Any] = {"latent": 3, "lr": 1e-2, "sigma": 1e3, "steps": 400, "batch_size": 64, "log_every": 10}
    for name, least in (("bn-vae", 3 * 0.6**2 / 2), ("bn-vae-tau", 3 * math.log(2) / 2)):
        run = train(name, vectors, tmp_path / name, threads=1, **options)
        assert least < run.log[-1]["kl"] < 3 * least
        norms = [module for module in run.model.modules() if isinstance(module, nn.BatchNorm1d)]
        assert {int(norm.num_batches_tracked) for norm in norms} == {400}, "running averages are kept"
    plain = train("vae", vectors, tmp_path / "vae", threads=1, **options)
    assert plain.log[-1]["kl"] < 0.1
