"""Agreement of runs: copies agree, strangers do not."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.linear_model import Lasso

from elboroom.core.problem import Problem
from elboroom.evaluate.disentanglement.udr import Correlation, lasso, model_centrality, relative_strength, udr

Run = tuple[NDArray[np.float64], NDArray[np.float64]]
BOTH: tuple[Correlation, Correlation] = ("lasso", "spearman")


def copies(n: int = 2000, dims: int = 5, count: int = 4) -> list[Run]:
    """The same codes, their dimensions permuted, flipped and rescaled."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((n, dims))
    turned = [z[:, rng.permutation(dims)] * rng.choice([-1, 1], dims) * rng.uniform(0.5, 2, dims) for _ in range(count)]
    return [(codes, np.ones(dims)) for codes in turned]


def strangers(n: int = 2000, dims: int = 5, count: int = 4) -> list[Run]:
    rng = np.random.default_rng(1)
    return [(rng.standard_normal((n, dims)), np.ones(dims)) for _ in range(count)]


def test_copies_agree_and_strangers_do_not() -> None:
    assert udr(copies(), "spearman").values == pytest.approx([1] * 4, abs=0.15)
    assert udr(copies(), "lasso").values == pytest.approx([0.9] * 4, abs=1e-2)  # the penalty takes 0.1 of each
    assert max(udr(strangers(), "lasso").values) == 0
    assert max(udr(strangers(), "spearman").values) < 0.05


def test_rotated_codes_agree_less() -> None:
    runs = copies()
    turn = np.linalg.qr(np.random.default_rng(2).standard_normal((5, 5)))[0]
    mixed = [*runs[:3], (runs[3][0] @ turn, runs[3][1])]
    for correlation in BOTH:
        found = udr(mixed, correlation)
        assert np.argmin(found.values) == 3
        assert found.best != 3


def test_the_lasso_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((500, 6)) @ rng.standard_normal((6, 6))
    y = x @ rng.standard_normal((6, 4)) + rng.standard_normal((500, 4))
    x, y = ((a - a.mean(0)) / a.std(0) for a in (x, y))
    wanted = Lasso(alpha=0.1, tol=1e-12, max_iter=100_000).fit(x, y).coef_.T
    np.testing.assert_allclose(lasso(x.T @ x / 500, x.T @ y / 500), wanted, atol=1e-6)


def test_the_score_of_a_pair_is_that_of_its_definition() -> None:
    rng = np.random.default_rng(4)
    runs = [(rng.standard_normal((800, 3)), np.array([1.0, 1.0, 0.001])) for _ in range(3)]
    runs[1][0][:, 0] += runs[0][0][:, 1]
    runs[2][0][:, 1] -= runs[0][0][:, 1] + runs[1][0][:, 1]
    found = udr(runs, "spearman")
    for i, j in ((0, 1), (1, 2), (2, 0)):
        matrix = np.abs(spearmanr(runs[i][0], runs[j][0]).statistic[:2, 3:5])  # the third is dead in both
        wanted = 0.5 * sum(np.mean(matrix.max(axis) ** 2 / matrix.sum(axis)) for axis in (0, 1))
        assert found.pairs[i, j] == pytest.approx(wanted)
    # asymmetric with the lasso: a run is judged by how the others map to it
    judged = udr(runs, "lasso")
    assert judged.values[0] == pytest.approx(np.median(judged.pairs[[1, 2], 0]))


def test_relative_strength() -> None:
    assert relative_strength(np.eye(4)[[2, 0, 3, 1]]) == 1
    assert relative_strength(np.zeros((3, 3))) == 0
    assert relative_strength(np.zeros((0, 3))) == 0
    assert relative_strength(np.ones((2, 2))) == 0.5


@pytest.mark.parametrize("correlation", BOTH)
def test_edges(correlation: Correlation) -> None:
    z = np.random.default_rng(5).standard_normal((300, 3))
    dead = udr([(z, np.zeros(3)), (z, np.ones(3)), (z, np.ones(3))], correlation)
    assert dead.values[0] == 0
    assert dead.settings["live"] == [0, 3, 3]
    constant = udr([(np.ones((300, 2)), np.ones(2)), (z, np.ones(3))], correlation)
    assert constant.values == [0, 0]
    one = udr([(z[:, :1], np.ones(1)), (-z[:, :1], np.ones(1))], correlation)
    assert min(one.values) > 0.89
    json.dumps(one.to_json(), allow_nan=False)
    assert udr([(z[:, ::-1], np.ones(3)), (z + 1, np.ones(3))], correlation).values == pytest.approx(
        udr([(z, np.ones(3)), (z, np.ones(3))], correlation).values, abs=1e-6
    )


def test_what_is_wrong_is_said() -> None:
    z = np.ones((10, 2))
    with pytest.raises(Problem, match="at least 2"):
        udr([(z, np.ones(2))])
    with pytest.raises(Problem, match="same images; they have 9 and 10"):
        udr([(z, np.ones(2)), (z[:9], np.ones(2))])
    with pytest.raises(Problem, match="run 1 has 2 dimensions"):
        udr([(z, np.ones(2)), (z, np.ones(3))])
    with pytest.raises(Problem, match="correlation"):
        udr([(z, np.ones(2)), (z, np.ones(2))], "pearson")  # type: ignore[arg-type]


def test_the_stranger_is_the_least_central() -> None:
    runs = [codes for codes, _ in (*copies(1000, 3, 3), *strangers(1000, 3, 1))]
    found = model_centrality(runs)
    assert np.argmin(found.values) == 3
    assert min(found.values[:3]) > 0.6
    np.testing.assert_allclose(found.pairs, found.pairs.T)
    assert model_centrality(runs).values == found.values
    flat = model_centrality([np.zeros((1000, 3)), *runs[:2]])
    assert flat.pairs[0].tolist() == [0, 0, 0]
