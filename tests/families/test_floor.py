"""The posterior with a minimum rate: D_i = delta + relu(m_i) / 2 exactly, and the bounds that make it so."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from elboroom.core.batch import Batch
from elboroom.core.kl import kl_divergence
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.families.floor import Floored, Sign, deviations
from elboroom.families.gaussian import Gaussian, GaussianPosterior, StandardNormal
from elboroom.families.point import PointPosterior
from elboroom.training import session
from elboroom.training.session import Own
from elboroom.training.spec import specify

J = 4
ZERO = Gaussian(torch.zeros(J).double(), torch.zeros(J).double())


class Pass(nn.Module):
    """x itself as the two heads."""

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        return x


def heads(spread: float = 3.0) -> Tensor:
    return spread * torch.randn(500, 2 * J, dtype=torch.float64)


def rate(q: Gaussian) -> Tensor:
    return kl_divergence(q, ZERO, lambda: torch.empty(0))


@pytest.mark.parametrize(("delta", "low", "high"), [(0.1, 0.702, 1.331), (0.15, 0.641, 1.409), (0.2, 0.592, 1.476)])
def test_the_published_bounds(delta: float, low: float, high: float) -> None:
    found = deviations(delta)
    assert found == pytest.approx((low, high), abs=6e-4)
    for sigma in found:
        assert 0.5 * (sigma**2 - math.log(sigma**2) - 1) == pytest.approx(delta, rel=1e-12)


@pytest.mark.parametrize("delta", [0.01, 0.1, 0.2, 2.0])
def test_the_rate_is_the_minimum_and_half_of_relu(delta: float) -> None:
    x = heads()
    q = Floored(GaussianPosterior(Pass()), delta)(Batch(x))
    torch.testing.assert_close(rate(q), delta + 0.5 * x[:, :J].relu(), rtol=1e-10, atol=1e-10)
    assert (q.loc >= 0).all()
    assert (rate(q) >= delta - 1e-10).all()
    low, high = deviations(delta)
    assert ((low < q.stddev) & (q.stddev < high)).all()


@pytest.mark.parametrize("delta", [0.1, 0.2])
def test_with_a_learned_sign_the_mean_has_that_of_its_head(delta: float) -> None:
    x = heads()
    q = Floored(GaussianPosterior(Pass()), delta, "learned")(Batch(x))
    torch.testing.assert_close(rate(q), delta + 0.5 * x[:, :J].abs(), rtol=1e-10, atol=1e-10)
    assert torch.equal(q.loc < 0, x[:, :J] < 0)


@pytest.mark.parametrize("sign", ["positive", "learned"])
def test_the_mean_rises_with_its_head(sign: Sign) -> None:
    """So that descent can take a learned sign across zero; a positive mean with m < 0 has no gradient."""
    x = heads().requires_grad_()
    Floored(GaussianPosterior(Pass()), 0.1, sign)(Batch(x)).loc.sum().backward()
    assert x.grad is not None
    slope = x.grad[:, :J]
    assert ((slope > 0) == (x[:, :J] > 0)).all() if sign == "positive" else (slope > 0).all()


@pytest.mark.parametrize("sign", ["positive", "learned"])
def test_far_heads_stay_finite(sign: Sign) -> None:
    """In single precision, where sigmoid(a) is 0 or 1 and nothing is left to add."""
    x = torch.tensor([[-50.0, 0.0, 1e-8, 50.0, -60.0, 60.0, 30.0, 1e-8]], requires_grad=True)
    q = Floored(GaussianPosterior(Pass()), 0.1, sign)(Batch(x))
    total = q.loc.sum() + q.logvar.sum()
    total.backward()
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()
    zero = torch.zeros(J)
    found = kl_divergence(q, Gaussian(zero, zero), lambda: zero)
    assert torch.isfinite(found).all()
    assert (found > 0.1 - 1e-5).all()


def test_a_posterior_at_the_minimum_can_be_the_same_for_all_x() -> None:
    """KL > 0 is not information: 3.2 nats for 32 dimensions at 0.1, none of them about x."""
    q = Floored(GaussianPosterior(Pass()), 0.1)(Batch(torch.cat([-torch.rand(9, J), torch.zeros(9, J)], 1).double()))
    assert torch.equal(q.loc, q.loc[:1].expand_as(q.loc))
    torch.testing.assert_close(rate(q).sum(1) * 32 / J, torch.full((9,), 3.2).double())


def test_what_cannot_be_is_refused(vectors: DataSet) -> None:
    with pytest.raises(Problem, match="not point; use --posterior gaussian"):
        Floored(PointPosterior(Pass()), 0.1)
    with pytest.raises(
        Problem, match="the minimum rate needs the prior N\\(0, I\\); use --posterior gaussian with --prior normal"
    ):
        session.build(specify("delta-vae", vectors, "array", None, {"prior": "clustered"}), Own(vectors))
    method = session.build(specify("delta-vae", vectors, "array", None, {"given": "label"}), Own(vectors))
    assert isinstance(method.model.prior, StandardNormal)
