"""Modularity and explicitness against codes whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from elboroom.evaluate.disentanglement import Grid, Rows, evaluate, score
from elboroom.evaluate.disentanglement.modularity import auc, informative, modularity, probabilities
from elboroom.evaluate.disentanglement.mutual_information import mutual_information

DSPRITES = (3, 6, 40, 32, 32)


def factorial(*sizes: int) -> NDArray[np.int64]:
    return np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), -1).reshape(-1, len(sizes))


@pytest.fixture(scope="module")
def dsprites() -> Grid:
    """Index codes and five columns of noise, over the grid of dSprites."""
    factors = factorial(*DSPRITES)
    noise = np.random.default_rng(0).standard_normal((len(factors), 5))
    return Grid(np.concatenate([factors, noise], 1).astype(np.float32), sizes=DSPRITES)


@pytest.mark.parametrize(("mode", "value", "within"), [("dlib", 0.84, 0.01), ("modern", 1.0, 1e-3)])
def test_five_perfect_and_five_noise_dimensions(dsprites: Grid, mode: str, value: float, within: float) -> None:
    found = evaluate(dsprites, "modularity", mode)["modularity"]
    assert found.value == pytest.approx(value, abs=within)
    assert found.settings["n"] == 10_000
    assert found.settings["active"] == (10 if mode == "dlib" else 5)


def test_the_formula_by_hand() -> None:
    information = np.array([[2.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 3.0, 0.0]])
    np.testing.assert_allclose(modularity(information), [1 - 1 / 8, 0, 0, 1])


def test_a_rotation_of_two_binary_factors_has_none() -> None:
    factors = np.tile(factorial(2, 2), (500, 1))
    a, b = (2 * factors - 1).T
    codes = np.stack([a + b, a - b], 1) / np.sqrt(2)
    found = score("modularity", codes, factors, allow_smaller=True)
    assert found.value == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(found.parts["information"], np.log(2) / 2)


def test_one_factor_leaves_it_undefined_and_constant_codes_make_it_zero() -> None:
    factors = factorial(4, 5).repeat(20, 0)
    alone = score("modularity", factors.astype(float), factors[:, :1], allow_smaller=True)
    assert alone.value is None
    assert "two factors" in alone.reason
    for mode in ("dlib", "modern"):
        dead = score("modularity", np.ones((400, 3)), factors, mode=mode, allow_smaller=True)
        assert dead.value == 0
        assert dead.settings["active"] == 0


@pytest.mark.parametrize("mode", ["dlib", "modern"])
@pytest.mark.parametrize("name", ["modularity", "explicitness"])
def test_column_order_changes_nothing_and_a_seed_gives_one_answer(name: str, mode: str) -> None:
    rng = np.random.default_rng(1)
    factors = factorial(3, 4, 5).repeat(20, 0)
    codes = np.concatenate([factors + rng.standard_normal(factors.shape), rng.standard_normal((len(factors), 2))], 1)
    found = score(name, codes, factors, mode=mode, allow_smaller=True)
    turned = score(name, codes[:, ::-1], factors, mode=mode, allow_smaller=True)
    again = score(name, codes, factors, mode=mode, allow_smaller=True)
    assert found.value == pytest.approx(turned.value, abs=1e-4 if name == "explicitness" else 1e-12)
    assert found.to_json() == again.to_json()


def test_information_by_chance_is_told_from_information() -> None:
    rng = np.random.default_rng(2)
    classes = rng.integers(8, size=(4000, 2))
    bins = np.stack([classes[:, 0], rng.integers(20, size=4000)], 1)
    assert informative(bins, classes, mutual_information(bins, classes)).tolist() == [True, False]


def test_the_area_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(3)
    classes = rng.integers(4, size=300)
    scores = rng.random((300, 5)).round(1) + np.eye(5)[classes] * 0.3  # with ties
    found = auc(scores, classes)
    np.testing.assert_allclose(found[:4], [roc_auc_score(classes == c, scores[:, c]) for c in range(4)])
    assert np.isnan(found[4])  # absent


def test_explicit_codes_and_codes_of_chance() -> None:
    rng = np.random.default_rng(4)
    factors = factorial(3, 4).repeat(150, 0)
    clear = np.concatenate([np.eye(3)[factors[:, 0]], np.eye(4)[factors[:, 1]]], 1)
    noise = rng.standard_normal((len(factors), 7))
    for mode, chance in (("dlib", 0.5), ("modern", 0.0)):
        best = score("explicitness", clear, factors, mode=mode, allow_smaller=True)
        assert best.value == pytest.approx(1, abs=1e-9)
        worst = score("explicitness", noise, factors, mode=mode, allow_smaller=True)
        assert worst.value == pytest.approx(chance, abs=0.1)
        assert worst.settings["chance"] == chance
        constant = score("explicitness", np.ones((len(factors), 2)), factors, mode=mode, allow_smaller=True)
        assert constant.value == pytest.approx(chance)


def test_a_value_that_the_test_points_lack_is_left_out_and_counted() -> None:
    rng = np.random.default_rng(5)
    codes, factors = rng.standard_normal((60, 2)), rng.integers(3, size=(60, 1))
    absent = []
    for row in range(10):
        rare = np.where(np.arange(60)[:, None] == row, 3, factors)  # one row alone has the value 3
        found = score("explicitness", codes, rare, mode="modern", allow_smaller=True)
        assert found.value is not None
        absent.append(found.parts["absent"]["factor 0"])
    assert set(absent) == {0, 1}


def test_an_unseen_value_gets_no_probability() -> None:
    codes = np.random.default_rng(6).standard_normal((20, 2))
    seen, others = probabilities(codes, np.arange(20) % 2 * 2, codes[:5], 4)
    assert seen.shape == (20, 4)
    assert (others[:, [1, 3]] == 0).all()
    assert (probabilities(codes, np.full(20, 1), codes, 3)[0] == [0, 1, 0]).all()


def test_rows_and_grid_have_the_same_ceiling() -> None:
    factors = factorial(2, 4, 5)
    codes = np.concatenate([factors[:, ::-1] * [0.5, 2.0, 1.3], np.ones((40, 2))], 1)
    rows = Rows(codes, factors, allow_smaller=True)
    assert evaluate(rows, "modularity", "modern")["modularity"].value == pytest.approx(1, abs=1e-12)
    assert evaluate(rows, "modularity", "dlib")["modularity"].value == pytest.approx(3 / 5, abs=1e-12)
