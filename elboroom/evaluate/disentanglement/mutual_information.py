"""Mutual information between dimensions and factors, in nats: plug-in over bins, or by nearest neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression

from elboroom.evaluate.disentanglement.factors import Floats, Ints


def binned(codes: Floats, bins: int = 20) -> Ints:
    """Each column cut into bins of equal width over its own range, 0..bins-1, (n, J)."""
    return np.stack([_cut(column, bins) for column in codes.T], 1).astype(np.int64)


def _cut(column: Floats, bins: int) -> Ints:
    """A column in its bins; one that varies by nothing but rounding is in one."""
    if np.ptp(column) <= 4 * bins * np.spacing(np.abs(column).max()):
        return np.zeros(len(column), np.int64)
    return np.asarray(np.digitize(column, np.histogram(column, bins)[1][:-1]) - 1)


def entropy(classes: Ints) -> NDArray[np.float64]:
    """H of each column of classes, (K,)."""
    shares = (np.bincount(column) / len(column) for column in classes.T)
    return np.array([-np.sum(p[p > 0] * np.log(p[p > 0])) for p in shares])


def mutual_information(a: Ints, b: Ints) -> NDArray[np.float64]:
    """Plug-in I of each column of a with each column of b, (J, K): sum p(u,v) log p(u,v) / (p(u) p(v))."""
    found = np.empty((a.shape[1], b.shape[1]))
    widths = b.max(0) + 1
    for j, column in enumerate(a.T):
        for k, other in enumerate(b.T):
            joint = np.bincount(column * widths[k] + other, minlength=(column.max() + 1) * widths[k])
            p = joint.reshape(-1, widths[k]) / len(column)  # (values of a, values of b)
            independent = p.sum(1, keepdims=True) * p.sum(0)
            seen = p > 0
            found[j, k] = np.sum(p[seen] * np.log(p[seen] / independent[seen]))
    return np.maximum(found, 0)


def histogram_information(codes: Floats, classes: Ints, bins: int = 20) -> NDArray[np.float64]:
    """Plug-in I of each dimension, cut into bins, with each factor, (J, K)."""
    return mutual_information(binned(codes, bins), classes)


def neighbour_information(
    codes: Floats, factors: NDArray[Any], neighbours: int = 10, seed: int = 0, continuous: tuple[bool, ...] = ()
) -> NDArray[np.float64]:
    """I of each dimension with each factor by nearest neighbours (Ross 2014; Kraskov 2004), (J, K); constant columns 0.

    continuous: for each factor, whether its values are reals; by default all are classes.
    """
    spread = np.ptp(codes, axis=0) > 0
    found = np.zeros((codes.shape[1], factors.shape[1]))
    for k, column in enumerate(factors.T):
        measure = mutual_info_regression if continuous and continuous[k] else mutual_info_classif
        for j in np.flatnonzero(spread):  # one by one: the noise against ties then knows no order of columns
            found[j, k] = measure(
                codes[:, [j]], column, discrete_features=False, n_neighbors=neighbours, random_state=seed
            )[0]
    return found


def gap(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest minus the second largest entry of each column, (K,); the second of a single row is 0."""
    order = np.sort(np.vstack([np.zeros((1, matrix.shape[1])), matrix]) if len(matrix) == 1 else matrix, axis=0)
    return np.asarray(order[-1] - order[-2])
