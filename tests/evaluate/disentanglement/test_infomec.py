"""InfoM, InfoC and InfoE of codes whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from elboroom.evaluate.disentanglement import Rows, evaluate, score
from elboroom.evaluate.disentanglement.infomec import concentration, kept, predictive_information
from elboroom.evaluate.result import Result

N = 2000


def factors_of(rng: np.random.Generator, *sizes: int) -> NDArray[np.int64]:
    return np.stack([rng.integers(size, size=N) for size in sizes], 1)


def info(name: str, codes: NDArray[np.float64], factors: NDArray[np.generic], **settings: object) -> Result:
    return score(name, codes, factors, allow_smaller=True, **settings)  # type: ignore[arg-type]


def test_one_dimension_for_each_factor() -> None:
    rng = np.random.default_rng(0)
    factors = factors_of(rng, 3, 4)
    codes = factors + 0.01 * rng.standard_normal(factors.shape)
    names = ["infom", "infoc", "infoe"]
    m, c, e = evaluate(Rows(codes, factors, allow_smaller=True), names).values()
    assert m.value == pytest.approx(1, abs=0.05)
    assert c.value == pytest.approx(1, abs=0.05)
    assert e.value == pytest.approx(1, abs=0.01)
    np.testing.assert_allclose(np.diag(m.parts["information"]), 1, atol=0.02)
    assert m.parts["information"] is c.parts["information"]  # computed once


def test_every_dimension_alike_is_neither_modular_nor_compact() -> None:
    even = np.ones((3, 2))
    assert concentration(even, 0) == concentration(even, 1) == 0
    assert concentration(np.eye(3), 0) == concentration(np.eye(3), 1) == 1
    assert concentration(np.array([[1.0, 0.0], [0.0, 0.0]]), 1) == 0.5  # what knows nothing is spread evenly


def test_an_empty_dimension_counts_nothing_and_is_told() -> None:
    factors = np.indices((3, 4)).reshape(2, -1).T.repeat(20, 0)
    empty = np.tile([0.0, 1.0], len(factors) // 2)  # as often 0 as 1 for every value of every factor
    found = info("infom", np.column_stack([factors, empty]), factors, discrete=True)
    assert found.value == pytest.approx(2 / 3, abs=1e-6)
    assert found.settings["empty"] == 1
    assert found.remarks == ("1 dimension without information counts 0",)
    assert not info("infom", factors.astype(float), factors, discrete=True).remarks


def test_discrete_codes_are_counted() -> None:
    rng = np.random.default_rng(1)
    factors = factors_of(rng, 3, 4)
    codes = factors[:, ::-1].astype(float)
    assert info("infom", codes, factors, discrete=True).value == pytest.approx(1, abs=0.02)
    assert info("infoe", codes, factors, discrete=True).value == pytest.approx(1, abs=0.02)


def test_explicitness_is_the_share_of_entropy_that_a_linear_model_reads() -> None:
    rng = np.random.default_rng(2)
    y = rng.integers(3, size=500)
    codes = rng.standard_normal((500, 2)) + np.stack([y == 1, y == 2], 1) * 2.0
    z = (codes - codes.mean(0)) / codes.std(0)
    null = LogisticRegression(C=np.inf, class_weight="balanced").fit(0 * z, y).predict_proba(0 * z)
    full = LogisticRegression(C=np.inf, class_weight="balanced").fit(z, y).predict_proba(z)
    wanted = 1 - log_loss(y, full) / log_loss(y, null)
    assert predictive_information(codes, y) == pytest.approx(wanted, abs=1e-6)


def test_noise_explains_nothing_and_a_continuous_factor_is_a_straight_fit() -> None:
    rng = np.random.default_rng(3)
    factors = factors_of(rng, 3, 4)
    noise = rng.standard_normal((N, 3))
    assert info("infoe", noise, factors).value == pytest.approx(0, abs=0.02)
    real = rng.standard_normal((N, 1))
    found = info("infoe", real + rng.standard_normal((N, 1)), real)
    assert found.value == pytest.approx(0.5, abs=0.05)
    assert info("infom", np.concatenate([real, noise], 1), np.concatenate([real, noise[:, :1]], 1)).value is not None


def test_narrow_dimensions_are_pruned() -> None:
    codes = np.array([[0.0, 0.0, 0.0, 1.0], [20.0, 1.0, 1.1, 1.0]])
    assert kept(codes).tolist() == [True, False, True, False]
    assert kept(codes, discrete=True).tolist() == [True, True, True, False]


def test_undefined_cases_have_a_reason_and_dead_codes_score_zero() -> None:
    rng = np.random.default_rng(4)
    factors = factors_of(rng, 3, 4)
    one = factors[:, :1] + 0.1 * rng.standard_normal((N, 1))
    alone = info("infoc", one, factors)
    assert alone.value is None
    assert "two active dimensions" in alone.reason
    single = info("infom", np.concatenate([one, -one], 1), factors[:, :1])
    assert single.value is None
    assert "two factors" in single.reason
    for name in ("infom", "infoc", "infoe"):
        dead = info(name, np.ones((N, 3)), factors)
        assert dead.value == pytest.approx(0, abs=1e-9)
        assert dead.settings["active"] == 0


@pytest.mark.parametrize("name", ["infom", "infoc", "infoe"])
def test_column_order_changes_nothing_and_a_seed_gives_one_answer(name: str) -> None:
    rng = np.random.default_rng(5)
    factors = factors_of(rng, 3, 4)
    codes = np.concatenate([factors, factors[:, :1] + rng.standard_normal((N, 1))], 1).astype(float)  # with ties
    found = info(name, codes, factors)
    assert info(name, codes[:, ::-1].copy(), factors).value == pytest.approx(found.value, abs=1e-3)
    assert info(name, codes, factors).to_json() == found.to_json()
