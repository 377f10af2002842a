"""Modularity and explicitness (Ridgeway & Mozer 2018): whether a dimension knows one factor only, and whether linear
classifiers read every value of a factor off the codes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from elboroom.evaluate.boosting import cores
from elboroom.evaluate.disentanglement.factors import Floats, Ints
from elboroom.evaluate.disentanglement.interval import HalfSamples
from elboroom.evaluate.disentanglement.mutual_information import binned, mutual_information
from elboroom.evaluate.disentanglement.registry import metric
from elboroom.evaluate.disentanglement.source import Source, stream
from elboroom.evaluate.result import Result

SHUFFLES = 10  # of the rows, to see how much information chance alone shows


def modularity(information: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 - sum_{k != k*} m_k^2 / (m_k*^2 (K - 1)) of each dimension, (J,), from I (J, K), K >= 2; rows of zeros are 0."""
    squared = np.square(information)
    top = squared.max(1)
    rest = squared.sum(1) - top
    share = np.divide(rest, top * (information.shape[1] - 1), out=np.ones_like(top), where=top > 0)
    return np.asarray(1 - share)


def informative(bins: Ints, classes: Ints, information: NDArray[np.float64], seed: int = 0) -> NDArray[np.bool_]:
    """The dimensions that tell more of some factor than chance does: 6 standard deviations over shuffled rows, (J,).

    Plug-in information is biased up, so that noise looks as if it knew something of every factor.
    """
    rng = np.random.default_rng([seed, 4])
    chance = np.stack([mutual_information(bins, rng.permutation(classes)) for _ in range(SHUFFLES)])  # (R, J, K)
    return np.asarray((information > chance.mean(0) + 6 * chance.std(0, ddof=1) + 1e-12).any(1))


@metric(
    "modularity",
    title="Modularity",
    better="high",
    modes=("dlib", "modern"),
    needs={"dlib": "classes", "modern": "bins"},
    interval=HalfSamples(),
)
def measure_modularity(source: Source, seed: int, mode: str, n: int = 10_000, bins: int = 20) -> Result:
    """How nearly each dimension knows one factor only.

    dlib: the mean over all dimensions. modern: over the active ones, with std >= 0.05 and more information than chance.
    """
    codes, classes = source.points(stream(seed, "modularity", mode), n)
    cut = binned(codes, bins)
    information = mutual_information(cut, classes)  # (J, K)
    parts: dict[str, Any] = {"information": information}
    settings: dict[str, Any] = {"n": len(codes), "bins": bins}
    if classes.shape[1] < 2:
        return Result(None, mode, settings=settings, parts=parts, reason="modularity needs two factors; there is one")
    parts["dimensions"] = each = modularity(information)
    counted = np.ones(len(each), bool)
    if mode == "modern":
        parts["counted"] = counted = source.active & informative(cut, classes, information, seed)
        settings["active"] = int(counted.sum())
    return Result(float(each[counted].mean()) if counted.any() else 0.0, mode, settings=settings, parts=parts)


def auc(scores: NDArray[np.float64], classes: Ints) -> NDArray[np.float64]:
    """Area under the ROC curve of each class against the rest, (C,), for scores (n, C); NaN for a class that is absent."""
    ranks = rankdata(scores, axis=0)
    found = np.full(scores.shape[1], np.nan)
    for c in range(scores.shape[1]):
        own = classes == c
        pairs = own.sum() * (~own).sum()
        if pairs:
            found[c] = (ranks[own, c].sum() - own.sum() * (own.sum() + 1) / 2) / pairs
    return found


def probabilities(
    codes: Floats, classes: Ints, others: Floats, size: int, solver: str = "liblinear"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """P(class) of logistic regression on `codes` for these and for other codes, (n, size) each; unseen classes get 0."""
    seen = np.unique(classes)
    found = np.zeros((len(codes), size)), np.zeros((len(others), size))
    if len(seen) == 1:
        found[0][:, seen], found[1][:, seen] = 1, 1
        return found
    if solver == "liblinear":  # the default of 2019, one class against the rest
        model = OneVsRestClassifier(LogisticRegression(solver="liblinear", random_state=0))
    else:
        model = LogisticRegression(max_iter=1000, random_state=0)
    model.fit(codes, classes)
    found[0][:, seen], found[1][:, seen] = model.predict_proba(codes), model.predict_proba(others)
    return found


@metric("explicitness", title="Explicitness", better="high", modes=("dlib", "modern"))
def measure_explicitness(source: Source, seed: int, mode: str, train: int = 10_000, test: int = 5_000) -> Result:
    """How well a logistic regression tells every value of a factor from the others: mean AUC on test points.

    dlib: plain AUC, chance 0.5, of one-vs-rest liblinear fits. modern: 2 AUC - 1, of multinomial fits.
    """
    rng = stream(seed, "explicitness", mode)
    fit_on, test_on = source.split(rng, train, test)
    codes, others = source.codes_at(fit_on, rng), source.codes_at(test_on, rng)
    codes, others = _standardised(codes, codes), _standardised(others, codes)
    classes, answers = source.factors_at(fit_on), source.factors_at(test_on)
    solver = "liblinear" if mode == "dlib" else "lbfgs"

    def area(k: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        seen, unseen = probabilities(codes, classes[:, k], others, source.sizes[k], solver)
        return auc(seen, classes[:, k]), auc(unseen, answers[:, k])

    longest = sorted(range(len(source.sizes)), key=lambda k: -source.sizes[k])
    with ThreadPoolExecutor(cores()) as pool:
        found = dict(zip(longest, pool.map(area, longest), strict=True))
    areas = [found[k] for k in range(len(found))]

    def scale(area: Any) -> Any:
        return area if mode == "dlib" else 2 * area - 1

    means = np.array([[_mean(side) for side in pair] for pair in areas])  # (K, 2)
    parts = {
        "train": float(scale(_mean(means[:, 0]))),
        "factors_train": scale(means[:, 0]),
        "factors_test": scale(means[:, 1]),
        "classes_test": [scale(pair[1]) for pair in areas],
        "absent": {name: int(np.isnan(pair[1]).sum()) for name, pair in zip(source.names, areas, strict=True)},
    }
    settings = {"train": len(codes), "test": len(others), "solver": solver, "chance": float(scale(0.5))}
    value = float(scale(_mean(means[:, 1])))
    if np.isnan(value):
        return Result(None, mode, settings=settings, parts=parts, reason="no factor has two values in the test points")
    return Result(value, mode, settings=settings, parts=parts)


def _standardised(codes: Floats, like: Floats) -> Floats:
    """Codes by the mean and standard deviation of others; constant dimensions become 0."""
    spread = np.where(like.max(0) > like.min(0), like.std(0), 1)
    return np.asarray((codes - like.mean(0)) / spread)


def _mean(values: NDArray[np.float64]) -> float:
    """The mean of what is not NaN."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else np.nan
