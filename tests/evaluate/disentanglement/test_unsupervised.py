"""Measures of codes alone, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import sqrtm

from elboroom.evaluate.disentanglement import score
from elboroom.evaluate.disentanglement.unsupervised import (
    covariance,
    gaussian_total_correlation,
    gaussian_wasserstein_correlation,
)

NAMES = ("gaussian-tc", "gaussian-wasserstein", "gaussian-wasserstein-norm", "mean-mi")


def test_total_correlation_of_a_correlated_pair() -> None:
    for rho in (0.0, 0.5, -0.9):
        c = np.array([[1.0, 3 * rho], [3 * rho, 9.0]])
        assert gaussian_total_correlation(c) == pytest.approx(-0.5 * np.log(1 - rho**2))


def test_both_against_the_usual_formulas() -> None:
    a = np.random.default_rng(0).standard_normal((6, 6))
    c = a @ a.T + 0.1 * np.eye(6)
    d = np.diag(np.diag(c))
    assert gaussian_total_correlation(c) == pytest.approx(0.5 * (np.log(np.diag(c)).sum() - np.linalg.slogdet(c)[1]))
    wanted = 2 * np.trace(c) - 2 * np.trace(sqrtm(d @ c)).real
    assert gaussian_wasserstein_correlation(c) == pytest.approx(wanted)
    root = sqrtm(d)  # the distance itself: tr C + tr D - 2 tr (D^1/2 C D^1/2)^1/2
    distance = np.trace(c) + np.trace(d) - 2 * np.trace(sqrtm(root @ c @ root)).real
    assert gaussian_wasserstein_correlation(c) == pytest.approx(distance)


def test_samples_of_a_gaussian_give_its_values() -> None:
    rng = np.random.default_rng(1)
    z = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], size=10_000)
    assert score("gaussian-tc", z).value == pytest.approx(-0.5 * np.log(1 - 0.36), abs=0.02)
    raw, norm = score("gaussian-wasserstein", z).value, score("gaussian-wasserstein-norm", z).value
    assert raw is not None
    assert norm == pytest.approx(raw / np.trace(np.cov(z.T)))
    wanted = 4 - 2 * (np.sqrt(1.6) + np.sqrt(0.4))
    assert raw == pytest.approx(wanted, abs=0.02)


def test_a_full_grid_has_no_correlation_and_constants_are_dropped() -> None:
    grid = np.stack(np.meshgrid(*map(np.arange, (2, 4, 5)), indexing="ij"), -1).reshape(-1, 3).astype(float)
    codes = np.concatenate([grid, np.full((40, 2), 0.1)], 1).astype(np.float32)
    for name in NAMES:
        found = score(name, codes, allow_smaller=True)
        assert found.value == pytest.approx(0, abs=1e-6)
    assert score("gaussian-tc", codes, allow_smaller=True).settings["active"] == 3


def test_mean_information_is_over_ordered_pairs_of_all_dimensions() -> None:
    bit = np.arange(1000) % 2
    other = np.arange(1000) // 2 % 2
    codes = np.stack([bit, bit, other, np.zeros(1000)], 1).astype(float)
    found = score("mean-mi", codes, allow_smaller=True)
    assert found.value == pytest.approx(2 * np.log(2) / 12)


def test_edges() -> None:
    rng = np.random.default_rng(2)
    column = rng.standard_normal((500, 1))
    twice = score("gaussian-tc", np.concatenate([column, column], 1), allow_smaller=True)
    assert twice.value is None
    assert "singular" in twice.reason
    for name in NAMES[:3]:
        assert score(name, np.ones((500, 2)), allow_smaller=True).value == 0
        assert score(name, column, allow_smaller=True).value == pytest.approx(0, abs=1e-12)
    assert score("mean-mi", column, allow_smaller=True).value is None
    assert covariance(np.ones((5, 2))).shape == (0, 0)


@pytest.mark.parametrize("name", NAMES)
def test_column_order_changes_nothing_and_a_seed_gives_one_answer(name: str) -> None:
    codes = np.random.default_rng(3).standard_normal((2000, 4)) @ np.random.default_rng(4).standard_normal((4, 4))
    found = score(name, codes, allow_smaller=True)
    assert score(name, codes[:, ::-1], allow_smaller=True).value == pytest.approx(found.value)
    assert score(name, codes, allow_smaller=True).to_json() == found.to_json()
