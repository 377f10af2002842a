"""Weights that are functions of the step: their ends, their middles, their means."""

from __future__ import annotations

import math

import pytest

from elboroom.core.objective import Weight
from elboroom.core.problem import Problem
from elboroom.weights.schedules import Cyclical, Geometric, Linear, Sigmoid, Staircase


@pytest.mark.parametrize(
    ("weight", "steps", "start", "end"),
    [
        (Linear(0, 25, 1000), 1000, 0.0, 25.0),
        (Linear(3, 1, 10), 10, 3.0, 1.0),
        (Geometric(100, 1, 1000), 1000, 100.0, 1.0),
        (Sigmoid(10_000), 10_000, 1 / (1 + math.exp(5)), 1.0),
        (Staircase(0.5, 18, 0.15, 5000), 5000 * 117, 0.5, 18.0),
    ],
)
def test_they_end_where_they_should_and_stay(weight: Weight, steps: int, start: float, end: float) -> None:
    assert weight.now(0) == pytest.approx(start, abs=1e-12)
    assert weight.now(steps) == pytest.approx(end, rel=1e-12)
    assert weight.now(steps) == weight.now(10 * steps) == weight.now(10**9)
    assert weight.now(steps - 1) != weight.now(steps) or isinstance(weight, Staircase)
    assert not list(weight.buffers()), "a function of the step has nothing to remember"


@pytest.mark.parametrize("weight", [Linear(0, 7, 0), Geometric(5, 7, 0)])
def test_a_ramp_of_no_steps_is_its_end(weight: Weight) -> None:
    assert weight.now(0) == 7.0
    assert Sigmoid(0).now(0) == 1.0


def test_half_way() -> None:
    assert Linear(2, 6, 100).now(50) == 4.0
    assert Geometric(100, 4, 1000).now(500) == pytest.approx(math.sqrt(400), rel=1e-12)
    ratios = {round(Geometric(100, 1, 50).now(t + 1) / Geometric(100, 1, 50).now(t), 12) for t in range(50)}
    assert len(ratios) == 1
    assert Sigmoid(1000).now(500) == 0.5
    assert all(Geometric(4.0, 4.0, 7).now(t) == 4.0 for t in range(10))


def test_the_sigmoid_of_bowman() -> None:
    weight = Sigmoid(10_000)
    assert weight.now(0) == pytest.approx(0.0067, abs=5e-5)
    for t in (1, 2_500, 7_777, 9_999):
        assert weight.now(t) == pytest.approx(1 / (1 + math.exp(-(t - 5_000) / 1_000)))


@pytest.mark.parametrize("ramp", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("period", [1000, 2500])
def test_cycles_repeat_and_have_their_mean(period: int, ramp: float) -> None:
    weight = Cyclical(period, ramp)
    cycle = [weight.now(t) for t in range(period)]
    assert cycle == [weight.now(t + 3 * period) for t in range(period)]
    assert cycle[0] == 0.0
    assert max(cycle) == pytest.approx(1.0, abs=1.01 / period / ramp)
    assert sum(cycle) / period == pytest.approx(1 - ramp / 2, abs=1 / period)


def test_a_cycle_lasts_at_least_a_step() -> None:
    with pytest.raises(Problem, match="fewer --cycles or more --steps"):
        Cyclical(0.5, 0.5)


def test_stairs() -> None:
    weight = Staircase(0.5, 18, 0.15, 5000)
    assert [weight.now(t) for t in (0, 4_999)] == [0.5, 0.5]
    assert weight.now(5_000) == weight.now(9_999) == pytest.approx(0.65)
    assert all(weight.now(t) <= weight.now(t + 2_500) <= 18 for t in range(0, 700_000, 2_500))
