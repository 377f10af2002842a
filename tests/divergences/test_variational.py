"""f-divergences: the table's identity, the closed KL of two Gaussians, held-out bounds, and transport on the line."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import wasserstein_distance
from torch import Tensor
from torch.distributions import Normal

from elboroom.core.problem import Problem
from elboroom.divergences import DIVERGENCES, FDivergence, bound, estimate, wasserstein
from elboroom.divergences.critic import Training
from elboroom.divergences.variational import divergence

ROWS = list(DIVERGENCES.values())
M, S = 0.8, 0.7  # P = N(m, s^2), Q = N(0, 1)
GRID = torch.linspace(-9, 9, 20_001, dtype=torch.float64)
P, Q = (Normal(torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64)) for a, b in ((M, S), (0, 1)))
LOG_P, LOG_Q = (d.log_prob(GRID) for d in (P, Q))  # type: ignore[no-untyped-call]
RATIO = (LOG_P - LOG_Q).exp()


def mean(log_density: Tensor, values: Tensor) -> float:
    return float(torch.trapezoid(log_density.exp() * values, GRID))


def exact(row: FDivergence) -> float:
    return mean(LOG_Q, row.f(RATIO))


def named(row: FDivergence) -> str:
    return row.name


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_the_optimum_is_tight(row: FDivergence) -> None:
    r = torch.tensor([1e-3, 0.1, 0.5, 0.99, 1.0, 1.01, 2.0, 10.0, 1e3], dtype=torch.float64)
    t = row.optimum(r)
    assert torch.allclose(t * r - row.conjugate(t), row.f(r), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_the_optimum_is_the_slope_of_f(row: FDivergence) -> None:
    r = torch.tensor([0.2, 0.7, 1.5, 4.0], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(row.f(r).sum(), r)
    assert torch.allclose(slope, row.optimum(r))


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_the_stable_dual_is_the_conjugate_of_the_output(row: FDivergence) -> None:
    v = torch.linspace(-6, 6, 49, dtype=torch.float64)
    assert torch.allclose(row.dual(v), row.conjugate(row.output(v)))
    far = torch.tensor([-60.0, 60.0])
    assert bool(torch.isfinite(row.output(far)).all() and torch.isfinite(row.dual(far)).all())


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_limits_keep_both_sides_of_the_bound_below_the_number_of_rows(row: FDivergence) -> None:
    low, high = (min(max(limit, -50.0), 50.0) for limit in row.limits(400.0))
    v = torch.tensor([low, high], dtype=torch.float64)
    assert float(row.output(v).abs().max()) <= 400
    assert float(row.dual(v).abs().max()) <= 400 + 1e-9


def test_closed_forms_of_two_gaussians() -> None:
    kl = 0.5 * (M**2 + S**2 - math.log(S**2) - 1)
    back = 0.5 * (M**2 / S**2 + 1 / S**2 + math.log(S**2) - 1)
    hellinger = 2 - 2 * math.sqrt(2 * S / (1 + S**2)) * math.exp(-(M**2) / (4 * (1 + S**2)))
    assert exact(DIVERGENCES["kl"]) == pytest.approx(kl, abs=1e-6)
    assert exact(DIVERGENCES["reverse-kl"]) == pytest.approx(back, abs=1e-6)
    assert exact(DIVERGENCES["hellinger"]) == pytest.approx(hellinger, abs=1e-6)
    assert exact(DIVERGENCES["gan"]) == pytest.approx(2 * exact(DIVERGENCES["jsd"]) - math.log(4), abs=1e-6)
    assert exact(DIVERGENCES["total-variation"]) == pytest.approx(
        float((LOG_P.exp() - LOG_Q.exp()).abs().sum()) * float(GRID[1] - GRID[0]) / 2, abs=1e-6
    )


@pytest.mark.parametrize("row", [r for r in ROWS if r.name not in ("reverse-kl", "neyman")], ids=named)
def test_the_analytic_critic_reaches_the_divergence_and_a_shifted_one_does_not(row: FDivergence) -> None:
    inside = LOG_Q > -40

    def value(shift: float) -> float:
        t = torch.where(inside, row.optimum(RATIO), row.optimum(torch.ones_like(RATIO))) + shift
        return mean(LOG_P, t) - mean(LOG_Q, row.conjugate(t))

    assert value(0.0) == pytest.approx(exact(row), abs=1e-6)
    if row.name == "total-variation":  # linear in t: a shift cancels
        return
    assert value(-0.1) < exact(row) - 1e-4
    if row.name == "kl":
        assert value(0.1) == pytest.approx(exact(row) + 0.1 + 1 - math.exp(0.1), abs=1e-6)


def test_the_bound_reads_free_outputs() -> None:
    v = torch.zeros(5, requires_grad=True)
    value = bound(DIVERGENCES["gan"], v, torch.zeros(3))
    assert float(value.detach()) == pytest.approx(-math.log(4))
    value.backward()  # type: ignore[no-untyped-call]
    assert v.grad is not None
    assert float(v.grad.sum()) == pytest.approx(0.5)


def samples(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(M, S, (n, 1)), rng.normal(0, 1, (n, 1))


QUICK = Training(hidden=32, steps=400, lr=5e-3)


@pytest.mark.unhurried
@pytest.mark.parametrize("row", [r for r in ROWS if r.name != "neyman"], ids=named)
def test_a_trained_critic_comes_near(row: FDivergence) -> None:
    found = estimate(*samples(3000), row.name, QUICK)
    assert abs(found.value - exact(row)) < 4 * found.error + 0.02
    assert found.error < 0.25 * max(abs(exact(row)), 0.1)
    assert found.settings["read_on"] == [1500, 1500]


def test_the_same_seed_gives_the_same_number_and_leaves_torch_alone() -> None:
    before = torch.get_rng_state()
    how = Training(hidden=8, steps=30, seed=3)
    assert estimate(*samples(60), "jsd", how) == estimate(*samples(60), "jsd", how)
    assert torch.equal(before, torch.get_rng_state())


def test_one_distribution_has_no_divergence() -> None:
    x, y = samples(2000)[1], samples(2000, 1)[1]
    found = estimate(x, y, "kl", QUICK)
    assert abs(found.value) < 4 * found.error + 0.01


def test_mistakes_are_said() -> None:
    with pytest.raises(Problem, match="unknown divergence 'kll'; did you mean 'kl'"):
        divergence("kll")
    with pytest.raises(Problem, match="A has 10 rows; at least 20 are needed"):
        estimate(np.zeros((10, 1)), np.zeros((30, 1)))


def test_transport_on_the_line() -> None:
    x = torch.randn(40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = torch.randn(40, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    assert float(wasserstein(x, x[torch.randperm(40)] + 1.7)) == pytest.approx(1.7)
    assert float(wasserstein(x, y)) == pytest.approx(float((x.sort().values - y.sort().values).abs().mean()))
    assert float(wasserstein(x, y[:23])) == pytest.approx(wasserstein_distance(x.numpy(), y[:23].numpy()))
    assert torch.autograd.gradcheck(wasserstein, (x[:6].clone().requires_grad_(), y[:4].clone().requires_grad_()))
