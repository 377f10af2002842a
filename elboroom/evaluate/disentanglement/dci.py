"""Disentanglement, completeness, informativeness: how importance is spread over dimensions and factors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy.stats import entropy
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LassoCV

from elboroom.core.problem import unknown
from elboroom.evaluate.boosting import boosted, cores
from elboroom.evaluate.disentanglement.factors import Floats
from elboroom.evaluate.disentanglement.interval import HalfSamples
from elboroom.evaluate.disentanglement.registry import metric
from elboroom.evaluate.disentanglement.source import Source, stream
from elboroom.evaluate.result import Result

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
    """The importance of each dimension (J,), and how well the factor is predicted where it was fitted and elsewhere."""

    importance: Matrix
    train: float
    test: float


Fit = Callable[[Task], Found]


def _right(model: Any, task: Task) -> tuple[float, float]:
    """Accuracies."""
    return float(np.mean(model.predict(task.x) == task.y)), float(np.mean(model.predict(task.x_test) == task.y_test))


def boosting(task: Task) -> Found:
    """Gradient boosting; importance is the mean decrease of the criterion; accuracy."""
    model = boosted(task.x, task.y, task.seed, task.threads)
    return Found(np.abs(model.feature_importances_), *_right(model, task))


def histograms(task: Task) -> Found:
    """Boosting on histograms; importance is the accuracy lost on held-out points when a dimension is permuted among them,
    clipped at 0, as a share of the sum; accuracy."""
    model = HistGradientBoostingClassifier(
        max_iter=50, learning_rate=0.2, max_depth=3, early_stopping=False, random_state=task.seed
    )
    model.fit(task.x, task.y)
    train, test = _right(model, task)
    rng = np.random.default_rng(task.seed)
    lost = np.zeros(task.x.shape[1])
    for j in range(len(lost)):
        moved = task.x_test.copy()
        moved[:, j] = moved[rng.permutation(len(moved)), j]
        lost[j] = max(0.0, test - float(np.mean(model.predict(moved) == task.y_test)))
    return Found(lost / max(lost.sum(), 1e-12), train, test)


def forest(task: Task) -> Found:
    """A random forest of classes, each split among all dimensions, so that none is used for want of a better; accuracy."""
    model = RandomForestClassifier(max_features=None, random_state=task.seed, n_jobs=task.threads).fit(task.x, task.y)
    return Found(np.abs(model.set_params(n_jobs=1).feature_importances_), *_right(model, task))


def regression_forest(task: Task) -> Found:
    """A random forest of reals; R^2."""
    found = error_forest(task)
    return Found(found.importance, 1 - found.train**2, 1 - found.test**2)


def error_forest(task: Task) -> Found:
    """A random forest of reals; NRMSE."""
    model = RandomForestRegressor(random_state=task.seed, n_jobs=task.threads).fit(task.x, task.y)
    return Found(np.abs(model.set_params(n_jobs=1).feature_importances_), *_errors(model, task))


def lasso(task: Task) -> Found:
    """Cross-validated lasso; importance is |coefficient|; NRMSE."""
    model = LassoCV(random_state=task.seed).fit(task.x, task.y)
    return Found(np.abs(model.coef_), *_errors(model, task))


def _errors(model: Any, task: Task) -> tuple[float, float]:
    """Root mean square errors over the standard deviation of the factor."""
    sides = ((task.x, task.y), (task.x_test, task.y_test))
    train, test = (float(np.sqrt(np.mean((model.predict(x) - y) ** 2) / max(np.var(y), 1e-12))) for x, y in sides)
    return train, test


REGRESSORS: dict[str, Fit] = {"forest": error_forest, "lasso": lasso}
INFORMATIVENESS = {"dlib": "accuracy", "paper": "NRMSE, an error", "modern": "accuracy or R^2", "hist": "accuracy"}


@metric(
    "dci",
    title="Disentanglement (DCI)",
    better="high",
    modes=tuple(INFORMATIVENESS),
    needs={"dlib": "classes", "paper": "values", "modern": "values"},
    interval=HalfSamples(3),
    draws=3,
)
def dci(
    source: Source,
    seed: int,
    mode: str,
    train: int = 10_000,
    test: int = 5_000,
    regressor: str = "forest",
    threads: int | None = None,
) -> Result:
    """D = sum_j rho_j (1 - H_K(R_j.)), with R_jk the importance of dimension j for factor k (Eastwood & Williams 2018).

    Completeness and informativeness are among its parts. regressor: forest or lasso, in mode paper. threads: change the time,
    never the score.
    """
    if regressor not in REGRESSORS:
        raise unknown("regressor", regressor, REGRESSORS)
    rng = stream(seed, "dci", mode)
    fit, held = source.split(rng, train, test)
    x, x_test = source.codes_at(fit, rng), source.codes_at(held, rng)
    if mode == "paper":
        mean, deviation = x.mean(0), np.where(x.std(0) > 1e-12, x.std(0), 1)
        x, x_test = (x - mean) / deviation, (x_test - mean) / deviation
    found = []
    for k, kind in enumerate(source.kinds):
        real = mode == "paper" or (mode == "modern" and kind == "continuous")
        column = (source.values_at if real else source.factors_at)(np.concatenate([fit, held]))[:, k]
        if mode == "paper":
            column = (column - column.mean()) / max(column.std(), 1e-12)
        y, y_test = column[: len(fit)], column[len(fit) :]
        task = Task(x, y, x_test, y_test, seed, cores() if threads is None else threads)
        how: Fit = {"dlib": boosting, "paper": REGRESSORS[regressor], "hist": histograms, "modern": forest}[mode]
        if mode == "modern" and real:
            how = regression_forest
        if not np.ptp(y):  # one value was drawn: it is predicted whatever the code
            known = 0.0 if real else float(np.mean(y_test == y[0]))
            found.append(Found(np.zeros(source.latent), 0.0 if real else 1.0, known))
        else:
            found.append(how(task))
    importance = np.stack([f.importance for f in found], 1)  # (J, K)
    if not np.ptp(x, axis=0).any():
        importance = np.zeros_like(importance)
    parts: dict[str, Any] = {"importance": importance, "disentanglement": disentanglement(importance)}
    parts["completeness"] = completeness(importance, weighted=mode == "dlib")
    parts |= {"train": [f.train for f in found], "test": [f.test for f in found]}
    parts["informativeness_train"] = float(np.mean(parts["train"]))
    parts["informativeness"] = float(np.mean(parts["test"]))
    settings: dict[str, Any] = {"n": len(fit) + len(held), "train": len(fit), "test": len(held)}
    settings["informativeness"] = INFORMATIVENESS[mode]
    settings |= {"regressor": regressor} if mode == "paper" else {}
    settings["scikit_learn"] = sklearn.__version__  # whose trees and importances are not the same in every version
    reason = "" if len(found) > 1 else "disentanglement has no meaning for a single factor"
    return Result(parts["disentanglement"], mode, settings=settings, parts=parts, reason=reason)


def disentanglement(importance: Matrix) -> float | None:
    """sum_j rho_j (1 - H_K(R_j.)), None for one factor."""
    factors = importance.shape[1]
    if factors == 1:
        return None
    total = importance.sum()
    return float((1 - _entropy(importance.T, factors)) @ importance.sum(1) / total) if total > 0 else 0.0


def completeness(importance: Matrix, weighted: bool = True) -> float | None:
    """The mean over k of 1 - H_J(R_.k), weighted by the importance of each factor or not; None for one dimension."""
    latent, factors = importance.shape
    if latent == 1:
        return None
    total = importance.sum()
    weights = importance.sum(0) / max(total, 1e-300) if weighted else np.full(factors, 1 / factors)
    return float((1 - _entropy(importance, latent)) @ weights) if total > 0 else 0.0


def _entropy(columns: Matrix, base: int) -> Matrix:
    """The entropy of each column as shares of its sum, in units of log base."""
    return np.asarray(entropy(columns + 1e-11, base=base))
