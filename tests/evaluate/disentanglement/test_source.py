"""Points are drawn as the study draws them, and rows without a grid keep their law."""

from __future__ import annotations

import numpy as np
import pytest

from elboroom.core.problem import Problem
from elboroom.evaluate.disentanglement.source import Grid, Rows, Stream, stream

SIZES = (3, 6, 5, 8)


@pytest.fixture
def grid() -> Grid:
    mu = np.random.default_rng(0).normal(size=(720, 4)).astype(np.float32)
    return Grid(mu, np.full_like(mu, -2), SIZES, ("shape", "scale", "posX", "posY"))


def _batch(rng: np.random.RandomState, n: int) -> np.ndarray:
    """n factor vectors: one call for each factor in order."""
    return np.stack([rng.randint(size, size=n) for size in SIZES], 1)


def _row(factors: np.ndarray) -> np.ndarray:
    return np.ravel_multi_index(tuple(factors.T), SIZES)


@pytest.mark.parametrize("n", [1, 16, 50, 160])
def test_points_come_in_chunks_of_16(grid: Grid, n: int) -> None:
    mine, theirs = Stream(3), np.random.RandomState(3)
    expected = np.concatenate([_row(_batch(theirs, min(16, n - at))) for at in range(0, n, 16)])
    np.testing.assert_array_equal(grid.draw(mine, n), expected)
    assert mine.randint(10**6) == theirs.randint(10**6)  # and leave the generator at the same place


def test_one_batch_is_drawn_at_once(grid: Grid) -> None:
    np.testing.assert_array_equal(grid.batch(Stream(0), 100), _row(_batch(np.random.RandomState(0), 100)))


def test_pairs_are_those_of_the_study(grid: Grid) -> None:
    mine, theirs = Stream(0), np.random.RandomState(0)
    labels, first, second = grid.pairs(mine, 30, 8)
    for i in range(30):
        k, f1, f2 = theirs.randint(4), _batch(theirs, 8), _batch(theirs, 8)
        f2[:, k] = f1[:, k]
        assert labels[i] == k
        np.testing.assert_array_equal(first[i], _row(f1))
        np.testing.assert_array_equal(second[i], _row(f2))
    assert mine.randint(10**6) == theirs.randint(10**6)


def test_votes_are_those_of_the_study(grid: Grid) -> None:
    mine, theirs = Stream(0), np.random.RandomState(0)
    labels, index = grid.votes(mine, 1200, 8)  # more than are drawn in one call
    for i in range(1200):
        k, f = theirs.randint(4), _batch(theirs, 8)
        f[:, k] = f[0, k]
        assert labels[i] == k
        np.testing.assert_array_equal(index[i], _row(f))


def test_factors_of_an_index(grid: Grid) -> None:
    expected = np.stack(np.unravel_index(np.arange(720), SIZES), 1)
    np.testing.assert_array_equal(grid.factors_at(np.arange(720)), expected)


def test_a_constant_factor_draws_nothing(grid: Grid) -> None:
    with pytest.warns(UserWarning, match="'colour' has a single value"):
        coloured = Grid(grid.mu, None, (1, *SIZES), ("colour", *grid.names))
    assert coloured.names == grid.names
    np.testing.assert_array_equal(coloured.draw(Stream(0), 40), grid.draw(Stream(0), 40))
    labels, first, _ = coloured.pairs(Stream(0), 200, 4)
    assert set(labels) == {0, 1, 2, 3}
    np.testing.assert_array_equal(first, grid.pairs(Stream(0), 200, 4)[1])
    np.testing.assert_array_equal(coloured.factors_at(np.arange(720)), grid.factors_at(np.arange(720)))


def test_samples_are_fresh_and_move_no_draw(grid: Grid) -> None:
    sampled, rng = grid.represented("sampled"), Stream(0)
    index = sampled.draw(rng, 100)
    a, b = sampled.codes_at(np.array([5, 5]), rng)
    assert not np.allclose(a, b)
    np.testing.assert_array_equal(index, grid.draw(Stream(0), 100))
    other = Stream(0)
    grid.draw(other, 100)
    assert rng.randint(10**6) == other.randint(10**6)
    many = sampled.codes_at(np.full(20_000, 5), rng) - grid.mu[5]
    np.testing.assert_allclose(many.std(0), np.exp(-1), rtol=0.03)


def test_a_grid_that_is_none(grid: Grid) -> None:
    with pytest.raises(Problem, match="3 x 6 factors does not have 720"):
        Grid(grid.mu, None, (3, 6))
    with pytest.raises(Problem, match="use the representation 'mean'"):
        Grid(grid.mu, None, SIZES).represented("sampled")
    with pytest.raises(Problem, match="'mode'"):
        Grid(grid.mu, None, SIZES, representation="mode")


@pytest.fixture
def rows() -> Rows:
    rng = np.random.default_rng(0)
    first = rng.choice(4, size=600, p=[0.1, 0.2, 0.3, 0.4])
    return Rows(rng.normal(size=(600, 3)), np.column_stack([first, (first + rng.integers(2, size=600)) % 4]))


def test_observed_pairs_agree_in_the_factor(rows: Rows) -> None:
    labels, first, second = rows.pairs(Stream(0), 3000, 6)
    a, b = rows.factors_at(first), rows.factors_at(second)  # (n, L, K)
    every = np.arange(3000)
    np.testing.assert_array_equal(a[every, :, labels], b[every, :, labels])
    shares = np.bincount(a[..., 0][labels == 0].ravel()) / a[..., 0][labels == 0].size
    np.testing.assert_allclose(shares, np.bincount(rows.factors.classes[:, 0]) / 600, atol=0.02)
    assert abs(np.mean(labels == 0) - 0.5) < 0.05


def test_observed_votes_share_the_value(rows: Rows) -> None:
    labels, index = rows.votes(Stream(0), 500, 10)
    fixed = rows.factors_at(index)[np.arange(500), :, labels]  # (n, L)
    assert (fixed == fixed[:, :1]).all()


def test_rows_to_fit_and_to_test_are_disjoint(rows: Rows) -> None:
    train, test = rows.split(Stream(0), 300, 150)
    assert (len(train), len(test)) == (300, 150)
    assert not set(train) & set(test)
    with pytest.raises(Problem, match="needs 15,000 rows but there are 600"):
        rows.split(Stream(0), 10_000, 5_000)
    fewer = rows.take(np.arange(600))  # which may be fewer
    train, test = fewer.split(Stream(0), 10_000, 5_000)
    assert (len(train), len(test)) == (400, 200)
    assert not set(train) & set(test)


def test_values_of_one_row_are_never_fixed() -> None:
    factor = np.array([0, 0, 0, 1, 1, 1, 2])
    rows = Rows(np.random.default_rng(0).normal(size=(7, 2)), np.column_stack([factor, np.arange(7)]))
    with pytest.warns(UserWarning, match="with a single row.*1 of 'factor 0', 7 of 'factor 1'"):
        labels, index = rows.votes(Stream(0), 100, 5)
    assert set(labels) == {0}
    assert 6 not in index
    with pytest.raises(Problem, match="none can be fixed"):
        Rows(np.eye(3), np.arange(3)).votes(Stream(0), 5, 5)


def test_streams_are_the_study_s_or_the_metric_s_own() -> None:
    assert stream(0, "mig", "dlib").randint(10**6) == np.random.RandomState(0).randint(10**6)
    other = [stream(0, name, "modern").randint(10**6) for name in ("mig", "sap", "mig")]
    assert other[0] == other[2] != other[1]
