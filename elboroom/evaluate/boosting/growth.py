"""Regression trees on features that were sorted once: those that scikit-learn would grow, split for split.

scikit-learn sorts every feature in every node of every tree. Boosting grows thousands of trees on the same features, so here
they are sorted once and each node keeps its rows in the order of every feature. Where two splits are equally good up to
rounding, which happens in nodes of a few rows, scikit-learn's order of sums and of features decides: it is handed that node.
"""

from __future__ import annotations

import math
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.tree import DecisionTreeRegressor
from sklearn.tree._tree import NODE_DTYPE, Tree

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

APART = np.float32(1e-7)  # values of a feature that are closer are equal
ZERO = np.finfo(np.float64).eps  # impurity up to which a node is a leaf
NOISE = 1e-12  # relative error that a sum of thousands of terms may have, whatever their order


class Close(Exception):
    """Two splits are equally good up to rounding, or a node is pure up to rounding: the order of sums decides."""


class Drawn(np.random.RandomState):
    """A generator whose next draw was made already: the one number that a tree of scikit-learn draws."""

    def __init__(self, value: int) -> None:
        super().__init__(0)
        self.value = value

    def randint(self, *_: Any, **__: Any) -> Any:
        """That number."""
        return self.value


class Looks:
    """The order in which scikit-learn looks at features in node after node: its xorshift and the list that it shuffles."""

    def __init__(self, seed: int, features: int) -> None:
        self.seed, self.features = seed, list(range(features))

    def node(self) -> None:
        """Looks at every feature of a node; the last one then stands first."""
        for count in range(len(self.features), 0, -1):
            self.seed ^= self.seed << 13 & 0xFFFFFFFF
            self.seed ^= self.seed >> 17
            self.seed ^= self.seed << 5 & 0xFFFFFFFF
            at = (self.seed & 0x7FFFFFFF) % count
            self.features[count - 1], self.features[at] = self.features[at], self.features[count - 1]


def arranged(rows: Rows, is_left: NDArray[np.bool_]) -> tuple[Rows, Rows]:
    """The two sides of rows in the order that swapping from both ends leaves them in.

    From the front, a row of the right side changes places with the last one not yet placed, until all are placed. So
    gaps on the left are filled from the back, and a row at the back moves one place forward unless it went left.
    """
    count = int(is_left.sum())
    low, back = rows[:count].copy(), rows[count:]
    low[~is_left[:count]] = back[is_left[count:]][::-1]
    comes = rows[: count + 1][~is_left[: count + 1]]  # rows of the right side as they are met in front
    high = np.empty_like(back)
    high[:-1] = back[1:]
    from_front = np.append(is_left[count + 1 :], True)  # places that are filled from the front, the last one first
    high[from_front] = comes[::-1]
    return low, high


class Ordered:
    """Features (n, J) with the rows in the order of each."""

    def __init__(self, x: NDArray[np.float32], depth: int = 3, criterion: str = "squared_error") -> None:
        self.x, self.criterion = x, criterion
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

    def _varies(self, order: Rows) -> bool:
        """Whether every feature takes more than one value in a node."""
        every = np.arange(len(order))
        low, high = self.columns[every, order[:, 0]], self.columns[every, order[:, -1]]
        return bool((high > low + APART).all())

    def tree(self, g: Floats, draw: int) -> DecisionTreeRegressor:
        """The tree fitted to g (n,), with the number that it draws; raises Close where scikit-learn must grow all of it."""
        return _estimator(Growth(self, g, draw).nodes, len(self.columns), self.depth)


