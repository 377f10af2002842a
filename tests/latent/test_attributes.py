"""Attribute vectors: edits along them, and the classifier whose bias is exact."""

from __future__ import annotations

import numpy as np
import pytest

from elboroom.core.problem import Problem
from elboroom.latent.attributes import (
    FactorClassifier,
    HingeClassifier,
    attribute_vector,
    edit,
    hinge_bias,
    hinge_loss,
    majority_rate,
)


def test_the_vector_is_the_difference_of_the_means() -> None:
    codes = np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 5.0], [0.0, 7.0]])
    assert attribute_vector(codes, [1, 1, 0, 0]).tolist() == [2, -6]
    assert attribute_vector(codes, [True, True, False, False]).tolist() == [2, -6]
    assert attribute_vector(codes, [1, 1, -1, -1]).tolist() == [2, -6]


def test_an_edit_of_zero_is_the_code_and_goes_on_beyond_one() -> None:
    z, w = np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([0.5, -1.0])
    path = edit(z, w, [-1, 0, 1, 2])
    assert path.shape == (2, 4, 2)
    assert path[:, 1].tolist() == z.tolist()
    assert path[0, 3].tolist() == [2, 0]
    assert edit(z[0], w, 1).tolist() == [[[1.5, 1.0]]]
    with pytest.raises(Problem, match="need a vector of their length"):
        edit(z, w[:1], 1)


@pytest.mark.parametrize("seed", range(20))
def test_no_bias_has_a_smaller_hinge_loss(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.random(31) < rng.uniform(0.1, 0.9)
    labels[:2] = True, False
    scores = rng.standard_normal(31) * 3 + labels
    best = hinge_loss(scores, labels, hinge_bias(scores, labels))
    candidates = np.concatenate([np.where(labels, 1, -1) - scores, np.linspace(-15, 15, 2001)])
    assert best <= min(hinge_loss(scores, labels, b) for b in candidates) + 1e-12


def test_separable_codes_are_told_apart_with_the_middle_as_border() -> None:
    codes = np.array([[0.0, 1.0], [0.0, -1.0], [10.0, 1.0], [10.0, -1.0]])
    model = HingeClassifier.fit(codes, [0, 0, 1, 1])
    assert model.w.tolist() == [10, 0]
    assert model.b == -50
    assert model.accuracy(codes, [0, 0, 1, 1]) == 1
    assert model.predict([[4.0, 0.0], [6.0, 0.0]]).tolist() == [False, True]


def test_what_codes_do_not_know_is_predicted_at_the_majority_rate() -> None:
    rng = np.random.default_rng(0)
    labels = rng.random(4000) < 0.2
    codes = rng.standard_normal((4000, 3))
    rate = majority_rate(labels)
    assert rate == pytest.approx(0.8, abs=0.02)
    assert HingeClassifier.fit(codes, labels).accuracy(codes, labels) == pytest.approx(rate, abs=0.01)


def test_a_factor_of_several_values_is_one_against_the_rest() -> None:
    rng = np.random.default_rng(1)
    labels = np.array(["square", "ellipse", "heart"])[rng.integers(3, size=600)]
    codes = np.stack([labels == value for value in ("square", "ellipse", "heart")], 1) * 4.0
    codes = codes + 0.3 * rng.standard_normal((600, 3))
    model = FactorClassifier.fit(codes, labels)
    assert model.accuracy(codes, labels) > 0.99
    assert model.values.tolist() == ["ellipse", "heart", "square"]


def test_what_is_wrong_is_said() -> None:
    codes = np.ones((3, 2))
    with pytest.raises(Problem, match="with the attribute and images without"):
        attribute_vector(codes, [1, 1, 1])
    with pytest.raises(Problem, match="one label per row"):
        attribute_vector(codes, [1, 0])
    with pytest.raises(Problem, match="must be true and false"):
        attribute_vector(codes, [1, 2, 3])
    with pytest.raises(Problem, match="NaN"):
        attribute_vector(codes * np.nan, [1, 0, 1])
