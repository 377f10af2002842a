"""The gap of mutual information, by bins, by quadrature and by neighbours."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import mutual_info_score

from elboroom.core.problem import Problem
from elboroom.evaluate.disentanglement import Grid, score
from elboroom.evaluate.disentanglement.mig import quadrature_information
from elboroom.evaluate.disentanglement.mutual_information import (
    binned,
    entropy,
    gap,
    histogram_information,
    mutual_information,
    neighbour_information,
)
from elboroom.evaluate.disentanglement.registry import find

RNG = np.random.default_rng(0)


def test_plug_in_information_is_scikit_learns() -> None:
    a, b = RNG.integers(7, size=(500, 3)), RNG.integers(4, size=(500, 2))
    b[:, 0] = (b[:, 0] + a[:, 1]) % 4
    expected = [[mutual_info_score(x, y) for y in b.T] for x in a.T]
    np.testing.assert_allclose(mutual_information(a, b), expected, atol=1e-12)
    np.testing.assert_allclose(entropy(b), [mutual_info_score(y, y) for y in b.T], atol=1e-12)


def test_bins_have_equal_width_and_the_top_is_in_the_last() -> None:
    codes = np.array([[0.0], [0.05], [0.1], [0.96], [1.0]])
    assert binned(codes, 20)[:, 0].tolist() == [0, 1, 2, 19, 19]
    assert set(binned(np.full((5, 1), 3.0))[:, 0]) == {0}  # a constant is in one bin


def test_the_gap_of_one_dimension_is_its_information() -> None:
    np.testing.assert_array_equal(gap(np.array([[0.3, 0.0]])), [0.3, 0])
    np.testing.assert_array_equal(gap(np.array([[0.3, 0.5], [0.5, 0.5], [0.1, 0]])), [0.2, 0])


def test_it_is_divided_by_the_entropy_of_the_factor() -> None:
    """Two dimensions that stand for two factors: 1, not 0, in spite of what a transposed matrix would say."""
    factors = np.stack(np.unravel_index(np.arange(8), (2, 4)), 1)
    found = score(
        "mig", np.column_stack([factors[:, 1], factors[:, 0], factors[:, 1] % 2]), factors, allow_smaller=True
    )
    # the second factor is half told by its last bit
    assert found.parts["gaps"].tolist() == pytest.approx([1, 0.5])
    np.testing.assert_allclose(found.parts["mi"][:, 1], [math.log(4), 0, math.log(2)], atol=1e-12)


def test_neighbours_find_the_information_of_gaussians() -> None:
    classes = RNG.integers(2, size=(4000, 1))
    codes = np.column_stack([RNG.normal(size=4000) + 6 * classes[:, 0], RNG.normal(size=4000), np.ones(4000)])
    found = neighbour_information(codes, classes)
    np.testing.assert_allclose(found[:, 0], [math.log(2), 0, 0], atol=0.02)


@pytest.fixture
def grid() -> Grid:
    factors = np.stack(np.unravel_index(np.arange(60), (3, 4, 5)), 1)
    mu = factors @ RNG.normal(size=(3, 2)) * 0.5
    return Grid(mu, np.log(RNG.uniform(0.05, 0.3, (60, 2))), (3, 4, 5), ("shape", "scale", "posX"))


def test_quadrature_agrees_with_samples(grid: Grid) -> None:
    """H(z_j) - mean_v H(z_j | v), each entropy as the mean of -log q over samples of q(z|x)."""
    factors = grid.factors_at(grid.every())
    found = quadrature_information(grid, factors)
    sigma, n = np.exp(grid.logvar / 2), 10_000  # type: ignore[operator]
    rng = np.random.default_rng(1)
    rows = rng.integers(60, size=n)
    z = grid.mu[rows] + sigma[rows] * rng.normal(size=(n, 2))
    for j in range(2):
        density = norm.pdf(z[:, j, None], grid.mu[:, j], sigma[:, j])  # (n, N)
        for k in range(3):
            same = factors[rows, k][:, None] == factors[:, k]
            given = (density * same).sum(1) / same.sum(1)
            values = np.log(given) - np.log(density.mean(1))
            assert abs(found[j, k] - values.mean()) < 3 * values.std() / math.sqrt(n)


def test_quadrature_leaves_out_the_shape_as_published(grid: Grid) -> None:
    plain, whole = (find("mig")(grid, 0, "continuous-quadrature", without=w) for w in (None, ()))
    assert plain.settings["without"] == ["shape"]
    assert plain.value == pytest.approx(plain.parts["gaps"][1:].mean())
    assert whole.value == pytest.approx(whole.parts["gaps"].mean())
    with pytest.raises(Problem, match="no factor is left"):
        find("mig")(grid, 0, "dlib", without=grid.names)


def test_quadrature_of_what_tells_nothing(grid: Grid) -> None:
    collapsed = Grid(np.zeros((60, 2)), np.zeros((60, 2)), grid.sizes)
    assert find("mig")(collapsed, 0, "continuous-quadrature").value == pytest.approx(0, abs=1e-12)
    tiny = Grid(grid.mu, np.full((60, 2), -40.0), grid.sizes)
    with pytest.raises(Problem, match="too small for the range"):
        find("mig")(tiny, 0, "continuous-quadrature")


def test_all_points_in_ten_bins(grid: Grid) -> None:
    found = find("mig")(grid, 0, "bins-10-full")
    assert (found.settings["n"], found.settings["bins"]) == (60, 10)
    expected = histogram_information(grid.mu, grid.factors_at(grid.every()), 10)
    np.testing.assert_allclose(found.parts["mi"], expected)


def test_its_interval_on_arrays_is_over_half_samples() -> None:
    factors = RNG.integers(5, size=(1000, 2))
    codes = factors + 0.5 * RNG.normal(size=(1000, 2))
    found = score("mig", codes, factors, interval=True, allow_smaller=True)
    assert found.interval is not None
    assert (found.interval["how"], found.interval["n"]) == ("half-samples", 200)
    assert found.interval["low"] < found.value < found.interval["high"]  # type: ignore[operator]
    assert found.interval["high"] - found.interval["low"] < 0.15
