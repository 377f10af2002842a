"""The interventional robustness score of codes whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from elboroom.core.problem import Problem
from elboroom.evaluate.disentanglement import Grid, evaluate, score
from elboroom.evaluate.disentanglement.irs import robustness

DSPRITES = (3, 6, 40, 32, 32)


def factorial(*sizes: int) -> NDArray[np.int64]:
    return np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), -1).reshape(-1, len(sizes))


@pytest.fixture(scope="module")
def perfect() -> Grid:
    """Index codes of dSprites, and a constant."""
    codes = factorial(*DSPRITES)
    return Grid(np.concatenate([codes, np.full((len(codes), 1), 0.1)], 1).astype(np.float32), sizes=DSPRITES)


@pytest.mark.parametrize(("mode", "value", "within"), [("dlib", 0.98, 0.005), ("paper", 1.0, 1e-6)])
def test_a_perfect_index_code(perfect: Grid, mode: str, value: float, within: float) -> None:
    found = evaluate(perfect, "irs", mode)["irs"]
    assert found.value == pytest.approx(value, abs=within)
    assert found.settings["active"] == 5  # a number of dimensions, the constant one dropped
    assert found.parts["matrix"].shape == (5, 5)


def test_the_formula_by_hand() -> None:
    codes = np.array([[0.0], [1.0], [4.0], [7.0]])
    matrix, largest = robustness(codes, np.array([[0], [0], [1], [1]]), quantile=1.0)
    assert largest.tolist() == [4]  # from the mean 3
    assert matrix.tolist() == [[1 - (0.5 + 1.5) / 2 / 4]]


def test_noise_is_not_robust_and_constants_score_zero() -> None:
    rng = np.random.default_rng(0)
    factors = factorial(4, 5).repeat(100, 0)
    noise = score("irs", rng.standard_normal((2000, 3)), factors, mode="paper", allow_smaller=True)
    assert noise.value is not None
    assert noise.value < 0.4
    dead = score("irs", np.ones((2000, 3)), factors, allow_smaller=True)
    assert (dead.value, dead.settings["active"]) == (0, 0)


def test_continuous_factors_are_cut_in_one_mode_and_refused_in_the_other() -> None:
    rng = np.random.default_rng(1)
    factors = rng.random((2000, 2))
    found = score("irs", factors * [1, 3], factors, allow_smaller=True)
    assert found.value is not None
    assert found.value > 0.9
    with pytest.raises(Problem, match="continuous"):
        score("irs", factors, factors, mode="paper", allow_smaller=True)


@pytest.mark.parametrize("mode", ["dlib", "paper"])
def test_column_order_and_shifts_change_nothing_but_scale_does(mode: str) -> None:
    rng = np.random.default_rng(2)
    factors = factorial(3, 4, 5).repeat(10, 0)
    codes = factors + 0.5 * rng.standard_normal(factors.shape)
    found = score("irs", codes, factors, mode=mode, allow_smaller=True)
    moved = score("irs", codes[:, [2, 0, 1]] + 7, factors, mode=mode, allow_smaller=True)
    assert moved.value == pytest.approx(found.value, abs=1e-12)
    scaled = score("irs", codes * [1, 1, 100], factors, mode=mode, allow_smaller=True)
    assert scaled.value != pytest.approx(found.value, abs=1e-3)
    assert found.to_json() == score("irs", codes, factors, mode=mode, allow_smaller=True).to_json()
