"""The split of the rate against what is known of it in closed form."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import norm

from elboroom.core.problem import Problem
from elboroom.evaluate.disentanglement import Rows, evaluate, score
from elboroom.evaluate.disentanglement.rate_split import RateSplit, active_units, rate_split, rates
from elboroom.evaluate.disentanglement.unsupervised import gaussian_total_correlation


def gaussian_codes(n: int, c: NDArray[np.float64], variance: float) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    mu = np.random.default_rng(0).multivariate_normal(np.zeros(len(c)), c, size=n)
    return mu.astype(np.float32), np.full(mu.shape, math.log(variance), np.float32)


def adds_up(found: RateSplit) -> bool:
    return math.isclose(found.mi + found.tc + found.dwkl, found.rate, rel_tol=1e-12, abs_tol=1e-12)


def test_one_point_has_neither_information_nor_correlation() -> None:
    mu, logvar = np.array([[0.5, -2.0, 3.0]]), np.array([[0.0, -1.0, -8.0]])
    found = rate_split(mu, logvar)
    assert found.mi == 0
    assert abs(found.tc) < 1e-12
    assert found.ceiling == 0
    assert adds_up(found)
    assert found.dwkl == pytest.approx(found.rate_analytic, abs=5 * found.errors["dwkl"])


def test_gaussian_codes_have_the_total_correlation_of_a_gaussian() -> None:
    c = np.array([[0.7, 0.4], [0.4, 0.7]])
    mu, logvar = gaussian_codes(20_000, c, 0.3)
    found = rate_split(mu, logvar, samples=4000)
    whole = c + 0.3 * np.eye(2)
    assert found.tc == pytest.approx(gaussian_total_correlation(whole), abs=4 * found.errors["tc"] + 0.01)
    information = 0.5 * np.log(np.linalg.det(whole) / 0.3**2)
    assert found.mi == pytest.approx(information, abs=4 * found.errors["mi"] + 0.01)
    assert found.dwkl == pytest.approx(0, abs=4 * found.errors["dwkl"] + 0.01)  # each marginal is N(0, 1)
    assert found.rate == pytest.approx(found.rate_analytic, abs=4 * found.errors["rate"])
    assert adds_up(found)


def test_the_sums_are_exact() -> None:
    """Against every density written out, with means far out and widths from 1e-3 to 10."""
    rng = np.random.default_rng(1)
    mu, logvar = 5 + 3 * rng.standard_normal((1500, 3)), rng.uniform(-14, 4.6, (1500, 3))
    found = rate_split(mu, logvar, samples=200, seed=3)
    again = np.random.default_rng(3)
    own, noise = again.integers(1500, size=200), again.standard_normal((200, 3))
    z = mu[own] + np.exp(logvar[own] / 2) * noise
    pairs = norm.logpdf(z[:, None], mu, np.exp(logvar / 2))  # (S, N, J)
    joint, marginals = logsumexp(pairs.sum(2), 1) - math.log(1500), logsumexp(pairs, 1) - math.log(1500)
    log_q = pairs[np.arange(200), own].sum(1)
    assert found.mi == pytest.approx((log_q - joint).mean(), abs=1e-9)
    assert found.tc == pytest.approx((joint - marginals.sum(1)).mean(), abs=1e-9)
    np.testing.assert_allclose(found.dimensions, (marginals - norm.logpdf(z)).mean(0), rtol=1e-9)
    assert found.dwkl == pytest.approx(sum(found.dimensions))


def test_information_comes_up_to_its_ceiling_and_no_further() -> None:
    mu = np.arange(64.0)[:, None].repeat(2, 1)
    found = rate_split(mu, np.full(mu.shape, -12.0))
    assert found.mi == pytest.approx(math.log(64), abs=1e-6)
    assert found.ceiling == math.log(64)
    part = rate_split(mu, np.full(mu.shape, -12.0), "subset", components=8)
    assert part.mi == pytest.approx(math.log(64), abs=1e-6)  # weights 1/N on the own row: no clipping at log 8
    assert "at most log N = 4.16" in str(found)


def test_a_subset_agrees_with_the_whole() -> None:
    mu, logvar = gaussian_codes(5000, np.array([[0.7, 0.4], [0.4, 0.7]]), 0.3)
    full, part = rate_split(mu, logvar), rate_split(mu, logvar, "subset", components=2500)
    assert (full.components, part.components) == (5000, 2500)
    for name in ("mi", "tc"):
        assert getattr(part, name) == pytest.approx(getattr(full, name), abs=0.1)
    assert adds_up(part)
    assert rate_split(mu, logvar, "subset", components=5000) == full


def test_a_subset_has_no_bias() -> None:
    """A Gaussian of known TC in six dimensions, by sums over 2 % of the rows, of which alone TC would be 1 nat too low."""
    c, variance = 0.9 * (0.4 * np.eye(6) + 0.6), 0.1
    mu, logvar = gaussian_codes(3000, c, variance)
    tc = gaussian_total_correlation(c + variance * np.eye(6))
    full = rate_split(mu, logvar)
    found = [rate_split(mu, logvar, "subset", seed, samples=500, components=60, checked=100) for seed in range(8)]
    for name, exact in (("tc", full.tc), ("mi", full.mi), ("dwkl", full.dwkl)):
        values, errors = [getattr(part, name) for part in found], [part.errors[name] for part in found]
        within = 4 * math.hypot(float(np.mean(errors)) / math.sqrt(8), full.errors[name])
        assert np.mean(values) == pytest.approx(exact, abs=within), name
        assert np.mean(errors) == pytest.approx(np.std(values, ddof=1), rel=1.0), name
    assert np.mean([part.tc for part in found]) == pytest.approx(tc, abs=0.3)
    assert all(adds_up(part) for part in found)
    with pytest.raises(Problem, match="at least 2 samples, not 1"):
        rate_split(mu, logvar, "subset", checked=1)


def test_nothing_is_clamped_and_a_seed_gives_one_answer() -> None:
    mu, logvar = np.zeros((100, 2)), np.zeros((100, 2))
    found = [rate_split(mu, logvar, seed=seed, samples=50) for seed in range(5)]
    assert all(abs(f.tc) < 1e-9 and abs(f.mi) < 1e-9 for f in found)
    moved = [rate_split(mu + 0.1, logvar, seed=seed, samples=50).dwkl for seed in range(10)]
    assert min(moved) < 0  # 0.01 in truth
    assert rate_split(mu + 0.1, logvar, seed=1, samples=50).dwkl == moved[1]


def test_it_is_a_metric_of_three_names() -> None:
    mu, logvar = gaussian_codes(500, np.eye(2) * 0.7, 0.3)
    rows = Rows(mu, None, logvar=logvar)
    found = evaluate(rows, ["index-code-mi", "total-correlation", "dimension-wise-kl"], interval=True)
    values = [one.value or 0 for one in found.values()]
    assert sum(values) == pytest.approx(found["total-correlation"].parts["rate"])
    for one in found.values():
        assert one.mode == "full"
        assert one.interval is not None
        half = 1.96 * one.parts["standard_error"]
        assert one.interval["high"] - one.interval["low"] == pytest.approx(2 * half, rel=1e-3)
    with pytest.raises(Problem, match="log-variances"):
        score("total-correlation", mu)


def test_what_is_wrong_is_said() -> None:
    mu = np.zeros((10, 2))
    with pytest.raises(Problem, match="have the same shape"):
        rate_split(mu, mu[:, :1])
    with pytest.raises(Problem, match="NaN or infinite in dimensions 1"):
        rate_split(mu + np.array([0, np.nan]), mu)
    with pytest.raises(Problem, match="at least 2 samples"):
        rate_split(mu, mu, samples=1)


def test_a_table_on_disk_is_read_without_a_word(tmp_path: Path) -> None:
    mu, logvar = gaussian_codes(300, np.eye(2), 0.3)
    for name, array in (("mu", mu), ("logvar", logvar)):
        np.save(tmp_path / f"{name}.npy", array)
    mapped = [np.load(tmp_path / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in ("mu", "logvar")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rate_split(*mapped) == rate_split(mu, logvar)


def test_active_units_by_three_rules() -> None:
    rng = np.random.default_rng(5)
    mu = rng.standard_normal((5000, 4)) * [1.0, 0.07, 0.0, 0.01]
    logvar = np.array([-3.0, 0.0, -2.0, 0.0]) + np.zeros((5000, 4))
    assert active_units(mu).tolist() == [True, False, False, False]
    assert active_units(mu, rule="au-std").tolist() == [True, True, False, False]
    assert active_units(mu, logvar, "au-kl").tolist() == [True, False, True, False]
    np.testing.assert_allclose(rates(mu[:1] * 0, logvar[:1]), 0.5 * (np.exp(logvar[0]) - logvar[0] - 1))
    found = score("active-units", mu, logvar=logvar, mode="au-kl")
    assert (found.value, found.settings["of"]) == (2, 4)
    with pytest.raises(Problem, match="au-kl needs"):
        active_units(mu, rule="au-kl")