class Growth:
    """One tree as it grows: nodes in the order of scikit-learn, a node before its left side before its right."""

    def __init__(self, ordered: Ordered, g: Floats, draw: int) -> None:
        self.ordered, self.g, self.square, self.draw = ordered, g, g * g, draw
        self.nodes: list[tuple[Any, ...]] = []  # left, right, feature, threshold, impurity, rows
        self.looked = 0  # nodes whose features were looked at
        self.plain = draw > 0  # whether all features varied there, so that the order of looks is known
        self.grow(ordered.order, ordered.order[0], 0, 0.0, None)

    def grow(
        self, order: Rows, rows: Rows, depth: int, above: float, parent: tuple[Rows, Rows, int, int] | None
    ) -> int:
        """Adds the node of these rows and all below it; `above` is the sum of squares of its parent."""
        ordered, m, here = self.ordered, len(rows), len(self.nodes)
        power = float(self.square[rows].sum())
        impurity = power / m - (float(self.g[rows].sum()) / m) ** 2
        leaf = (-1, -1, -2, -2.0, impurity, m)
        self.nodes.append(leaf)
        if depth == ordered.depth or m < 2:
            return here
        doubt = NOISE * max(power, above) / m
        if impurity + doubt <= ZERO:
            return here
        if impurity - doubt <= ZERO:
            raise Close
        try:
            found = ordered._best(self.g, order)
        except Close:
            self.nodes.pop()
            self.graft(order, depth, parent)
            return here
        looked = self.looked
        self.looked += 1
        self.plain = self.plain and ordered._varies(order)
        if found is None:
            return here
        feature, place = found
        sides = order[feature, : place + 1], order[feature, place + 1 :]
        low, high = ordered.columns[feature, sides[0][-1]], ordered.columns[feature, sides[1][0]]
        halves = ordered._halves(order, sides[0]) if depth + 1 < ordered.depth else (order, order)
        ends = [self.grow(halves[i], sides[i], depth + 1, power, (order, sides[0], looked, i)) for i in (0, 1)]
        self.nodes[here] = (*ends, feature, float(low) / 2 + float(high) / 2, impurity, m)
        return here

    def graft(self, order: Rows, depth: int, parent: tuple[Rows, Rows, int, int] | None) -> None:
        """Lets scikit-learn grow this node, with its rows, its features and its generator as they would be by now."""
        if parent is None or not self.plain:
            raise Close
        ordered, looks = self.ordered, Looks(self.draw, len(order))
        if any(ordered._equal(order[j], j).any() for j in range(len(order))):
            raise Close
        above, left, count, side = parent
        for _ in range(count + 1):
            looks.node()
        last = looks.features[0]  # by which the rows of the parent were sorted when they were split
        front = above[last]
        values, g = ordered.columns[last, front], self.g[front]
        if np.any((values[1:] == values[:-1]) & (g[1:] != g[:-1])):  # in an order that is not known
            raise Close
        is_left = np.zeros(len(self.g), bool)
        is_left[left] = True
        rows = arranged(front, is_left[front])[side]
        for _ in range(self.looked - count - 1):
            looks.node()
        tree = DecisionTreeRegressor(
            criterion=ordered.criterion, max_depth=ordered.depth - depth, random_state=Drawn(looks.seed)
        )
        with config_context(skip_parameter_validation=True):
            found = tree.fit(ordered.x[rows][:, looks.features], self.g[rows], check_input=False).tree_
        start, depths = len(self.nodes), _depths(found)
        for i in range(found.node_count):
            feature = found.feature[i]
            ends = (-1, -1) if feature < 0 else (found.children_left[i] + start, found.children_right[i] + start)
            feature = looks.features[feature] if feature >= 0 else feature
            self.nodes.append((*ends, feature, found.threshold[i], found.impurity[i], found.n_node_samples[i]))
            inner = depth + depths[i] < ordered.depth and found.n_node_samples[i] > 1 and found.impurity[i] > ZERO
            self.looked += int(inner)


def _depths(tree: Tree) -> list[int]:
    """How deep each node lies."""
    found = [0] * tree.node_count
    for i in range(tree.node_count):
        for end in (tree.children_left[i], tree.children_right[i]):
            if end >= 0:
                found[end] = found[i] + 1
    return found


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
