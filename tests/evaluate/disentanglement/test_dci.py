"""Boosting equals scikit-learn's, and importances are spread as the formulas say."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sklearn
from sklearn.ensemble import GradientBoostingClassifier

from elboroom.core.problem import Problem
from elboroom.evaluate.boosting.growth import arranged
from elboroom.evaluate.boosting.stages import Boosting
from elboroom.evaluate.disentanglement import Grid, score
from elboroom.evaluate.disentanglement.dci import completeness, disentanglement
from elboroom.evaluate.disentanglement.registry import find


def _problem(n: int, classes: int, how: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(classes)
    y = rng.integers(classes, size=n)
    x = rng.normal(size=(n, 6)).astype(np.float32)
    x[:, 0] += 3 * y / classes
    x[:, 1] += np.sin(y)
    if how == "twice":
        x[:, 3] = x[:, 0]
    if how == "steps":
        x = np.round(2 * x) / 2
    if how == "repeated":
        x[n // 2 :], y[n // 2 :] = x[: n - n // 2], y[: n - n // 2]
    if how == "perfect":
        x[:, 0] = y
    if how == "constant":
        x[:, 4] = 7
    return x, y


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("n", "classes", "stages", "how"),
    [
        (300, 3, 40, "plain"),
        (300, 2, 40, "plain"),
        (300, 5, 20, "twice"),
        (300, 4, 20, "steps"),
        (400, 4, 20, "repeated"),
        (300, 4, 20, "perfect"),
        (300, 3, 20, "constant"),
        (4000, 5, 8, "plain"),
    ],
)
def test_boosting_is_scikit_learns(n: int, classes: int, stages: int, how: str, threads: int) -> None:
    x, y = _problem(n, classes, how)
    theirs = GradientBoostingClassifier(n_estimators=stages, random_state=3).fit(x, y)
    mine = Boosting(n_estimators=stages, random_state=3)
    with mine.on(threads):
        mine.fit(x, y)
    np.testing.assert_allclose(mine.feature_importances_, theirs.feature_importances_, atol=1e-12)
    np.testing.assert_allclose(mine.predict_proba(x), theirs.predict_proba(x), atol=1e-12)
    fresh = np.random.default_rng(9).normal(size=(500, 6)).astype(np.float32)
    np.testing.assert_allclose(mine.predict_proba(fresh), theirs.predict_proba(fresh), atol=1e-12)
    if how == "plain":
        assert mine.fallbacks < stages * classes / 10  # nearly all trees grow here


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_arranged_as_by_swapping(seed: int) -> None:
    rng = np.random.default_rng(seed)
    is_left = rng.permutation(np.arange(12) < rng.integers(1, 12))
    rows, start, end = np.arange(12), 0, 12
    while start < end:
        if is_left[rows[start]]:
            start += 1
        else:
            end -= 1
            rows[start], rows[end] = rows[end], rows[start]
    np.testing.assert_array_equal(np.concatenate(arranged(np.arange(12), is_left)), rows)


def test_the_formulas() -> None:
    assert disentanglement(np.eye(3)) == pytest.approx(1, abs=1e-8)
    assert completeness(np.eye(3)) == pytest.approx(1, abs=1e-8)
    even = np.full((4, 2), 0.25)
    assert disentanglement(even) == pytest.approx(0)
    assert completeness(even) == pytest.approx(0)
    twice = np.array([[0.5, 0], [0.5, 0], [0, 0.5], [0, 0.5]])
    assert disentanglement(twice) == pytest.approx(1, abs=1e-8)
    assert completeness(twice) == pytest.approx(1 - math.log(2) / math.log(4), abs=1e-8)
    assert disentanglement(np.zeros((4, 2))) == completeness(np.zeros((4, 2))) == 0
    assert disentanglement(np.ones((4, 1))) is None
    assert completeness(np.ones((1, 4))) is None
    dead = np.array([[1.0, 0], [0, 1], [1e-9, 1e-9]])  # a dead dimension has no weight
    assert disentanglement(dead) == pytest.approx(1, abs=1e-6)


FACTORS = np.stack(np.unravel_index(np.arange(24), (2, 3, 4)), 1)
NOISE = np.random.default_rng(0).normal(size=(24, 2))


@pytest.mark.parametrize("mode", ["dlib", "paper", "modern", "hist"])
def test_modes_on_perfect_codes(mode: str) -> None:
    grid = Grid(np.hstack([FACTORS, np.ones((24, 1))]), None, (2, 3, 4))
    found = find("dci")(grid, 0, mode, train=600, test=300)
    assert found.value == pytest.approx(1, abs=1e-3)
    assert found.parts["completeness"] == pytest.approx(1, abs=1e-3)
    assert found.parts["importance"].shape == (4, 3)
    error = found.settings["informativeness"] == "NRMSE, an error"
    assert found.parts["informativeness"] == pytest.approx(0 if error else 1, abs=1e-3)
    assert found.settings["scikit_learn"] == sklearn.__version__


def test_the_lasso_of_the_paper() -> None:
    grid = Grid(np.hstack([FACTORS, NOISE]), None, (2, 3, 4))
    found = find("dci")(grid, 0, "paper", train=600, test=300, regressor="lasso")
    assert found.value == pytest.approx(1, abs=0.05)
    with pytest.raises(Problem, match="unknown regressor 'ridge'"):
        find("dci")(grid, 0, "paper", regressor="ridge")


def test_reals_are_regressed_in_mode_modern() -> None:
    rng = np.random.default_rng(0)
    factors = np.column_stack([rng.normal(size=600), rng.integers(3, size=600)])
    found = score("dci", factors, factors, ["continuous", "categorical"], "modern", allow_smaller=True)
    assert found.value == pytest.approx(1, abs=0.05)
    assert found.settings["train"] == 400
    assert min(found.parts["test"]) > 0.95


def test_what_is_undefined_has_a_reason() -> None:
    one = score("dci", FACTORS.repeat(5, 0), FACTORS[:, 0].repeat(5), mode="dlib", allow_smaller=True)
    assert one.value is None
    assert "single factor" in one.reason
    assert one.to_json()["value"] is None
    thin = score("dci", FACTORS[:, :1].repeat(5, 0), FACTORS.repeat(5, 0), mode="modern", allow_smaller=True)
    assert thin.parts["completeness"] is None
    assert thin.value is not None


@pytest.mark.slow
def test_threads_change_no_score() -> None:
    grid = Grid(FACTORS @ np.random.default_rng(1).normal(size=(3, 3)), None, (2, 3, 4))
    one, two = (find("dci")(grid, 0, "dlib", train=200, test=100, threads=t) for t in (1, 2))
    assert one.to_json() == two.to_json()
