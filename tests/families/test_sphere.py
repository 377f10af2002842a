"""Distributions on the sphere: constants by quadrature, samplers against densities, rates in closed form and sampled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy import special, stats
from torch import Tensor, nn

from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.kl import kl_divergence
from elboroom.core.model import LatentModel
from elboroom.divergences import compare
from elboroom.families.bessel import log_bessel
from elboroom.families.fisher import pathwise, wood
from elboroom.families.sphere import (
    PowerSpherical,
    SpherePrior,
    Spherical,
    SphericalPosterior,
    UniformSphere,
    VonMisesFisher,
    log_area,
)
from elboroom.terms.evidence import kl

FAMILIES: list[type[Spherical]] = [VonMisesFisher, PowerSpherical]
CASES = [(13.0, 32), (35.0, 50), (1.0, 2), (40.0, 2), (1e4, 2), (2.0, 3), (1e4, 3), (1e-3, 1024), (1e4, 1024)]
POLE = 1e-9  # of kappa where it stands for uniform


def at(d: int, *rows: int, seed: int = 0) -> Tensor:
    """Directions, (*rows, d)."""
    noise = torch.Generator().manual_seed(seed)
    return F.normalize(torch.randn(*rows, d, generator=noise, dtype=torch.float64), dim=-1)


def law(family: type[Spherical], kappa: float, d: int, *rows: int) -> Spherical:
    return family(at(d, *(rows or (1,))), torch.tensor(kappa, dtype=torch.float64))


def prior(d: int) -> UniformSphere:
    return SpherePrior(d).double()(Batch(torch.empty(0)))


def rate(q: Spherical) -> Tensor:
    def never() -> Tensor:
        raise AssertionError("a closed KL draws no sample")

    return kl_divergence(q, prior(q.d), never)


NODES = [math.pi / 2 * part for part in np.polynomial.legendre.leggauss(1500)]


def distribution(q: Spherical) -> tuple[NDArray[Any], NDArray[Any]]:
    """Angles, and the probability of a smaller one, by the density in the angle."""
    s = (np.arange(100_000) + 0.5) * math.pi / 100_000
    density = q.log_prob_of(torch.from_numpy(np.cos(s))).numpy() + (q.d - 2) * np.log(np.sin(s)) + log_area(q.d - 1)
    weight = np.exp(density) * math.pi / 100_000
    return s, weight.cumsum() - weight / 2


# -- constants ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [0.0, 0.5, 1.0, 4.0, 15.0, 24.5, 31.0, 99.0, 511.0])
def test_bessel_functions_are_those_of_scipy(order: float) -> None:
    x = torch.tensor([1e-3, 0.1, 1.0, 13.0, 35.0, 80.0, 1e3, 1e4, 1e6], dtype=torch.float64)
    found, ratio = log_bessel(order, x)
    truth, above = special.ive(order, x.numpy()), special.ive(order + 1, x.numpy())
    there = above > 1e-290  # scipy's vanish where ours go on
    assert there[-3:].all()
    np.testing.assert_allclose(found.numpy()[there], np.log(truth[there]), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ratio.numpy()[there], above[there] / truth[there], rtol=1e-11)
    one = [t.item() for t in log_bessel(order, x[3])]
    assert one == pytest.approx([found[3].item(), ratio[3].item()], rel=1e-14), "kept constants are in double precision"


@pytest.mark.parametrize("order", [0.0, 3.0, 29.5, 511.0])
def test_bessel_functions_where_they_underflow(order: float) -> None:
    """The first two terms of the power series, far below what a double holds."""
    x = torch.tensor([1e-6, 1e-3], dtype=torch.float64)
    series = order * torch.log(x / 2) - math.lgamma(order + 1) + torch.log1p(x.square() / 4 / (order + 1)) - x
    torch.testing.assert_close(log_bessel(order, x)[0], series, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("kappa", "d"), CASES)
def test_constant_resultant_and_rate_are_those_of_quadrature(family: type[Spherical], kappa: float, d: int) -> None:
    """Over the angle, the density of which is smooth: one number for each up to kappa 10,000 and d 1,024."""
    q = law(family, kappa, d)
    s = NODES[0] + math.pi / 2
    log_q = q.log_prob_of(torch.from_numpy(np.cos(s))).numpy()
    weight = NODES[1] * np.exp(log_q + (d - 2) * np.log(np.sin(s)) + log_area(d - 1))
    assert weight.sum() == pytest.approx(1.0, abs=1e-9)
    assert q.resultant.item() == pytest.approx((weight * np.cos(s)).sum(), rel=1e-8, abs=1e-9)
    negentropy = (weight * log_q).sum()
    assert q.entropy().item() == pytest.approx(-negentropy, rel=1e-9, abs=1e-9)
    assert rate(q).item() == pytest.approx(negentropy + log_area(d), rel=1e-7, abs=1e-8)


@pytest.mark.parametrize(
    ("kappa", "d", "nats"), [(13, 32, 2.173), (35, 50, 7.743), (80, 50, 19.515), (100, 25, 18.802)]
)
def test_the_published_rates(kappa: float, d: int, nats: float) -> None:
    assert rate(law(VonMisesFisher, kappa, d)).item() == pytest.approx(nats, abs=1e-3)


@pytest.mark.parametrize("kappa", [1e-3, 0.1, 1.0, 13.0, 300.0, 1e4])
def test_in_three_dimensions_the_rate_is_elementary(kappa: float) -> None:
    """kappa coth kappa - 1 + log(kappa / sinh kappa)."""
    log_sinh = kappa - math.log(2) + math.log1p(-math.exp(-2 * kappa))
    truth = kappa / math.tanh(kappa) - 1 + math.log(kappa) - log_sinh
    assert rate(law(VonMisesFisher, kappa, 3)).item() == pytest.approx(truth, rel=1e-9, abs=1e-13)


def test_the_order_of_the_bessel_function_is_not_that_of_a_peer() -> None:
    """With order d/2 the four rates would be 2.084, 7.628, 19.585 and 19.43."""
    q = law(VonMisesFisher, 13.0, 32)
    assert abs(rate(q).item() - 2.084) > 0.05


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("d", [2, 10, 1024])
def test_the_rate_is_zero_where_kappa_is_and_rises_with_it(family: type[Spherical], d: int) -> None:
    rates = [rate(law(family, kappa, d)).item() for kappa in (1e-6, 0.1, 1.0, 10.0, 1e3, 1e4)]
    assert rates[0] == pytest.approx(0.0, abs=1e-9)
    assert rates == sorted(rates)


@pytest.mark.parametrize("family", FAMILIES)
def test_densities_integrate_to_one_over_the_surface(family: type[Spherical]) -> None:
    """On the circle and on the sphere, whole surfaces, wherever m points."""
    angle = torch.linspace(0, 2 * math.pi, 2001, dtype=torch.float64)[:-1]
    circle = torch.stack([angle.cos(), angle.sin()], -1)
    q = law(family, 7.0, 2)
    assert (q.log_prob(circle).exp().sum() * 2 * math.pi / 2000).item() == pytest.approx(1.0, abs=1e-12)
    nodes, weights = (torch.from_numpy(t) for t in np.polynomial.legendre.leggauss(200))
    around = angle[::5]
    ring = torch.stack([around.cos(), around.sin()], -1) * torch.sqrt(1 - nodes.square()).view(-1, 1, 1)
    sphere = torch.cat([ring, nodes.view(-1, 1, 1).expand(-1, len(around), 1)], -1)  # (200, 400, 3)
    for p in (law(family, 7.0, 3), prior(3)):
        mass = p.log_prob(sphere.flatten(0, 1)).exp().view(200, -1).sum(1) * 2 * math.pi / len(around)
        assert (mass * weights).sum().item() == pytest.approx(1.0, abs=1e-10)


# -- samplers ----------------------------------------------------------------------------------------------------------

DRAWN = [(0.5, 2), (20.0, 2), (3.0, 3), (13.0, 32), (35.0, 10), (1e4, 5), (500.0, 256)]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("kappa", "d"), DRAWN)
def test_angles_follow_the_density(family: type[Spherical], kappa: float, d: int) -> None:
    """Kolmogorov-Smirnov against the distribution function by quadrature, and the mean resultant A to four errors."""
    q, n = law(family, kappa, d), 40_000
    cosine, sine = q.angles(q.kappa, (n,))
    torch.testing.assert_close(cosine.square() + sine.square(), torch.ones(n).double(), rtol=0, atol=1e-12)
    uniform = np.interp(np.arctan2(sine.numpy(), cosine.numpy()), *distribution(q))
    assert stats.kstest(uniform, "uniform").pvalue > 1e-4
    assert abs(cosine.mean() - q.resultant) < 4 * cosine.std() / math.sqrt(n)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("kappa", "d"), [(20.0, 2), (3.0, 3), (13.0, 8)])
def test_draws_are_spread_evenly_around_the_mean_direction(family: type[Spherical], kappa: float, d: int) -> None:
    """E[z] = A m and E[z z'] = a m m' + (1 - a) / (d - 1) (I - m m'), a = E cos^2, entry by entry."""
    q, n = law(family, kappa, d), 100_000
    z = q.rsample((n,)).squeeze(1)
    torch.testing.assert_close(z.norm(dim=1), torch.ones(n).double())
    error = 4.5 * z.std(0) / math.sqrt(n)
    assert ((z.mean(0) - q.resultant * q.loc[0]).abs() < error).all()
    a, outer = (z @ q.loc[0]).square().mean(), torch.outer(q.loc[0], q.loc[0])
    truth = a * outer + (1 - a) / (d - 1) * (torch.eye(d).double() - outer)
    assert (z.T @ z / n - truth).abs().max() < 5 / math.sqrt(n)


def turned(cosine: Tensor, m: Tensor, seed: int) -> Tensor:
    """Points at these cosines from m, by a reflection that takes the first axis to m: not how the package does it."""
    noise = torch.Generator().manual_seed(seed)
    across = F.normalize(torch.randn(len(cosine), len(m) - 1, generator=noise, dtype=torch.float64), dim=-1)
    z = torch.cat([cosine.unsqueeze(1), torch.sqrt(1 - cosine.square()).unsqueeze(1) * across], 1)
    axis = F.normalize(torch.eye(len(m)).double()[0] - m, dim=0)
    return z - 2 * (z @ axis).unsqueeze(1) * axis


def test_draws_cannot_be_told_from_those_of_another_sampler() -> None:
    """vMF in three dimensions by the inverse of its distribution function, power spherical by scipy's beta: MMD test."""
    u = torch.rand(600, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    beta = torch.from_numpy(stats.beta(3.5 + 9.0, 3.5).rvs(600, random_state=5))
    q, p = law(VonMisesFisher, 4.0, 3), law(PowerSpherical, 9.0, 8)
    others = {q: 1 + torch.log(u + (1 - u) * math.exp(-8.0)) / 4, p: 2 * beta - 1}
    for drawn, cosine in others.items():
        theirs = turned(cosine, drawn.loc[0], 6)
        assert compare(drawn.sample((600,)).squeeze(1), theirs, permutations=200).p > 0.01
        wrong = type(drawn)(drawn.loc, 1.5 * drawn.kappa)
        assert compare(wrong.sample((600,)).squeeze(1), theirs, permutations=200).p < 0.01


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("kappa", "d"), [(13.0, 5), (0.7, 3)])
def test_the_rate_is_the_mean_of_a_million_log_ratios(family: type[Spherical], kappa: float, d: int) -> None:
    q, p = family(at(d, 1).float(), torch.tensor(kappa)), prior(d)
    z = q.sample((1_000_000,))
    ratio = (q.log_prob(z) - p.log_prob(z)).squeeze(1)
    assert abs(ratio.mean() - rate(q)).item() < 4 * ratio.std().item() / 1000


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_breaks_at_large_kappa_and_many_dimensions(family: type[Spherical]) -> None:
    """In single precision, as nets have it: unit norm, finite densities, the right angle."""
    loc = at(1024, 200).float()
    for kappa in (1e-3, 1.0, 1e4):
        q = family(loc, torch.tensor(kappa))
        z = q.rsample((3,))
        assert z.dtype == torch.float32
        torch.testing.assert_close(z.norm(dim=-1), torch.ones(3, 200), atol=1e-5, rtol=0)
        assert torch.isfinite(q.log_prob(z)).all()
        assert rate(q).shape == (200,)
        cosine = (z * loc).sum(-1)
        assert abs(cosine.mean() - q.resultant) < 5 * cosine.std() / math.sqrt(600)


def test_a_uniform_point_is_a_normalised_gaussian() -> None:
    z = prior(4).sample((100_000,))
    torch.testing.assert_close(z.norm(dim=1), torch.ones(100_000).double())
    assert z.mean(0).abs().max() < 5 * 0.5 / math.sqrt(100_000)
    assert (z.T @ z / 100_000 - torch.eye(4) / 4).abs().max() < 5 / math.sqrt(100_000)
    assert prior(4).entropy().item() == pytest.approx(math.log(2 * math.pi**2))
    assert torch.equal(prior(4).mean, torch.zeros(4).double())
    near = law(VonMisesFisher, POLE, 4).sample((1000,)).squeeze(1)
    assert compare(near[:500], z[:500], permutations=200).p > 0.01


# -- gradients ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("d", [2, 3, 32])
def test_gradients_of_density_and_rate_are_those_of_finite_differences(family: type[Spherical], d: int) -> None:
    kappa = torch.tensor([0.3, 13.0, 400.0], dtype=torch.float64, requires_grad=True)
    raw, z = torch.randn(3, d).double().requires_grad_(), at(d, 5, 3, seed=1)

    def density(raw: Tensor, kappa: Tensor) -> Tensor:
        return family(F.normalize(raw, dim=-1), kappa).log_prob(z)

    assert torch.autograd.gradcheck(density, (raw, kappa))
    assert torch.autograd.gradcheck(lambda k: rate(family(at(d, 3), k)), (kappa,))
    assert torch.autograd.gradcheck(lambda k: family(at(d, 3), k).resultant, (kappa,))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("d", [2, 5])
def test_draws_follow_the_mean_direction(family: type[Spherical], d: int) -> None:
    """The same noise, another m: the pathwise derivative is that of finite differences."""

    def draw(raw: Tensor) -> Tensor:
        torch.manual_seed(3)
        return family(F.normalize(raw, dim=-1), torch.tensor(6.0)).rsample((2,))

    assert torch.autograd.gradcheck(draw, (torch.randn(3, d).double().requires_grad_(),))


def test_the_gradient_in_the_direction_is_unbiased() -> None:
    """E a.z = A a.m, so its slope in m is A times a, less its part along m."""
    raw = torch.tensor([[0.3, -0.8, 0.5]], dtype=torch.float64, requires_grad=True)
    q, a = VonMisesFisher(F.normalize(raw, dim=-1), torch.tensor(5.0)), torch.tensor([1.0, 2.0, -1.0]).double()
    slopes = torch.autograd.grad((q.rsample((200_000,)) @ a).mean(), raw, retain_graph=True)[0]
    truth = torch.autograd.grad((q.resultant * q.loc @ a).sum(), raw)[0]
    torch.testing.assert_close(slopes, truth, atol=0.02, rtol=0)


@pytest.mark.parametrize("d", [2, 3, 10, 200])
def test_the_gradient_through_the_angle_is_that_of_the_quantile(d: int) -> None:
    """d omega / d kappa where F(omega; kappa) stays: by moving along the inverse of the distribution function."""
    kappa, h = torch.tensor([0.2, 5.0, 60.0, 3000.0], dtype=torch.float64), 1e-4
    loc, omega = at(d, 1), wood(kappa, d, (6, 4))
    kappa.requires_grad_()
    pathwise(kappa, omega, d).sum().backward()
    for j in range(4):
        ends = [distribution(VonMisesFisher(loc, side * kappa[j].detach())) for side in (1 - h, 1 + h)]
        here = [0.5 * sum(np.interp(np.arccos(w), *end) for end in ends) for w in omega[:, j].numpy()]
        moved = [np.cos([np.interp(f, end[1], end[0]) for f in here]) for end in ends]
        slope = (moved[1] - moved[0]).sum() / (2 * h * kappa[j].item())
        assert kappa.grad is not None
        assert kappa.grad[j].item() == pytest.approx(slope, rel=2e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_gradient_in_kappa_is_unbiased(family: type[Spherical]) -> None:
    """E cos = A(kappa) and E cos^2 have the slopes of their closed forms; no score function is needed."""
    kappa = torch.tensor([0.5, 13.0, 500.0], dtype=torch.float64).repeat_interleave(20_000).requires_grad_()
    q = family(at(6, 60_000), kappa)
    slopes = torch.autograd.grad((q.rsample() * q.loc).sum(), kappa)[0].view(3, -1)
    truth = torch.autograd.grad(q.resultant.sum(), kappa)[0].view(3, -1)[:, 0]
    assert ((slopes.mean(1) - truth).abs() < 4.5 * slopes.std(1) / math.sqrt(20_000)).all()


# -- posteriors --------------------------------------------------------------------------------------------------------


class Net(nn.Module):
    """Linear in x."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(3, outputs)

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        out: Tensor = self.linear(x)
        return out


@pytest.mark.parametrize("family", FAMILIES)
def test_with_a_constant_kappa_the_rate_is_a_constant(family: type[Spherical]) -> None:
    posterior = SphericalPosterior(Net(5), family, 20.0)
    draw = Draw(LatentModel(posterior, SpherePrior(5), nn.Identity()), Batch(torch.randn(7, 3)), samples=2)
    value = kl()(draw)
    assert value.shape == (7,)
    assert not value.requires_grad
    assert torch.equal(value, value[:1].expand(7))
    assert not posterior.state_dict().keys() - {"net.linear.weight", "net.linear.bias"}
    assert torch.equal(draw.q.mean, F.normalize(posterior.net(draw.batch.x), dim=-1)), "codes are points of the sphere"
    draw.z.sum().backward()
    assert posterior.net.linear.weight.grad.any()  # type: ignore[union-attr]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_learned_kappa_starts_at_the_constant_and_learns(family: type[Spherical]) -> None:
    posterior = SphericalPosterior(Net(6), family, 20.0, learned=True)
    nn.init.zeros_(posterior.net.linear.weight.data[-1])  # type: ignore[index]
    nn.init.zeros_(posterior.net.linear.bias.data[-1:])  # type: ignore[index]
    draw = Draw(LatentModel(posterior, SpherePrior(5), nn.Identity()), Batch(torch.randn(7, 3)))
    torch.testing.assert_close(draw.q.kappa, torch.full((7,), 20.0).double(), rtol=1e-6, atol=0)
    for loss in (kl().mean(draw), draw.z.square()[..., 0].sum()):
        posterior.zero_grad()
        loss.backward(retain_graph=True)
        assert posterior.net.linear.weight.grad[-1].any()  # type: ignore[index]


def test_a_kappa_that_is_no_number_is_passed_on_rather_than_rejected_for_ever() -> None:
    kappa = torch.tensor([float("nan"), 3.0, float("inf")], dtype=torch.float64)
    omega = wood(kappa, 4, (3,))
    assert torch.isnan(omega[0])
    assert -1 <= omega[1] <= 1
    assert not torch.isfinite(rate(VonMisesFisher(at(4, 3), kappa))[[0, 2]]).any()


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_two_processes_draw_what_one_would(
    family: type[Spherical], learned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rejections take as much noise as they need, so every process draws the angles of all."""
    loc, kappa = at(4, 6), torch.linspace(0.5, 30, 6).double() if learned else torch.tensor(9.0)
    torch.manual_seed(1)
    whole, after = family(loc, kappa).sample((5,)), torch.rand(1)
    monkeypatch.setattr(distributed, "world", lambda: 2)
    monkeypatch.setattr(distributed, "gather", lambda t: kappa)
    parts = []
    for rank in (0, 1):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        torch.manual_seed(1)
        mine = slice(3 * rank, 3 * rank + 3)
        parts.append(family(loc[mine], kappa[mine] if learned else kappa).sample((5,)))
        assert torch.equal(torch.rand(1), after), "and what comes next is the same too"
    torch.testing.assert_close(torch.cat(parts, 1), whole)


def test_two_processes_draw_the_same_uniform_points(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    whole = prior(3).sample((6,))
    monkeypatch.setattr(distributed, "world", lambda: 2)
    parts = []
    for rank in (0, 1):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        torch.manual_seed(1)
        parts.append(prior(3).sample((3,)))
    torch.testing.assert_close(torch.cat(parts), whole)


@pytest.mark.parametrize("family", FAMILIES)
def test_half_precision_of_the_nets_leaves_points_on_the_sphere(family: type[Spherical]) -> None:
    posterior = SphericalPosterior(Net(5), family, 20.0)
    with torch.autocast("cpu", torch.bfloat16):
        q = posterior(Batch(torch.randn(50, 3)))
        z = q.rsample((2,))
        value = kl_divergence(q, SpherePrior(5)(Batch(torch.empty(0))), lambda: z)
    assert z.dtype == value.dtype == torch.float32
    torch.testing.assert_close(z.norm(dim=-1), torch.ones(2, 50), atol=1e-5, rtol=0)
    assert value[0].item() == pytest.approx(rate(law(family, 20.0, 5)).item(), rel=1e-6)


@pytest.mark.parametrize("family", [VonMisesFisher, PowerSpherical])
def test_the_density_of_single_precision_draws_is_not_lost_to_their_length(family: type[Spherical]) -> None:
    """Rounding makes z longer or shorter by 6e-8, which kappa would multiply: 0.06 nats at a million."""
    loc, kappa = at(4, 1), torch.tensor(1e6)
    torch.manual_seed(0)
    z = family(loc, kappa).sample((10_000,))
    rounded = family(loc.float(), kappa).log_prob(z.float())
    torch.testing.assert_close(rounded.double(), family(loc, kappa).log_prob(z), atol=3e-3, rtol=0)
