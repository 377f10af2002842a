"""Laws where precision runs out: directions in single precision and of nothing, narrow Gaussians, large kappa."""

from __future__ import annotations

import math

import pytest
import torch
from laws import WIDTH, Pair
from torch.nn.functional import normalize

from elboroom.core.batch import Batch
from elboroom.core.kl import kl_divergence
from elboroom.families.gaussian import Gaussian
from elboroom.families.sphere import UniformSphere, VonMisesFisher

SPHERICAL = ["vmf", "power-spherical"]


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("posterior", SPHERICAL)
@torch.no_grad()
def test_draws_in_single_precision_lie_on_the_sphere(posterior: str, d: int) -> None:
    """A hundred thousand, each about a direction of its own: some noise is all but along it."""
    model = Pair(posterior, "sphere", d).model().float()
    batch = Batch(torch.randn(100_000, WIDTH))
    for z in (model.posterior(batch).sample(), model.prior(batch).sample((100_000,))):
        assert z.dtype == torch.float32
        assert z.shape == (100_000, d)
        assert (z.double().norm(dim=-1) - 1).abs().max().item() <= 1e-5


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("d", [2, 3, 10])
@pytest.mark.parametrize("posterior", SPHERICAL)
def test_an_encoder_that_says_nothing_has_a_direction_all_the_same(posterior: str, d: int, learned: bool) -> None:
    """A net may emit zeros, of a black image for one: the draw is of the sphere, and its gradient no explosion."""
    model = Pair(posterior, "sphere", d).model(kappa_learned=learned).float()
    out = torch.zeros(4, d + learned, requires_grad=True)
    q = model.posterior.law(out)
    z = q.rsample((5,))
    for direction in (q.mean, z):
        assert (direction.double().norm(dim=-1) - 1).abs().max().item() <= 1e-5
    (slope,) = torch.autograd.grad((z * torch.randn_like(z)).sum() + q.log_prob(z).sum(), out)
    assert torch.isfinite(slope).all()
    assert slope.abs().max().item() < 1e6


def test_a_gaussian_narrower_than_single_precision_has_a_density_at_its_mean() -> None:
    q = Gaussian(torch.tensor([0.3, -2.0]), torch.full((2,), -100.0))
    assert q.log_prob(q.loc).item() == pytest.approx(100 - math.log(2 * math.pi), rel=1e-6)


@pytest.mark.parametrize("kappa", [1e7, 1e8])
@pytest.mark.parametrize("d", [3, 10])
def test_the_gradient_of_the_rate_at_a_large_kappa_is_its_asymptote(d: int, kappa: float) -> None:
    """kappa A'(kappa) -> (d - 1) / (2 kappa): A' is no difference of numbers near one."""
    at = torch.tensor([kappa], dtype=torch.float64, requires_grad=True)
    q = VonMisesFisher(normalize(torch.ones(1, d).double(), dim=-1), at)
    rate = kl_divergence(q, UniformSphere(torch.zeros(d).double()), q.sample)
    (slope,) = torch.autograd.grad(rate.sum(), at)
    assert slope.item() == pytest.approx((d - 1) / (2 * kappa), rel=1e-3)
