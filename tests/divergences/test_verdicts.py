"""Independence, goodness of fit and the comparison of two samples: known answers, sentences, and figures."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch.distributions import Independent, MultivariateNormal, Normal

from elboroom.core.problem import Problem
from elboroom.divergences import compare, gaussians, goodness, independence
from elboroom.divergences.critic import Training
from elboroom.divergences.independence import hsic_test, knn_information, mutual_information
from elboroom.plots.witness import witness

RHO = 0.8
TRUTH = -0.5 * math.log(1 - RHO**2)
QUICK = Training(hidden=32, steps=400, lr=5e-3)


def correlated(n: int, rho: float = RHO, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1))
    return x, rho * x + math.sqrt(1 - rho**2) * rng.normal(size=(n, 1))


def test_information_of_two_gaussians() -> None:
    x, y = correlated(3000)
    near = knn_information(x, y)
    assert near.value == pytest.approx(TRUTH, abs=0.05)
    assert knn_information(10 * x + 3, y).value == pytest.approx(near.value, abs=1e-3)
    bound = mutual_information(x, y, how=QUICK)
    assert abs(bound.value - TRUTH) < 4 * bound.error + 0.02
    assert bound.unit == near.unit == "nats"


@pytest.mark.unhurried
def test_dependence_without_correlation_is_seen() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1))
    found = independence(x, x**2 + 0.1 * rng.normal(size=(400, 1)), permutations=200, how=QUICK, names=("z1", "z2"))
    assert found.p == pytest.approx(1 / 201)
    assert found.neighbours is not None
    assert found.neighbours.value > 0.5
    assert found.verdict.startswith("z1 and z2 depend on each other: about ")
    assert json.loads(json.dumps(found.to_json()))["p"] == found.p


@pytest.mark.unhurried
def test_independence_is_not_refused() -> None:
    found = independence(*correlated(400, 0.0), permutations=200, how=QUICK)
    assert found.p > 0.05
    assert abs(found.variational.value) < 0.1
    assert found.verdict.startswith("No dependence of A and B was found")
    wide = np.random.default_rng(0).normal(size=(60, 5))
    assert independence(wide, wide, permutations=20, how=Training(steps=10)).neighbours is None


def test_hsic_by_hand() -> None:
    x, y = (torch.from_numpy(v) for v in correlated(30))
    test, (h, g) = hsic_test(x, y, 50)
    k, other = (torch.exp(-(torch.cdist(v, v) ** 2) / (2 * s * s)) for v, s in ((x, h), (y, g)))
    centring = torch.eye(30, dtype=torch.float64) - 1 / 30
    assert test.statistic == pytest.approx(float(torch.trace(centring @ k @ centring @ other)) / 900, rel=1e-4)
    alone = []
    for seed in range(60):
        x, y = (torch.from_numpy(v) for v in correlated(25, 0.0, seed))
        alone.append(hsic_test(x, y, 99, seed)[0].p)
    assert 0.35 < np.mean(alone) < 0.65


@pytest.mark.parametrize("seed", range(4))
def test_hsic_of_two_values_counts_what_is_equal(seed: int) -> None:
    """Of binary variables it is the square of their covariance, which many permutations share."""
    x, y = (torch.from_numpy(np.random.default_rng(seed).integers(0, 2, (2, 30, 1)))).double()
    noise = torch.Generator().manual_seed(0)
    orders = [torch.randperm(30, generator=noise) for _ in range(200)]
    together = torch.stack([(x * y[order]).sum() for order in orders])
    least = abs(float((x * y).sum()) - float(x.sum() * y.sum()) / 30)
    share = int(((together - float(x.sum() * y.sum()) / 30).abs() >= least - 1e-9).sum())
    assert hsic_test(x, y, 200, seed=0)[0].p == pytest.approx((1 + share) / 201)


def test_one_gaussian_or_two() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(-2, 1, 400), rng.normal(2, 1, 400)])
    found = goodness(x, {"one": gaussians(1), "two": gaussians(2)}, permutations=200)
    assert found.best == "two"
    one, two = found.fits["one"], found.fits["two"]
    assert one.p <= 0.05 < two.p
    assert one.behind == pytest.approx(two.log_density - one.log_density)
    assert one.behind_error < math.hypot(one.error, two.error)
    assert found.verdict.startswith("two fits better than one, by ")
    assert found.settings["held_out"] == 400
    json.dumps(found.to_json())


def test_the_mean_log_density_of_the_truth_is_minus_its_entropy() -> None:
    x = np.random.default_rng(0).normal(size=(4000, 2))
    model = MultivariateNormal(torch.zeros(2, dtype=torch.float64), torch.eye(2, dtype=torch.float64))
    before = torch.get_rng_state()
    found = goodness(x, {"truth": model}, permutations=100, most=300)
    assert torch.equal(before, torch.get_rng_state())
    fit = found.fits["truth"]
    assert abs(fit.log_density + math.log(2 * math.pi * math.e)) < 4 * fit.error
    assert fit.error == pytest.approx(1 / math.sqrt(4000), rel=0.1)  # log p has variance d/2
    assert (fit.behind, fit.behind_error) == (0, 0)
    assert fit.p > 0.01
    assert goodness(x, {"truth": model}, permutations=100, most=300) == found


def test_models_that_do_not_fit_the_rows_are_refused() -> None:
    x = np.random.default_rng(0).normal(size=(50, 3))
    with pytest.raises(Problem, match="not one per row"):
        goodness(x, {"m": Normal(torch.zeros(3), torch.ones(3))})
    assert goodness(x, {"m": Independent(Normal(torch.zeros(3), torch.ones(3)), 1)}, permutations=10).best == "m"
    with pytest.raises(Problem, match="'m' has no density for rows of 3 columns"):
        goodness(x, {"m": MultivariateNormal(torch.zeros(2), torch.eye(2))})
    with pytest.raises(Problem, match="at least one model"):
        goodness(x, {})


def pair(d: int, shift: float) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(120, d)), rng.normal(size=(90, d)) + shift


@pytest.mark.parametrize("d", [1, 2, 5])
def test_a_comparison_says_what_it_found(d: int) -> None:
    found = compare(*pair(d, 1.0), permutations=200, names=("codes", "prior"))
    assert found.p == pytest.approx(1 / 201)
    assert found.verdict.startswith("codes and prior differ (MMD² = ")
    read = json.loads(json.dumps(found.to_json()))
    assert read["statistic"] == found.statistic
    assert read["settings"]["rows"] == [120, 90]
    assert ("wasserstein" in read) == (d == 1)
    assert isinstance(witness(found), Figure)
    same = compare(*pair(d, 0.0), permutations=200)
    assert same.p > 0.05
    assert same.verdict.startswith("No difference between A and B was found")
    assert compare(*pair(d, 0.0), permutations=200).to_json() == same.to_json()


def test_a_comparison_of_many_rows_draws_some_and_bounds_divergences() -> None:
    found = compare(*pair(1, 1.0), permutations=50, most=60, divergences=["jsd"], how=QUICK)
    assert found.settings["tested_rows"] == [60, 60]
    assert found.divergences["jsd"].settings["trained_on"] == [60, 45]
    assert found.wasserstein == pytest.approx(1.0, abs=0.4)


def test_few_rows_and_images() -> None:
    few = compare(*(v[:6] for v in pair(2, 0.0)), permutations=50)
    assert "6 rows would show large differences only" in few.verdict
    pixels = np.random.default_rng(0).integers(0, 256, (12, 4, 4), dtype=np.uint8)
    assert compare(pixels, pixels, permutations=20).settings["dimensions"] == 16


@pytest.mark.parametrize(
    ("a", "b", "sentence"),
    [
        (np.zeros((9, 2)), np.zeros((9, 3)), "A has 2 columns but B has 3"),
        (np.zeros((9, 2)), np.full((9, 2), np.nan), "B has 18 values that are NaN or infinite"),
        (np.zeros((4, 2)), np.zeros((9, 2)), "A has 4 rows; at least 5 are needed"),
        (np.zeros((9, 2)), np.array(["x"] * 9), "B has values of type"),
        (np.zeros(()), np.zeros((9, 2)), "one row per example"),
        (np.zeros((9, 0)), np.zeros((9, 0)), "one row per example"),
        (np.ones((9, 2)), np.ones((9, 2)), "all points are equal"),
    ],
)
def test_bad_samples_are_refused_in_one_sentence(a: NDArray[Any], b: NDArray[Any], sentence: str) -> None:
    with pytest.raises(Problem, match=sentence) as caught:
        compare(a, b)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"level": 1.5}, "between 0 and 1"),
        ({"most": 3}, "at least 5"),
        ({"permutations": 0}, "at least 1"),
        ({"bandwidth": -1.0}, "must be positive"),
        ({"divergences": ["k"]}, "unknown divergence 'k'"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Problem, match=sentence):
        compare(*pair(2, 0.0), **options)


def test_variables_that_cannot_be_paired_are_refused() -> None:
    x = np.random.default_rng(0).normal(size=(30, 1))
    with pytest.raises(Problem, match="row i of both must be the same example"):
        independence(x, x[:25])
    with pytest.raises(Problem, match="B is the same in all rows"):
        independence(x, np.ones((30, 1)))
