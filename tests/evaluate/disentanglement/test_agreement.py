"""Agreement of scores over models."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import f_oneway, kendalltau, spearmanr

from elboroom.core.problem import Problem
from elboroom.evaluate.disentanglement.agreement import Rank, rank_agreement, selection_regret, variance_explained


def test_correlations_are_those_of_scipy_with_ties() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(5, size=30).astype(float), rng.standard_normal(30)
    for mode, wanted in (("spearman", spearmanr(a, b).statistic), ("kendall", kendalltau(a, b).statistic)):
        found = rank_agreement({"mig": a, "sap": b}, mode=mode, permutations=200)  # type: ignore[arg-type]
        assert found.correlation[0, 1] == pytest.approx(wanted)
        np.testing.assert_allclose(found.correlation, found.correlation.T)
        np.testing.assert_allclose(np.diag(found.correlation), 1)
        assert (found.n == 30).all()


@pytest.mark.parametrize("mode", ["spearman", "kendall"])
def test_p_values_tell_agreement_from_chance(mode: Rank) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal(25)
    scores = {"x": x, "same": np.exp(x), "against": -x, "noise": rng.standard_normal(25)}
    found = rank_agreement(scores, {"x": x}, mode, permutations=500)
    assert found.columns == ("x",)
    assert found.correlation[:3, 0].tolist() == pytest.approx([1, 1, -1])
    assert found.p[:3, 0].tolist() == pytest.approx([1 / 501] * 3)  # two-sided, and never 0
    assert found.p[3, 0] > 0.02


def test_the_p_value_is_uniform_under_chance() -> None:
    rng = np.random.default_rng(2)
    p = [
        rank_agreement({"a": rng.standard_normal(12)}, {"b": rng.standard_normal(12)}, permutations=199).p[0, 0]
        for _ in range(200)
    ]
    assert np.mean(np.array(p) <= 0.1) == pytest.approx(0.1, abs=0.07)
    assert np.mean(p) == pytest.approx(0.5, abs=0.08)


def test_missing_and_constant_scores() -> None:
    found = rank_agreement({"a": [1, 2, np.nan, 4], "b": [1, 2, 3, 4], "flat": [1, 1, 1, 1]}, permutations=50)
    assert found.n.tolist() == [[3, 3, 3], [3, 4, 4], [3, 4, 4]]
    assert found.correlation[0, 1] == pytest.approx(1)
    assert np.isnan(found.correlation[2]).all()
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["correlation"][2] == [None, None, None]
    with pytest.raises(Problem, match="same models"):
        rank_agreement({"a": [1, 2], "b": [1, 2, 3]})
    with pytest.raises(Problem, match="rank correlation"):
        rank_agreement({"a": [1, 2]}, mode="pearson")  # type: ignore[arg-type]


def test_a_seed_gives_one_answer_and_order_changes_nothing() -> None:
    rng = np.random.default_rng(3)
    scores = {name: rng.standard_normal(15) for name in "abc"}
    found = rank_agreement(scores, permutations=100)
    turned = rank_agreement(dict(reversed(scores.items())), permutations=100)
    np.testing.assert_allclose(found.p, turned.p[::-1, ::-1])
    np.testing.assert_allclose(found.correlation, turned.correlation[::-1, ::-1])


def test_regret() -> None:
    mig, nll = [0.1, 0.4, 0.3, np.nan], [90.0, 80.0, 70.0, 10.0]
    found = selection_regret(mig, nll, lower_is_better=True)
    assert found.value == pytest.approx(0.1)
    assert (found.picked, found.rank, found.n) == (2, 2, 3)
    best = selection_regret(mig, mig)
    assert (best.value, best.rank) == (0, 1)
    with pytest.raises(Problem, match="no model"):
        selection_regret([np.nan], [1.0])


def test_variance_explained_is_that_of_an_anova() -> None:
    rng = np.random.default_rng(4)
    method = ["vae", "tc", "dip"] * 20
    strength = [1, 2, 4, 8] * 15
    score = np.array([{"vae": 0.0, "tc": 1.0, "dip": 3.0}[m] for m in method]) + rng.standard_normal(60)
    groups = [score[np.array(method) == m] for m in ("vae", "tc", "dip")]
    f = f_oneway(*groups).statistic
    alone = variance_explained(score, method)
    assert alone == pytest.approx(2 * f / (2 * f + 57))
    both = variance_explained(score, method, strength)
    assert both is not None
    assert alone is not None
    assert alone < both < 1
    assert variance_explained([1, 1, 2, 2], ["a", "a", "b", "b"]) == 1
    assert variance_explained([1, 2, 1, 2], ["a", "a", "b", "b"]) == 0
    assert variance_explained([1, 1], ["a", "b"]) is None
    with pytest.raises(Problem, match="one group for each"):
        variance_explained([1, 2], ["a"])
