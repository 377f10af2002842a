"""How well single dimensions predict factors: by lines, by thresholds, by support vectors."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from elboroom.evaluate.disentanglement import Grid, score
from elboroom.evaluate.disentanglement.registry import find
from elboroom.evaluate.disentanglement.sap import balanced_accuracy, squared_correlation
from elboroom.evaluate.disentanglement.source import Stream

RNG = np.random.default_rng(0)


def _by_trial(codes: np.ndarray, classes: np.ndarray, repeat: bool = False) -> float:
    """Every choice of thresholds and of classes for the intervals."""
    present = np.unique(classes)
    values = np.unique(codes)
    best = 0.0
    for cuts in combinations(range(len(values) + 1), len(present) - 1):
        interval = np.searchsorted(cuts, np.searchsorted(values, codes), side="right")
        table = np.array([[np.mean(interval[classes == c] == i) for i in range(len(present))] for c in present])
        if repeat:
            best = max(best, table.max(0).sum())
        else:
            best = max(best, *(sum(table[p[i], i] for i in range(len(p))) for p in permutations(range(len(present)))))
    return best / len(present)


@pytest.mark.parametrize("seed", range(5))
def test_thresholds_are_the_best(seed: int) -> None:
    rng = np.random.default_rng(seed)
    classes = rng.integers(3, size=14)
    codes = np.round(rng.normal(size=14) + 0.7 * (classes == 1), 1)  # some codes are equal
    assert balanced_accuracy(codes, classes) == pytest.approx(_by_trial(codes, classes))


def test_thresholds_of_many_classes() -> None:
    classes = np.array([0, 1, 2, 3, 4, 0, 1, 2, 3, 4])
    codes = np.array([0, 1, 2, 3, 4, 0, 2, 1, 3, 4.5])
    assert balanced_accuracy(codes, classes) == pytest.approx(_by_trial(codes, classes, repeat=True))
    assert balanced_accuracy(classes * 0.1, classes) == pytest.approx(1)
    assert balanced_accuracy(np.zeros(10), classes) == pytest.approx(0.2)


def test_two_classes_need_one_threshold() -> None:
    assert balanced_accuracy(np.array([1.0, 2, 3, 4]), np.array([1, 1, 0, 0])) == 1


def test_squared_correlation_is_that_of_numpy() -> None:
    codes, values = RNG.normal(size=(100, 3)), RNG.normal(size=(100, 2))
    codes[:, 0] += values[:, 1]
    codes[:, 2] = 4
    expected = np.corrcoef(codes[:, :2].T, values.T)[:2, 2:] ** 2
    np.testing.assert_allclose(squared_correlation(codes, values)[:2], expected, atol=1e-12)
    assert not squared_correlation(codes, values)[2].any()


def test_it_is_the_protocol_of_the_study() -> None:
    mu = RNG.normal(size=(60, 2))
    grid, rng = Grid(mu, None, (3, 4, 5)), Stream(0)
    train, test = grid.draw(rng, 10_000), grid.draw(rng, 5_000)
    found = find("sap")(grid)
    for k, y in enumerate(grid.factors_at(train).T):
        for j in range(2):
            model = LinearSVC(C=0.01, class_weight="balanced").fit(mu[train, j, None], y)
            right = np.mean(model.predict(mu[test, j, None]) == grid.factors_at(test)[:, k])
            assert found.parts["scores"][j, k] == pytest.approx(right)
    assert found.value == pytest.approx(np.abs(np.diff(found.parts["scores"], axis=0)).mean())


def test_one_dimension_has_nothing_beside_it() -> None:
    factors = np.stack(np.unravel_index(np.arange(20), (4, 5)), 1)
    found = score("sap", factors[:, :1] * 1.0, factors, mode="paper", allow_smaller=True)
    np.testing.assert_allclose(found.parts["gaps"], [1, 0], atol=1e-12)


def test_an_inactive_dimension_scores_nothing() -> None:
    factors = np.stack(np.unravel_index(np.arange(20), (4, 5)), 1)
    codes = np.column_stack([factors[:, 0], 0.01 * factors[:, 1]])
    found = score("sap", codes, factors, ["categorical", "ordinal"], "paper", allow_smaller=True)
    assert found.parts["scores"][1].tolist() == [0, 0]
    assert found.settings["active"] == 1
    assert found.parts["ceiling"] == pytest.approx((0.75 + 1) / 2)


def test_its_intervals() -> None:
    factors = RNG.integers(5, size=(500, 2))
    codes = factors + RNG.normal(size=(500, 2))
    lines = score("sap", codes, factors, mode="paper", interval=True, allow_smaller=True)
    assert lines.interval is not None
    assert lines.interval["how"] == "percentile bootstrap"
    assert lines.interval["low"] < lines.value < lines.interval["high"]  # type: ignore[operator]


def test_dimensions_that_go_together_are_one_group() -> None:
    """Every informative column twice: none is ahead of its twin, but the pair is ahead of the rest."""
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(3, size=2000), rng.integers(5, size=2000), rng.integers(4, size=2000)], 1)
    kinds = ["categorical", "ordinal", "ordinal"]
    codes = factors + 0.3 * rng.normal(size=factors.shape)
    twice = np.concatenate([codes, -2 * codes + 0.1 * rng.normal(size=codes.shape), 0.001 * codes[:, :1]], 1)
    options = {"kinds": kinds, "allow_smaller": True}
    alone, apart = (score("sap", codes, factors, mode=mode, **options).value for mode in ("paper", "group"))
    assert alone == apart
    assert score("sap", twice, factors, mode="paper", **options).value < 0.1
    found = score("sap", twice, factors, mode="group", **options)
    assert found.value == pytest.approx(alone, abs=0.02)
    assert found.parts["groups"] == [[0, 3], [1, 4], [2, 5], [6]]  # the last is inactive
    assert found.settings["correlation"] == 0.5
    none = score("sap", twice, factors, mode="group", correlation=0.9999, **options)
    assert len(none.parts["groups"]) == 7


def test_a_factor_spread_over_two_correlated_dimensions_is_predicted_by_both() -> None:
    rng = np.random.default_rng(1)
    common, a, b = rng.normal(size=(3, 4000))
    codes = np.stack([common + a, common + b, rng.normal(size=4000)], 1)
    found = score(
        "sap", codes, (a - b)[:, None], kinds=["continuous"], mode="group", correlation=0.4, allow_smaller=True
    )
    assert found.value == pytest.approx(1, abs=1e-3)  # the difference of the two is the factor
