"""Controllers: their closed forms, how they come back from a bound, and where they settle."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.model import LatentModel
from elboroom.core.objective import Term
from elboroom.families.gaussian import StandardNormal
from elboroom.weights.controllers import PI, Hold, MinimumRate
from elboroom.weights.schedules import Linear


def rates(values: list[float]) -> Term:
    """A term with these values for the examples of a batch."""
    return Term("kl", lambda draw: torch.tensor(values, dtype=torch.float64, requires_grad=True))


def at(step: int) -> Draw:
    empty = StandardNormal(1)
    return Draw(LatentModel(empty, empty, empty), Batch(torch.empty(2), step=step))


# -- capacity ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("c", [0.5, 25.0])
def test_capacity_is_of_the_mean_not_the_mean_of_distances(c: float) -> None:
    """Rates {0, 2C} cost nothing (the per-example form gives gamma C); rates {0, 4C} cost gamma C."""
    gamma = 1000.0
    loss = Hold(c, gamma) * rates([0.0, 2 * c])
    assert loss(at(0)).total.item() == 0.0
    loss = Hold(c, gamma) * rates([0.0, 4 * c])
    assert loss(at(0)).total.item() == pytest.approx(gamma * c)
    loss = Hold(c, gamma) * rates([0.0, 0.0])
    assert loss(at(0)).total.item() == pytest.approx(gamma * c)


@pytest.mark.parametrize(("value", "sign"), [(1.0, -1), (9.0, 1)])
def test_capacity_pulls_with_gamma_towards_c(value: float, sign: int) -> None:
    mean = torch.tensor(value, requires_grad=True)
    (slope,) = torch.autograd.grad(Hold(5.0, 70.0).apply_to(0, mean), mean)
    assert slope.item() == sign * 70.0


def test_capacity_is_a_function_of_the_step_alone() -> None:
    hold = Hold(Linear(0, 25, 100), 10.0)
    seen = [float(hold.now(step)) for step in range(150)]
    for step, value in zip(range(150), torch.rand(150), strict=True):
        hold.update(step, value)
    assert seen == [float(hold.now(step)) for step in range(150)]
    assert seen[0] == 0.0
    assert seen[50] == 12.5
    assert set(seen[100:]) == {25.0}
    logged = (hold * rates([3.0, 5.0]))(at(50)).logged
    assert logged["kl.capacity"] == 12.5
    assert "kl.weight" not in logged
    assert float(logged["loss"]) == pytest.approx(10 * 8.5)


# -- ControlVAE --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [-3.0, -0.2, 0.4])
def test_pi_has_a_closed_form_inside_its_range(error: float) -> None:
    """beta(n) = low + kp sigmoid(-e) - n ki e for constant e."""
    low, kp, ki, target = (1.0, 0.01, 1e-3, 18.0) if error < 0 else (1.0, 0.5, 1e-3, 18.0)
    pi = PI(target, kp, ki, low, 100.0)
    for n in range(1, 201):
        pi.update(n, torch.tensor(target - error))
        expected = low + kp / (1 + math.exp(error)) - n * ki * error
        if error < 0 or expected > low:
            assert pi.now(n).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("bound", "away", "back"), [("low", 18.0, -5.0), ("high", -18.0, 5.0)])
def test_pi_leaves_a_bound_on_the_next_step(bound: str, away: float, back: float) -> None:
    """Fault 15: however long it stood at a bound, the next error of the other sign moves it."""
    pi = PI(20.0, 0.01, 1e-3, 1.0, 1.5)
    for step in range(1000):
        pi.update(step, torch.tensor(20.0 - away))
    assert pi.now(0).item() == pytest.approx(pi.low if bound == "low" else pi.high)
    held = float(pi.now(0))
    pi.update(1000, torch.tensor(20.0 - back))
    assert (float(pi.now(0)) - held) * (1 if bound == "low" else -1) > 1e-3


def test_pi_at_the_target_stands_still() -> None:
    pi = PI(7.0, 0.01, 1e-3, 0.0, 1.0)
    pi.update(0, torch.tensor(2.0))
    integral = float(pi.integral)
    for step in range(5):
        pi.update(step, torch.tensor(7.0))
        assert float(pi.integral) == integral
        assert pi.now(0).item() == pytest.approx(pi.low + pi.kp / 2 + integral)


@pytest.mark.parametrize("error", [-1e5, 1e5])
def test_pi_does_not_overflow(error: float) -> None:
    pi = PI(0.0, 0.01, 1e-3, 1.0)
    for step in range(3):
        pi.update(step, torch.tensor(-error))
        assert math.isfinite(pi.now(0).item())


def settle(weight: PI | MinimumRate, plant: Callable[[Tensor], Tensor], steps: int) -> float:
    """Runs a controller against a rate that answers to its weight; the last rate."""
    value = torch.tensor(0.0)
    for step in range(steps):
        value = plant(torch.as_tensor(weight.now(step)))
        weight.update(step, value)
    return float(value)


@pytest.mark.parametrize("target", [2.0, 10.0, 18.0])
def test_pi_settles_on_a_plant(target: float) -> None:
    """A rate that falls as beta rises comes to rest at the target."""
    pi = PI(target, 0.01, 0.05, 1.0)
    assert settle(pi, lambda beta: 40 / beta, 3000) == pytest.approx(target, rel=1e-3)
    assert float(pi.now(0)) == pytest.approx(40 / target, rel=1e-3)


def test_pi_cannot_reach_a_target_above_the_rate_at_its_lower_bound() -> None:
    pi = PI(50.0, 0.01, 5e-3, 1.0)
    assert settle(pi, lambda beta: 40 / beta, 500) == pytest.approx(40.0, rel=1e-3)


def test_pi_remembers_in_buffers() -> None:
    pi = PI(5.0, 0.01, 0.1, 0.0)
    for step in range(7):
        pi.update(step, torch.tensor(8.0))
    other = PI(5.0, 0.01, 0.1, 0.0)
    other.load_state_dict(pi.state_dict())
    pi.update(7, torch.tensor(3.0))
    other.update(7, torch.tensor(3.0))
    assert torch.equal(pi.now(8), other.now(8))


def test_what_a_step_used_is_not_changed_by_the_update() -> None:
    for weight in (PI(5.0, 0.01, 0.1, 0.0), MinimumRate(5.0, 0.1)):
        weight.update(0, torch.tensor(3.0 if isinstance(weight, MinimumRate) else 8.0))
        value = torch.tensor(2.0, requires_grad=True)
        now, before = weight.now(0), float(weight.now(0))
        loss = weight.apply_to(0, value)
        weight.update(1, torch.tensor(9.0))
        assert float(now) == before
        assert torch.autograd.grad(loss, value)[0].item() == pytest.approx(before)


# -- minimum desired rate ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("target", "rate", "u"), [(5.0, 8.0, 0.0), (8.0, 8.0, 0.0), (20.0, 20.0, 0.6)])
def test_mdr_is_complementary(target: float, rate: float, u: float) -> None:
    """At rest u = 0 or the rate is the target: a plant whose rate is 8 / (1 - u)."""
    weight = MinimumRate(target, 1e-3)
    found = settle(weight, lambda w: 8 / w.clamp_min(1e-3), 6000)
    assert found == pytest.approx(rate, rel=1e-3)
    assert float(weight.u) == pytest.approx(u, abs=1e-3)
    assert float(weight.u) * (target - found) == pytest.approx(0, abs=1e-3)


def test_mdr_falls_back_to_zero_and_keeps_its_range() -> None:
    weight = MinimumRate(10.0, 0.05)
    for step in range(100):
        weight.update(step, torch.tensor(0.0))
    assert float(weight.u) == 1.0
    for step in range(100):
        weight.update(step, torch.tensor(30.0))
    assert float(weight.u) == 0.0
    assert weight.apply_to(0, torch.tensor(30.0)).item() == 30.0


def test_mdr_is_its_lagrangian() -> None:
    weight = MinimumRate(10.0, 0.05)
    weight.update(0, torch.tensor(4.0))
    u = float(weight.u)
    assert u == pytest.approx(0.3)
    assert weight.apply_to(1, torch.tensor(6.0)).item() == pytest.approx((1 - u) * 6 + u * 10)
    assert float(weight.now(1)) == pytest.approx(1 - u)
