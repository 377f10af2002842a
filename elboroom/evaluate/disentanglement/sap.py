"""Separated attribute predictability: how far the best single dimension predicts a factor ahead of the second best."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.svm import LinearSVC

from elboroom.evaluate.boosting import cores
from elboroom.evaluate.disentanglement.factors import Floats, Ints
from elboroom.evaluate.disentanglement.interval import Bootstrap, HalfSamples
from elboroom.evaluate.disentanglement.mutual_information import gap
from elboroom.evaluate.disentanglement.registry import metric
from elboroom.evaluate.disentanglement.source import THRESHOLD, Source, stream
from elboroom.evaluate.result import Result

MODES = ("dlib", "dlib-continuous", "paper", "group")
FEW = 4  # classes up to which every assignment of classes to intervals is tried
Matrix = NDArray[np.float64]


@metric(
    "sap",
    title="Separated attribute predictability",
    better="high",
    modes=MODES,
    needs={"dlib": "classes", "dlib-continuous": "values", "paper": "values", "group": "values"},
    interval={"dlib": HalfSamples(10), "dlib-continuous": Bootstrap(), "paper": Bootstrap(), "group": Bootstrap()},
)
def sap(
    source: Source,
    seed: int,
    mode: str,
    train: int = 10_000,
    test: int = 5_000,
    n: int = 10_000,
    correlation: float = 0.5,
) -> Result:
    """mean_k S_(1)k - S_(2)k, with S_jk how well dimension j alone predicts factor k (Kumar et al. 2018).

    train, test: points of the classifiers in mode dlib. n: points in modes paper and group. group: as paper, with dimensions
    that are correlated by more than `correlation` as one.
    """
    rng = stream(seed, "sap", mode)
    settings: dict[str, Any] = {"n": n}
    if mode in ("paper", "group"):
        index = source.draw(rng, n)
        codes, factors, values = source.codes_at(index, rng), source.factors_at(index), source.values_at(index)
        s = squared_correlation(codes, values)
        for k in (k for k, kind in enumerate(source.kinds) if kind == "categorical"):
            s[:, k] = [balanced_accuracy(column, factors[:, k]) for column in codes.T]
        active = codes.std(0) >= THRESHOLD
        s[~active] = 0
        together = groups(codes, active, correlation) if mode == "group" else []
        if together:
            s = np.stack([
                s[dims[0]] if len(dims) == 1 else _jointly(codes[:, dims], factors, values, source.kinds) for dims in together
            ])  # fmt: skip
        settings |= {"n": len(index), "threshold": THRESHOLD, "active": int(active.sum())}
        ceilings = [
            1 - 1 / m if kind == "categorical" else 1 for m, kind in zip(source.sizes, source.kinds, strict=True)
        ]
        parts: dict[str, Any] = {"scores": s, "gaps": gap(s), "ceiling": float(np.mean(ceilings))}
        if mode == "group":
            settings |= {"correlation": correlation}
            parts |= {"groups": [dims.tolist() for dims in together]}
        return Result(float(gap(s).mean()), mode, settings=settings, parts=parts)
    fit, held = source.split(rng, train, test)
    codes = source.codes_at(fit, rng)
    settings = {"n": len(fit), "train": len(fit)}
    if mode == "dlib-continuous":
        s = squared_correlation(codes, source.values_at(fit))
    else:
        s = _accuracies(codes, source.factors_at(fit), source.codes_at(held, rng), source.factors_at(held), seed)
        settings |= {"n": len(fit) + len(held), "test": len(held), "C": 0.01}
    if not (codes.std(0) > 1e-12).any():
        s = np.zeros_like(s)  # no dimension tells anything
    return Result(float(gap(s).mean()), mode, settings=settings, parts={"scores": s, "gaps": gap(s)})


def groups(codes: Floats, active: NDArray[np.bool_], correlation: float) -> list[Ints]:
    """Dimensions in groups, each by its numbers: active ones correlated by more than this, and those that such ones lead to."""
    z = codes - np.mean(codes, 0, dtype=np.float64)
    norm = np.sqrt((z**2).sum(0))
    alike = (np.abs(z.T @ z) > correlation * np.outer(norm, norm)) & np.outer(active, active)
    label = connected_components(csr_matrix(alike), directed=False)[1]
    return [np.flatnonzero(label == g) for g in range(label.max() + 1)]


def _jointly(codes: Floats, factors: Ints, values: NDArray[Any], kinds: Sequence[str]) -> Matrix:
    """How well some dimensions together predict each factor, (K,): R^2 of a plane; of categories, thresholds on the line along
    which linear discriminants tell them best. Of one dimension both would be what it scores alone."""
    found = np.zeros(factors.shape[1])
    for k, kind in enumerate(kinds):
        if kind == "categorical":
            line = LinearDiscriminantAnalysis(n_components=1).fit_transform(codes, factors[:, k])[:, 0]
            found[k] = balanced_accuracy(line, factors[:, k])
        else:
            found[k] = _plane(codes, values[:, k])
    return found


def _plane(codes: Floats, values: NDArray[Any]) -> float:
    """R^2 of a linear regression on several dimensions."""
    z = codes - np.mean(codes, 0, dtype=np.float64)
    z, v = z / z.std(0), values - np.mean(values, dtype=np.float64)
    rest = v - z @ np.linalg.lstsq(z, v, rcond=1e-9)[0]
    return 1 - float((rest**2).sum() / (v**2).sum())


def squared_correlation(codes: Floats, values: NDArray[Any]) -> Matrix:
    """cov(z_j, v_k)^2 / (var(z_j) var(v_k)), 0 where z_j or v_k is constant, (J, K)."""
    z = codes - np.mean(codes, 0, dtype=np.float64)
    v = values - np.mean(values, 0, dtype=np.float64)
    n = len(z) - 1
    spread = np.outer((z**2).sum(0) / n, (v**2).sum(0) / n)
    alive = ((z**2).sum(0) / n > 1e-12)[:, None] & ((v**2).sum(0) > 0)
    found: Matrix = np.divide((z.T @ v / n) ** 2, spread, out=np.zeros_like(spread), where=alive)
    return found


def _accuracies(codes: Floats, factors: Ints, test: Floats, truth: Ints, seed: int) -> Matrix:
    """The accuracy of a linear SVM on each single dimension for each factor, (J, K)."""

    def accuracy(place: tuple[int, ...]) -> float:
        j, k = place
        if len(np.unique(factors[:, k])) == 1:
            return float(np.mean(truth[:, k] == factors[0, k]))
        model = LinearSVC(C=0.01, class_weight="balanced", dual="auto", random_state=seed)
        model.fit(codes[:, [j]], factors[:, k])
        return float(np.mean(model.predict(test[:, [j]]) == truth[:, k]))

    shape = codes.shape[1], factors.shape[1]
    with ThreadPoolExecutor(cores()) as pool:
        return np.array(list(pool.map(accuracy, np.ndindex(shape)))).reshape(shape)


def balanced_accuracy(codes: Floats, classes: Ints) -> float:
    """The best balanced accuracy of C - 1 thresholds on one dimension, each interval standing for a class.

    Exact: with P_c(i) the share of class c among the first i points in order, an interval from i to i' that stands for c
    gains P_c(i') - P_c(i). Up to 4 classes each takes one interval; above, a class may take several or none.
    """
    order = np.argsort(codes, kind="stable")
    count = np.bincount(classes)
    present = np.flatnonzero(count)
    hits = (classes[order, None] == present) / count[present]  # (n, C)
    cuts = np.flatnonzero(np.append(np.diff(codes[order]) > 0, True)) + 1  # equal codes are on one side
    share = np.concatenate([np.zeros((1, len(present))), np.cumsum(hits, 0)[cuts - 1]])  # (cuts + 1, C)
    if len(present) <= FEW:
        return max(_in_order(share[:, list(p)]) for p in permutations(range(len(present)))) / len(present)
    best = share.max(1)  # of one interval up to each cut
    for _ in range(len(present) - 1):
        best = (np.maximum.accumulate(best[:, None] - share, axis=0) + share).max(1)
    return float(best[-1]) / len(present)


def _in_order(share: Matrix) -> float:
    """The best sum of shares if the intervals stand for the classes in this order."""
    best = share[:, 0]
    for column in share.T[1:]:
        best = np.maximum.accumulate(best - column) + column
    return float(best[-1])
