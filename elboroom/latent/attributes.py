"""Attributes as directions: the vector from images without an attribute to those with it, as an edit and as a classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elboroom.core.problem import Problem


def attribute_vector(codes: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
    """w = mean(mu given y = 1) - mean(mu given y = 0), (J,); labels are true or false, one for each code."""
    mu, y = _checked(codes, labels)
    return np.asarray(mu[y].mean(0) - mu[~y].mean(0))


def edit(z: ArrayLike, w: ArrayLike, t: ArrayLike) -> NDArray[np.float64]:
    """z + t w for every t, (n, points, J): t < 0 removes the attribute, 0 reconstructs, beyond 1 extrapolates."""
    code, vector, steps = (np.asarray(a, dtype=np.float64) for a in (z, w, t))
    code = np.atleast_2d(code)
    if vector.shape != code.shape[1:] or steps.ndim > 1:
        raise Problem(f"codes of shape {code.shape} need a vector of their length, not {vector.shape}")
    return np.asarray(code[:, None] + np.atleast_1d(steps)[:, None] * vector)


@dataclass(frozen=True)
class HingeClassifier:
    """sign(w . mu + b): w the attribute vector as it is, b the minimum of the hinge loss on training data (Kumar 2018)."""

    w: NDArray[np.float64]  # (J,)
    b: float

    @classmethod
    def fit(cls, codes: ArrayLike, labels: ArrayLike) -> HingeClassifier:
        """The classifier of one attribute; labels are true or false."""
        w = attribute_vector(codes, labels)
        mu, y = _checked(codes, labels)
        return cls(w, hinge_bias(mu @ w, y))

    def scores(self, codes: ArrayLike) -> NDArray[np.float64]:
        """w . mu + b, (n,)."""
        return np.asarray(np.asarray(codes, dtype=np.float64) @ self.w + self.b)

    def predict(self, codes: ArrayLike) -> NDArray[np.bool_]:
        """Whether the attribute is there, (n,)."""
        return np.asarray(self.scores(codes) > 0)

    def accuracy(self, codes: ArrayLike, labels: ArrayLike) -> float:
        """The share of codes that it is right about."""
        return float(np.mean(self.predict(codes) == _truth(labels)))


def hinge_loss(scores: ArrayLike, labels: ArrayLike, bias: float) -> float:
    """mean max(0, 1 - y (s + b)), y in {-1, +1}."""
    y = np.where(_truth(labels), 1.0, -1.0)
    return float(np.maximum(0, 1 - y * (np.asarray(scores, dtype=np.float64) + bias)).mean())


def hinge_bias(scores: ArrayLike, labels: ArrayLike) -> float:
    """The b with the smallest hinge loss, exactly; the middle where several are equally good.

    The loss is piecewise linear in b with a breakpoint y - s for every example. Its slope is minus the positives that
    are still below their breakpoint plus the negatives that are above theirs: it goes up by one at every breakpoint and
    is lowest where it changes sign.
    """
    s, y = np.asarray(scores, dtype=np.float64), _truth(labels)
    breaks = np.sort(np.where(y, 1.0, -1.0) - s)
    below = int(y.sum())  # after so many breakpoints the slope is 0
    if below in (0, len(breaks)):
        raise Problem("a bias needs examples with the attribute and examples without it")
    return float((breaks[below - 1] + breaks[below]) / 2)


@dataclass(frozen=True)
class FactorClassifier:
    """One attribute against the rest for every value of a factor: the value with the highest score is predicted."""

    values: NDArray[Any]  # (C,)
    parts: tuple[HingeClassifier, ...]

    @classmethod
    def fit(cls, codes: ArrayLike, labels: ArrayLike) -> FactorClassifier:
        """The classifier of a factor of two or more values."""
        y = np.asarray(labels)
        values = np.unique(y)
        return cls(values, tuple(HingeClassifier.fit(codes, y == value) for value in values))

    def predict(self, codes: ArrayLike) -> NDArray[Any]:
        """The value for each code, (n,)."""
        return np.asarray(self.values[np.argmax([part.scores(codes) for part in self.parts], axis=0)])

    def accuracy(self, codes: ArrayLike, labels: ArrayLike) -> float:
        """The share of codes that it is right about."""
        return float(np.mean(self.predict(codes) == np.asarray(labels)))


def majority_rate(labels: ArrayLike) -> float:
    """The share of the most frequent value: what a classifier that never looks would reach."""
    counts = np.unique(np.asarray(labels), return_counts=True)[1]
    return float(counts.max() / counts.sum())


def _truth(labels: ArrayLike) -> NDArray[np.bool_]:
    """Labels as true and false, whether they came as such, as 0 and 1 or as -1 and +1."""
    y = np.asarray(labels)
    if y.ndim != 1 or not np.isin(y, (-1, 0, 1)).all() or {-1, 0} <= set(np.unique(y).tolist()):
        raise Problem("the labels of an attribute must be true and false, 1 and 0, or +1 and -1")
    return np.asarray(y > 0)


def _checked(codes: ArrayLike, labels: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    mu, y = np.asarray(codes, dtype=np.float64), _truth(labels)
    if mu.ndim != 2 or len(mu) != len(y):
        raise Problem(f"give one label per row of codes (n, J), not codes {mu.shape} and labels {y.shape}")
    if y.all() or not y.any():
        raise Problem("an attribute vector needs images with the attribute and images without it")
    if not np.isfinite(mu).all():
        raise Problem(f"{int((~np.isfinite(mu)).sum())} of the codes are NaN or infinite")
    return mu, y
