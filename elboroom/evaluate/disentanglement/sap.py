"""Separated attribute predictability: how far the best single dimension predicts a factor ahead of the second best."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import LinearSVC

from elboroom.evaluate.boosting import cores
from elboroom.evaluate.disentanglement.factors import Floats, Ints
from elboroom.evaluate.disentanglement.interval import Bootstrap, HalfSamples
from elboroom.evaluate.disentanglement.mutual_information import gap
from elboroom.evaluate.disentanglement.registry import metric
from elboroom.evaluate.disentanglement.source import THRESHOLD, Source, stream
from elboroom.evaluate.result import Result

MODES = ("dlib", "dlib-continuous", "paper")
FEW = 4  # classes up to which every assignment of classes to intervals is tried
Matrix = NDArray[np.float64]


@metric(
    "sap",
    title="Separated attribute predictability",
    better="high",
    modes=MODES,
    needs={"dlib": "classes", "dlib-continuous": "values", "paper": "values"},
    interval={"dlib": HalfSamples(10), "dlib-continuous": Bootstrap(), "paper": Bootstrap()},
)
def sap(source: Source, seed: int, mode: str, train: int = 10_000, test: int = 5_000, n: int = 10_000) -> Result:
    """mean_k S_(1)k - S_(2)k, with S_jk how well dimension j alone predicts factor k (Kumar et al. 2018).

    train, test: points of the classifiers in mode dlib. n: points in mode paper.
    """
    rng = stream(seed, "sap", mode)
    settings: dict[str, Any] = {"n": n}
    if mode == "paper":
        index = source.draw(rng, n)
        codes, factors = source.codes_at(index, rng), source.factors_at(index)
        s = squared_correlation(codes, source.values_at(index))
        for k in (k for k, kind in enumerate(source.kinds) if kind == "categorical"):
            s[:, k] = [balanced_accuracy(column, factors[:, k]) for column in codes.T]
        active = codes.std(0) >= THRESHOLD
        s[~active] = 0
        settings |= {"n": len(index), "threshold": THRESHOLD, "active": int(active.sum())}
        ceilings = [
            1 - 1 / m if kind == "categorical" else 1 for m, kind in zip(source.sizes, source.kinds, strict=True)
        ]
        parts: dict[str, Any] = {"scores": s, "gaps": gap(s), "ceiling": float(np.mean(ceilings))}
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
