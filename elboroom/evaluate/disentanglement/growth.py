"""Regression trees on features that were sorted once: those that scikit-learn would grow, or a refusal where it is close.

scikit-learn sorts every feature in every node of every tree. Boosting grows thousands of trees on the same features, so here
they are sorted once and each node keeps its rows in the order of every feature.
"""

from __future__ import annotations

import math
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeRegressor
from sklearn.tree._tree import NODE_DTYPE, Tree

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

APART = np.float32(1e-7)  # values of a feature that are closer are equal
ZERO = np.finfo(np.float64).eps  # impurity up to which a node is a leaf
NOISE = 1e-12  # relative error that a sum of thousands of terms may have, whatever their order


class Close(Exception):
    """Two splits are equally good up to rounding, or a node is pure up to rounding: the order of sums decides."""


class Ordered:
    """Features (n, J) with the rows in the order of each."""

    def __init__(self, x: NDArray[np.float32], depth: int = 3) -> None:
        self.columns = np.ascontiguousarray(x.T)  # (J, n)
        self.depth = depth
        self.order: Rows = np.argsort(self.columns, axis=1, kind="stable")
        self.share = 1 / np.arange(1.0, max(2, len(x)))  # 1 / w
        self.room = local()  # arrays of each thread, so that none is asked of the system for every node

    def _space(self, name: str, shape: tuple[int, int], kind: Any = np.float64) -> NDArray[Any]:
        if not hasattr(self.room, name):
            setattr(self.room, name, np.empty(self.columns.size, kind))
        space: NDArray[Any] = getattr(self.room, name)
        return space[: shape[0] * shape[1]].reshape(shape)

    def _best(self, g: Floats, order: Rows) -> tuple[int, int] | None:
        """The feature and the place of the cut with the largest S_left^2 / w_left + S_right^2 / w_right."""
        features, m = order.shape
        sums = np.take(g, order, out=self._space("sums", order.shape), mode="clip")  # (J, m)
        size = np.abs(sums[0]).sum()
        np.cumsum(sums, axis=1, out=sums)
        cuts = (features, m - 1)
        right = np.subtract(sums[0, -1], sums[:, :-1], out=self._space("right", cuts))
        right *= right
        right *= self.share[m - 2 :: -1]
        gain = np.multiply(sums[:, :-1], sums[:, :-1], out=self._space("gain", cuts))
        gain *= self.share[: m - 1]
        gain += right  # (J, m - 1)
        at = divmod(int(gain.argmax()), m - 1)
        if self._equal(order[at[0], at[1] : at[1] + 2], at[0])[0]:  # no cut is possible between equal values
            for j in range(features):
                gain[j, self._equal(order[j], j)] = -1
            at = divmod(int(gain.argmax()), m - 1)
        best = float(gain[at])
        if best < 0:
            return None
        if np.count_nonzero(gain >= best - 1e-10 * best - NOISE * math.sqrt(best) * size) > 1:
            raise Close
        return int(at[0]), int(at[1])

    def _equal(self, rows: Rows, feature: int) -> NDArray[np.bool_]:
        """Where the next of these rows, which are in order, has the same value, (m - 1,)."""
        values = self.columns[feature, rows]
        return np.asarray(values[1:] <= values[:-1] + APART)

    def _halves(self, order: Rows, left: Rows) -> tuple[Rows, Rows]:
        """The rows that are in `left`, and the others, each in the order of every feature."""
        is_left = np.zeros(self.columns.shape[1], bool)
        is_left[left] = True
        where = np.take(is_left, order, out=self._space("where", order.shape, bool), mode="clip").ravel()
        low = np.compress(where, order.ravel()).reshape(len(order), -1)
        np.logical_not(where, out=where)
        return low, np.compress(where, order.ravel()).reshape(len(order), -1)

    def tree(self, g: Floats) -> DecisionTreeRegressor:
        """The tree fitted to g (n,); raises Close where it cannot be sure that it is scikit-learn's."""
        nodes: list[tuple[int, int, int, float, float, int]] = []  # left, right, feature, threshold, impurity, rows
        square = g * g

        def grow(order: Rows, rows: Rows, depth: int, above: float) -> int:
            """Adds the node of these rows and all below it; `above` is the sum of squares of its parent."""
            m, here = len(rows), len(nodes)
            power = float(square[rows].sum())
            impurity = power / m - (float(g[rows].sum()) / m) ** 2
            nodes.append((-1, -1, -2, -2.0, impurity, m))
            if depth == self.depth or m < 2:
                return here
            doubt = NOISE * max(power, above) / m
            if impurity + doubt <= ZERO:
                return here
            if impurity - doubt <= ZERO:
                raise Close
            found = self._best(g, order)
            if found is None:
                return here
            feature, place = found
            sides = order[feature, : place + 1], order[feature, place + 1 :]
            low, high = self.columns[feature, sides[0][-1]], self.columns[feature, sides[1][0]]
            halves = self._halves(order, sides[0]) if depth + 1 < self.depth else (order, order)
            ends = [grow(half, side, depth + 1, power) for half, side in zip(halves, sides, strict=True)]
            nodes[here] = (*ends, feature, float(low) / 2 + float(high) / 2, impurity, m)  # type: ignore[assignment]
            return here

        grow(self.order, self.order[0], 0, 0.0)
        return _estimator(nodes, len(self.columns), self.depth)


def _estimator(nodes: list[Any], features: int, depth: int) -> DecisionTreeRegressor:
    """The nodes as a tree of scikit-learn."""
    table = np.zeros(len(nodes), NODE_DTYPE)
    left, right, feature, threshold, impurity, count = zip(*nodes, strict=True)
    table["left_child"], table["right_child"], table["feature"] = left, right, feature
    table["threshold"], table["impurity"] = threshold, impurity
    table["n_node_samples"], table["weighted_n_node_samples"] = count, count
    tree = Tree(features, np.array([1], np.intp), 1)
    state = {"max_depth": depth, "node_count": len(nodes), "nodes": table, "values": np.zeros((len(nodes), 1, 1))}
    tree.__setstate__(state)
    found = DecisionTreeRegressor(max_depth=depth)
    found.tree_, found.n_outputs_, found.n_features_in_ = tree, 1, features
    return found
