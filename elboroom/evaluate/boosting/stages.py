"""Gradient boosting whose trees of one stage grow side by side, by what scikit-learn keeps to itself.

Cannot be imported where a version of scikit-learn has it otherwise.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.ensemble._gb import _update_terminal_regions
from sklearn.tree import DecisionTreeRegressor

from elboroom.evaluate.boosting.growth import Close, Drawn, Ordered

RAND_R_MAX = 2147483647  # the bound of the one number that a tree draws, for the order in which it looks at features


STAGE = "self i X y raw_predictions sample_weight sample_mask random_state X_csc X_csr"
LEAVES = "loss tree X y neg_gradient raw_prediction sample_weight sample_mask learning_rate k"
for _function, _names in ((GradientBoostingClassifier._fit_stage, STAGE), (_update_terminal_regions, LEAVES)):
    if " ".join(inspect.signature(_function).parameters) != _names:
        raise ImportError(f"{_function.__name__} of scikit-learn takes other arguments")


class Boosting(GradientBoostingClassifier):  # type: ignore[misc]
    """GradientBoostingClassifier on features that are sorted once, and on several threads.

    The trees of a stage, one for each class, depend on the scores before the stage alone: each thread grows some of
    them. What a tree draws is drawn for it in the order of the classes, so that the number of threads changes nothing. A tree
    that cannot be grown for sure as scikit-learn would is left to it.
    """

    pool: Executor | None = None
    ordered: Ordered
    fallbacks: int = 0  # trees that were left to scikit-learn

    @contextmanager
    def on(self, threads: int) -> Iterator[Boosting]:
        """The same, with so many threads while the context is open."""
        with ThreadPoolExecutor(threads) as pool:
            self.pool = pool if threads > 1 else None
            try:
                yield self
            finally:
                self.pool = None
                self.__dict__.pop("ordered", None)

    def _fit_stage(
        self,
        i: int,
        X: NDArray[np.float32],
        y: NDArray[np.float64],
        raw_predictions: NDArray[np.float64],
        sample_weight: NDArray[np.float64],
        sample_mask: NDArray[np.bool_],
        random_state: np.random.RandomState,
        X_csc: Any = None,
        X_csr: Any = None,
    ) -> NDArray[np.float64]:
        gradient = -self._loss.gradient(y_true=y, raw_prediction=raw_predictions, sample_weight=None)
        gradient = gradient.reshape(len(X), -1).T.copy()  # (C, n), or (1, n) of two classes
        if i == 0:
            self.ordered, self.fallbacks = Ordered(X, self.max_depth, self._rule), 0

        def grow(k: int, draw: int) -> DecisionTreeRegressor:
            try:
                tree = self.ordered.tree(gradient[k], draw)
            except Close:
                self.fallbacks += 1
                tree = DecisionTreeRegressor(criterion=self._rule, max_depth=self.max_depth, random_state=Drawn(draw))
                with config_context(skip_parameter_validation=True):
                    tree.fit(X, gradient[k], sample_weight=sample_weight, check_input=False)
            _update_terminal_regions(
                self._loss,
                tree.tree_,
                X,
                np.array(y == k, dtype=np.float64) if len(gradient) > 1 else y,
                gradient[k],
                raw_predictions,  # of which it moves column k, that no other tree reads
                sample_weight,
                sample_mask,
                learning_rate=self.learning_rate,
                k=k,
            )
            return tree

        classes = range(len(gradient))
        draws = [int(random_state.randint(0, RAND_R_MAX)) for _ in classes]
        self.estimators_[i, :] = list((self.pool.map if self.pool else map)(grow, classes, draws))
        return raw_predictions

    @property
    def _rule(self) -> str:
        """The criterion of its trees, which newer versions no longer let one choose."""
        return "squared_error" if self.criterion == "deprecated" else str(self.criterion)
