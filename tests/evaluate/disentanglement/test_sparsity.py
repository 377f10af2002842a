"""Hoyer sparsity and its identities."""

from __future__ import annotations

import numpy as np
import pytest

from elboroom.core.problem import Problem
from elboroom.evaluate.disentanglement import score
from elboroom.evaluate.disentanglement.sparsity import hoyer, scaled


def test_one_for_one_hot_rows_and_zero_for_rows_of_constant_magnitude() -> None:
    np.testing.assert_allclose(hoyer(np.eye(7) * 3), 1)
    signs = np.random.default_rng(0).choice([-2.0, 2.0], (20, 7))
    np.testing.assert_allclose(hoyer(signs), 0, atol=1e-12)


def test_the_formula_by_hand_and_no_scale() -> None:
    row = np.array([[3.0, 4.0, 0.0, 0.0]])
    assert hoyer(row)[0] == pytest.approx((2 - 7 / 5) / (2 - 1))
    np.testing.assert_allclose(hoyer(row * 1e200), hoyer(row))
    np.testing.assert_allclose(hoyer(row * 1e-200), hoyer(row))
    assert hoyer(np.zeros((1, 4)))[0] == pytest.approx(0)


def test_collapsed_dimensions_do_not_count_as_sparse() -> None:
    rng = np.random.default_rng(1)
    codes = rng.standard_normal((5000, 6))
    found = score("sparsity", codes, allow_smaller=True)
    squeezed = score("sparsity", codes * [1, 1, 1, 1e-3, 1e-3, 1e-3], allow_smaller=True)
    assert squeezed.value == pytest.approx(found.value)
    dead = score("sparsity", np.concatenate([codes, np.ones((5000, 2))], 1), allow_smaller=True)
    assert dead.value == pytest.approx(found.value)
    assert dead.settings["active"] == 6
    np.testing.assert_allclose(scaled(codes * 5).std(0), 1)


def test_sparse_codes_are_sparser_and_order_changes_nothing() -> None:
    rng = np.random.default_rng(2)
    dense = rng.standard_normal((2000, 10))
    sparse = dense * (rng.random((2000, 10)) < 0.2)
    a, b = (score("sparsity", codes, allow_smaller=True).value for codes in (dense, sparse))
    assert a is not None
    assert b is not None
    assert b > a + 0.2
    assert score("sparsity", sparse[:, ::-1], allow_smaller=True).value == pytest.approx(b)


def test_edges() -> None:
    assert score("sparsity", np.ones((10, 3)), allow_smaller=True).value == 0
    single = score("sparsity", np.arange(10.0)[:, None], allow_smaller=True)
    assert single.value is None
    assert "one dimension" in single.reason
    with pytest.raises(Problem, match="at least 2"):
        hoyer(np.ones((3, 1)))
