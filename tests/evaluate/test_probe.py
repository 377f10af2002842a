"""The linear probe, on codes whose classes are known to lie where they lie."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from elboroom.core.problem import Problem
from elboroom.evaluate.probe import probe

Floats = NDArray[np.float64]


def clouds(n: int, apart: float = 2.0, seed: int = 0, scale: float = 1.0) -> tuple[Floats, NDArray[np.int64]]:
    """Two Gaussian clouds `apart` along the first of four axes, the third of which is constant."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    x = rng.standard_normal((n, 4))
    x[:, 0] += apart * (y - 0.5)
    x[:, 2] = 3
    return x * scale, y


def test_many_labels_reach_the_best_rule() -> None:
    """Of two clouds at distance 2 the best rule is right Phi(1) of the time."""
    x, y = clouds(3_000)
    others, answers = clouds(4_000, seed=1)
    found = probe(x, y, others, answers, sizes=(10, 100, 1_000), draws=5)
    assert list(found) == ["probe-10", "probe-100", "probe-1000"]
    few, some, many = (number.value or 0 for number in found.values())
    assert 0.5 < few < some <= many + 0.005
    assert many == pytest.approx(norm.cdf(1), abs=0.015)
    number = found["probe-100"]
    draws = number.parts["draws"]
    assert len(draws) == 5
    assert len(set(draws)) > 1
    assert number.value == pytest.approx(np.mean(draws))
    assert number.errors["labels"] == pytest.approx(np.std(draws, ddof=1) / math.sqrt(5))
    assert number.errors["sampling"] == pytest.approx(math.sqrt(some * (1 - some) / 4_000))
    assert number.parts["majority"] == pytest.approx(0.5, abs=0.03)
    assert number.settings["labels"] == 100
    assert number.settings["draws"] == 5
    assert probe(x, y, others, answers, sizes=(10, 100, 1_000), draws=5) == found
    assert probe(x, y, others, answers, sizes=(100,), draws=5)["probe-100"] == number  # whatever is beside it
    assert probe(x, y, others, answers, sizes=(100,), draws=5, seed=1)["probe-100"] != number
    json.dumps([n.to_json() for n in found.values()], allow_nan=False)


def test_the_unit_of_a_code_does_not_matter() -> None:
    """Standardised by the labelled codes, and not by the test codes, which may be others."""
    x, y = clouds(300)
    others, answers = clouds(500, seed=1)
    unit = np.array([1e-4, 1e3, 1.0, 5.0])
    plain = probe(x, y, others, answers, sizes=(50,))["probe-50"]
    scaled = probe(x * unit + 7, y, others * unit + 7, answers, sizes=(50,))["probe-50"]
    assert scaled.parts["draws"] == pytest.approx(plain.parts["draws"])
    half = answers == 0
    rest = [probe(x, y, others[k], answers[k], sizes=(50,))["probe-50"].value or 0 for k in (half, ~half)]
    assert np.average(rest, weights=[half.sum(), (~half).sum()]) == pytest.approx(plain.value)


def accuracy(x: Floats, y: NDArray[np.int64], others: Floats, answers: NDArray[np.int64]) -> float:
    scale = np.where(x.std(0) > 0, x.std(0), 1)
    model = LogisticRegression(max_iter=1000).fit((x - x.mean(0)) / scale, y)
    return float(np.mean(model.predict((others - x.mean(0)) / scale) == answers))


def test_all_labels_are_one_draw_by_plain_logistic_regression() -> None:
    x, y = clouds(200)
    others, answers = clouds(500, seed=1)
    number = probe(x, y, others, answers, sizes=(200,))["probe-200"]
    assert number.settings["draws"] == 1
    assert "labels" not in number.errors
    assert number.value == accuracy(x, y, others, answers)


def test_fewer_labels_are_drawn_without_replacement() -> None:
    x, y = clouds(100, apart=0.5)
    others, answers = clouds(500, apart=0.5, seed=1)
    number = probe(x, y, others, answers, sizes=(20,), draws=4, seed=7)["probe-20"]
    for draw, value in enumerate(number.parts["draws"]):
        chosen = np.random.default_rng([7, 20, draw]).permutation(100)[:20]
        assert value == accuracy(x[chosen], y[chosen], others, answers)


def test_more_labels_than_there_are_have_no_value() -> None:
    x, y = clouds(600)
    found = probe(x, y, x, y, draws=2)
    assert [number.value is None for number in found.values()] == [False, False, True, True, True]
    assert found["probe-1000"].reason == "there are only 600 labelled codes, not 1,000"


def test_labels_of_any_kind_and_tensors() -> None:
    x, y = clouds(300)
    kinds = (y, y.astype(bool), np.where(y == 1, "good", "bad"), ["yes" if k else "no" for k in y], y.astype(object))
    values = {probe(torch.tensor(x), k, torch.tensor(x), k, sizes=(50,), draws=2)["probe-50"].value for k in kinds}
    assert len(values) == 1


def test_a_class_that_labels_lack_is_an_error_and_one_labelled_class_a_constant() -> None:
    x, y = clouds(200, apart=20)
    third = np.where(np.arange(200) < 50, 2, y)
    assert probe(x, y, x, third, sizes=(200,))["probe-200"].value == pytest.approx(0.75)
    rare = np.zeros(200, int)
    rare[0] = 1
    number = probe(x, rare, x, rare, sizes=(3,), draws=4)["probe-3"]
    assert number.value == pytest.approx(0.995)
    assert number.parts["majority"] == pytest.approx(0.995)


def test_three_classes() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    x = np.eye(3)[y] * 9 + rng.standard_normal((400, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        number = probe(x, y, x, y, sizes=(100,), draws=3)["probe-100"]
    assert number.value == pytest.approx(1, abs=0.01)


def test_mistakes_are_said() -> None:
    x, y = clouds(50)
    bad = x.copy()
    bad[3, 1] = np.nan
    with pytest.raises(Problem, match="the array of codes has 1 value"):
        probe(bad, y, x, y)
    with pytest.raises(Problem, match="the array of test codes has 1 value"):
        probe(x, y, bad, y)
    with pytest.raises(Problem, match="all labels are 0; a probe needs at least two classes"):
        probe(x, y * 0, x, y)
    with pytest.raises(Problem, match=r"the labels of the codes have shape \(49,\), not \(50,\)"):
        probe(x, y[1:], x, y)
    with pytest.raises(Problem, match="the labels of the test codes have values that are NaN"):
        probe(x, y, x, np.where(y == 1, np.nan, y))
    with pytest.raises(Problem, match="4 dimensions but the test codes have 3"):
        probe(x, y, x[:, :3], y)
    with pytest.raises(Problem, match="the array of codes has 0 rows"):
        probe(x[:0], y[:0], x, y)
    for sizes, draws in (((), 1), ((0,), 1), ((10,), 0)):
        with pytest.raises(Problem, match="at least one label and one draw"):
            probe(x, y, x, y, sizes=sizes, draws=draws)
