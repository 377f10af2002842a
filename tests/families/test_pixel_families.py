"""Likelihoods of pixels: constants kept, sums over pixels, stable far out."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Bernoulli as TorchBernoulli
from torch.distributions import Normal as TorchNormal

from elboroom.core.batch import Batch
from elboroom.families.pixels import (
    Bernoulli,
    BernoulliLikelihood,
    DiscretisedLogistic,
    GaussianLikelihood,
    GaussianPerPixelLikelihood,
    LogisticLikelihood,
    Normal,
)
from elboroom.families.point import Point

EVENT = (2, 3, 4)
D = math.prod(EVENT)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_bernoulli_at_logit_zero_is_d_log_two() -> None:
    px = Bernoulli(torch.zeros(1, 5, *EVENT, dtype=torch.float64), 3)
    for x in (torch.zeros(5, *EVENT), torch.ones(5, *EVENT), torch.rand(5, *EVENT)):
        nll = -px.log_prob(x.double())
        assert nll.shape == (1, 5)
        torch.testing.assert_close(nll, torch.full_like(nll, D * math.log(2)))


def test_bernoulli_is_that_of_torch_and_does_not_overflow() -> None:
    logits, x = 3 * random(2, 5, *EVENT), (random(5, *EVENT, seed=1) > 0).double()
    expected = TorchBernoulli(logits=logits).log_prob(x).flatten(2).sum(-1)
    torch.testing.assert_close(Bernoulli(logits, 3).log_prob(x), expected)
    far = torch.full((1, 1, *EVENT), 1000.0, requires_grad=True)
    wrong = -Bernoulli(far, 3).log_prob(torch.zeros(1, *EVENT)).sum()
    assert wrong.item() == pytest.approx(1000.0 * D)
    (slope,) = torch.autograd.grad(wrong, far)
    assert torch.equal(slope, torch.ones_like(slope))


def test_grey_targets_are_bounded_by_their_entropy() -> None:
    t = torch.rand(5, *EVENT, dtype=torch.float64) * 0.98 + 0.01
    floor = -(t * t.log() + (1 - t) * (1 - t).log()).flatten(1).sum(1)
    torch.testing.assert_close(-Bernoulli(torch.logit(t)[None], 3).log_prob(t)[0], floor)
    assert (-Bernoulli(torch.logit(t)[None] + 0.1, 3).log_prob(t)[0] > floor).all()


@pytest.mark.parametrize("sigma", [0.1, 1.0, 3.0])
def test_gaussian_keeps_its_constant(sigma: float) -> None:
    mean, x = random(2, 5, *EVENT), random(5, *EVENT, seed=1)
    log_sigma = torch.tensor(math.log(sigma), dtype=torch.float64)
    nll = -Normal(mean, log_sigma, 3).log_prob(x)
    by_hand = (x - mean).square().flatten(2).sum(-1) / (2 * sigma**2) + D / 2 * math.log(2 * math.pi * sigma**2)
    torch.testing.assert_close(nll, by_hand)
    torch.testing.assert_close(-nll, TorchNormal(mean, sigma).log_prob(x).flatten(2).sum(-1))


class Out(nn.Module):
    """A net that emits one tensor, whatever z."""

    def __init__(self, out: Tensor) -> None:
        super().__init__()
        self.out = nn.Parameter(out)

    def forward(self, z: Tensor, u: Tensor | None = None) -> Tensor:
        return self.out.expand(len(z), *self.out.shape)


Z = torch.zeros(2, 5, 3)


@pytest.mark.parametrize("make", [BernoulliLikelihood, GaussianLikelihood])
def test_twice_the_pixels_are_twice_the_nll(make: type[BernoulliLikelihood] | type[GaussianLikelihood]) -> None:
    """Fault 7: a constant image of twice the size costs twice as much."""
    costs = []
    for width in (4, 8):
        px = make(Out(torch.full((1, 4, width), 0.3)), 3)(Z, Batch(torch.full((5, 1, 4, width), 0.8)))
        costs.append(-px.log_prob(torch.full((5, 1, 4, width), 0.8)))
    torch.testing.assert_close(costs[1], 2 * costs[0])


def test_a_sigma_for_every_pixel_is_bounded_below() -> None:
    x = random(5, *EVENT).float()
    raw = torch.cat([torch.zeros(2, 3, 4), torch.full((2, 3, 4), -1e4)])
    px = GaussianPerPixelLikelihood(Out(raw), 3)(Z, Batch(x))
    torch.testing.assert_close(px.log_sigma, torch.full_like(px.log_sigma, -5.0))
    vector = GaussianPerPixelLikelihood(Out(torch.tensor([[0.5, 1.0], [1.0, 40.0]])), 1)(Z, Batch(torch.zeros(5, 2)))
    assert vector.loc.shape == (2, 5, 2)
    torch.testing.assert_close(vector.loc[0, 0], torch.tensor([0.5, 1.0]))
    torch.testing.assert_close(vector.log_sigma[0, 0], torch.tensor([1.0, 40.0]), atol=0.01, rtol=0)


def test_one_sigma_is_fixed_or_learned() -> None:
    assert not [n for n, _ in GaussianLikelihood(nn.Identity(), 1, 0.5).named_parameters()]
    learned = GaussianLikelihood(nn.Identity(), 1, 0.5, learned=True)
    assert [n for n, _ in learned.named_parameters()] == ["log_sigma"]
    assert learned.log_sigma.exp().item() == pytest.approx(0.5)


LEVELS = torch.arange(256, dtype=torch.float64) / 255


def logistic(loc: float, log_scale: float, dtype: torch.dtype = torch.float64) -> DiscretisedLogistic:
    """256 pixels of one logistic."""
    full = torch.full((256,), loc, dtype=dtype)
    return DiscretisedLogistic(full, torch.full_like(full, log_scale), 1)


CASES = [
    (loc, scale) for loc in (-0.2, 0.0, 0.3, 0.5, 100 / 255, 1.0, 1.3) for scale in (-20.0, -9.0, -7.0, -3.0, 0.0, 4.0)
]


@pytest.mark.parametrize(("loc", "log_scale"), CASES)
def test_the_discretised_logistic_sums_to_one(loc: float, log_scale: float) -> None:
    log_p = logistic(loc, log_scale).log_prob_per_pixel(LEVELS)
    assert log_p.exp().sum().item() == pytest.approx(1.0, abs=1e-12)
    assert torch.isfinite(log_p).all()


@pytest.mark.parametrize(("loc", "log_scale"), [case for case in CASES if case[1] > -9])
def test_the_discretised_logistic_is_a_difference_of_sigmoids(loc: float, log_scale: float) -> None:
    scale = math.exp(log_scale)
    upper = torch.sigmoid((LEVELS + 0.5 / 255 - loc) / scale)
    lower = torch.sigmoid((LEVELS - 0.5 / 255 - loc) / scale)
    upper[-1], lower[0] = 1.0, 0.0
    ours = logistic(loc, log_scale).log_prob_per_pixel(LEVELS)
    torch.testing.assert_close(ours.exp(), upper - lower, atol=1e-13, rtol=1e-9)


@pytest.mark.parametrize(("loc", "log_scale"), CASES)
def test_the_discretised_logistic_is_stable_in_single_precision(loc: float, log_scale: float) -> None:
    mean = torch.full((256,), loc, requires_grad=True)
    scale = torch.full((256,), log_scale, requires_grad=True)
    log_p = DiscretisedLogistic(mean, scale, 1).log_prob_per_pixel(LEVELS.float())
    slopes = torch.autograd.grad(log_p.sum(), (mean, scale))
    assert all(torch.isfinite(t).all() for t in (log_p, *slopes))
    exact = logistic(loc, log_scale).log_prob_per_pixel(LEVELS)
    torch.testing.assert_close(log_p.double(), exact, rtol=1e-3, atol=1e-3 if log_scale > -9 else 40)


def test_the_discretised_logistic_samples_levels_as_often_as_it_says() -> None:
    px = logistic(0.02, -4.0)
    drawn = (px.sample((4000,)) * 255).round().long().flatten()
    share = torch.bincount(drawn, minlength=256) / len(drawn)
    torch.testing.assert_close(share.double(), px.log_prob_per_pixel(LEVELS).exp(), atol=5e-3, rtol=0)
    raw = LogisticLikelihood(Out(torch.zeros(2, 1, 1)), 3)(Z, Batch(torch.zeros(5, 1, 1, 1)))
    assert raw.mean.flatten()[0].item() == 0.5


@pytest.mark.parametrize("px", [Bernoulli(torch.zeros(3, 4), 1), Normal(torch.zeros(3, 4), torch.tensor(0.0), 1)])
def test_samples_have_the_shape_that_was_asked_for(px: Bernoulli | Normal) -> None:
    assert px.sample().shape == (3, 4)
    assert px.sample((2,)).shape == (2, 3, 4)
    assert px.log_prob(px.sample((2,))[0]).shape == (3,)


def test_a_point_has_no_density_and_lets_gradients_through() -> None:
    loc = torch.randn(3, 2, requires_grad=True)
    point = Point(loc)
    assert not point.has_density
    assert torch.equal(point.rsample((4,))[2], loc)
    assert point.rsample().requires_grad
    assert not point.sample().requires_grad
    with pytest.raises(NotImplementedError):
        point.log_prob(loc)
