"""Disentanglement, completeness, informativeness: how importance is spread over dimensions and factors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LassoCV

from elboroom.evaluate.disentanglement.boosting import boosted
from elboroom.evaluate.disentanglement.score import Floats

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """One factor to predict: codes and factor to fit on and to test on."""

    x: Floats
    y: NDArray[Any]
    x_test: Floats
    y_test: NDArray[Any]
    seed: int
    threads: int


@dataclass(frozen=True)
class Found:
    """The importance of each dimension (J,), and how well the factor is predicted on both halves."""

    importance: Matrix
    train: float
    test: float


def _right(model: Any, task: Task) -> tuple[float, float]:
    return float(np.mean(model.predict(task.x) == task.y)), float(np.mean(model.predict(task.x_test) == task.y_test))


def _boosting(task: Task) -> Found:
    """Gradient boosting; importance is the decrease of the criterion."""
    model = boosted(task.x, task.y, task.seed, task.threads)
    return Found(np.abs(model.feature_importances_), *_right(model, task))


def _histograms(task: Task) -> Found:
    """Histogram boosting; importance is the loss of held-out accuracy when a dimension is permuted, clipped at 0."""
    model = HistGradientBoostingClassifier(max_iter=20, max_leaf_nodes=15, early_stopping=False, random_state=task.seed)
    model.fit(task.x, task.y)
    train, test = _right(model, task)
    rng = np.random.default_rng(task.seed)
    lost = np.zeros(task.x.shape[1])
    for j in range(len(lost)):
        moved = task.x_test.copy()
        moved[:, j] = moved[rng.permutation(len(moved)), j]
        lost[j] = test - np.mean(model.predict(moved) == task.y_test)
    return Found(np.maximum(lost, 0), train, test)


def _forest(task: Task) -> Found:
    """A random forest of classes."""
    model = RandomForestClassifier(random_state=task.seed, n_jobs=task.threads).fit(task.x, task.y)
    return Found(np.abs(model.feature_importances_), *_right(model, task))


def _forest_line(task: Task) -> Found:
    """A random forest of reals; R^2."""
    model = RandomForestRegressor(random_state=task.seed, n_jobs=task.threads).fit(task.x, task.y)
    return Found(np.abs(model.feature_importances_), model.score(task.x, task.y), model.score(task.x_test, task.y_test))


def _error(model: Any, x: Floats, y: NDArray[Any]) -> float:
    """The root mean square error over that of the mean."""
    return float(np.sqrt(np.mean((model.predict(x) - y) ** 2) / max(np.var(y), 1e-12)))


def _lasso(task: Task) -> Found:
    """Cross-validated lasso on standardised codes; NRMSE."""
    model = LassoCV(random_state=task.seed).fit(task.x, task.y)
    return Found(np.abs(model.coef_), _error(model, task.x, task.y), _error(model, task.x_test, task.y_test))


def _regression(task: Task) -> Found:
    """A random forest on standardised codes; NRMSE."""
    model = RandomForestRegressor(random_state=task.seed, n_jobs=task.threads).fit(task.x, task.y)
    scores = (_error(model, x, y) for x, y in ((task.x, task.y), (task.x_test, task.y_test)))
    return Found(np.abs(model.feature_importances_), *scores)
