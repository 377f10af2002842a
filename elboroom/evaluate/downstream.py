"""Downstream tasks: every factor predicted from the codes, with few and with many labels."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import KFold

from elboroom.core.problem import Problem, unknown
from elboroom.evaluate.boosting import boosted
from elboroom.evaluate.disentanglement.factors import Floats, Ints
from elboroom.evaluate.disentanglement.interval import LEVEL, span
from elboroom.evaluate.disentanglement.source import Rows, Source, Stream
from elboroom.evaluate.registry import Quantity, family, named
from elboroom.evaluate.result import Result

if TYPE_CHECKING:
    from elboroom.evaluate.subject import Subject

Predictor = Literal["boosting", "logistic"]
SIZES = (10, 100, 1_000, 10_000)
FOLDS = 5
SPRITES = ("dsprites", "dsprites-colour", "dsprites-noisy", "dsprites-scream")
CEILINGS = {name: {"orientation": 0.975} for name in SPRITES}  # their first and last orientations are the same shape
GIVES = {
    "downstream-*": Quantity("Factors predicted from * labels", "high"),
    "efficiency-*": Quantity("Label efficiency of * labels", "high"),
}


class Fitted(Protocol):
    """What predicts classes from codes."""

    def predict(self, codes: Floats) -> Ints: ...


class Constant:
    """The predictor of the only value that it was shown."""

    def __init__(self, value: int) -> None:
        self.value = value

    def predict(self, codes: Floats) -> Ints:
        """That value for every code, (n,)."""
        return np.full(len(codes), self.value)


def logistic(codes: Floats, classes: Ints) -> Fitted:
    """Logistic regression, its penalty one of ten chosen over five folds in order; folds that train on one class are out."""
    folds = [fold for fold in KFold(min(FOLDS, len(codes))).split(codes) if len(np.unique(classes[fold[0]])) > 1]
    model: Any = LogisticRegressionCV(Cs=10, cv=folds, scoring="accuracy") if folds else LogisticRegression()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 100 iterations are the protocol
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", UserWarning)  # a class with a single member, which few labels always have
        model.fit(codes, classes)
    fitted: Fitted = model
    return fitted


def fit(codes: Floats, classes: Ints, mode: str, seed: int = 0, threads: int | None = None) -> Fitted:
    """A predictor of one factor; where all labels are the same, of that one."""
    seen = np.unique(classes)
    if len(seen) == 1:
        return Constant(int(seen[0]))
    if mode == "boosting":
        model: Fitted = boosted(codes, classes, seed, threads)
        return model
    if mode == "logistic":
        return logistic(codes, classes)
    raise unknown("predictor", mode, get_args(Predictor))


def downstream(
    source: Source,
    seed: int = 0,
    mode: Predictor = "boosting",
    sizes: Sequence[int] = SIZES,
    test: int = 5_000,
    threads: int | None = None,
    ceilings: Mapping[str, float] | None = None,
) -> dict[str, Result]:
    """Mean test accuracy over the factors for each number of labels, and efficiency: its ratio to that of the most labels.

    Keys are downstream-10, ..., efficiency-10, ... For each size the training points are drawn first, then fresh test
    points. Values that were not among the labels count as errors. ceilings: by factor, the best accuracy there can be,
    where images of different values are the same.
    """
    if mode not in get_args(Predictor):
        raise unknown("predictor", mode, get_args(Predictor))
    if not sizes or min(sizes) < 1 or test < 1:
        raise Problem("at least one label and one test point are needed")
    source.require("classes", "a downstream task", mode)
    rng = Stream(seed)
    found = {f"downstream-{size}": _one(source, rng, seed, mode, size, test, threads, ceilings or {}) for size in sizes}
    most = max(sizes)
    for size in sorted(sizes):
        if size < most:
            found[f"efficiency-{size}"] = _efficiency(found, size, most)
    return named(found)


@family("downstream", "code table", GIVES, modes=get_args(Predictor), by_name=True)
def of_run(
    subject: Subject, mode: Predictor = "boosting", representation: str = "mean", seed: int = 0
) -> dict[str, Result]:
    """Every factor predicted from the codes with 10 to 10,000 labels; boosting takes minutes.

    Of a small data set, what it has labels for; the rest has no value but a reason.
    """
    source = subject.source(representation, smaller=True)
    return downstream(source, seed, mode, ceilings=CEILINGS.get(subject.run.data.about.name))


def _one(
    source: Source,
    rng: Stream,
    seed: int,
    mode: str,
    size: int,
    test: int,
    threads: int | None,
    ceilings: Mapping[str, float],
) -> Result:
    start, name = time.perf_counter(), f"downstream-{size}"
    settings = {**source.settings, "seed": seed, "train": size}
    if isinstance(source, Rows) and source.allow_smaller:
        if size >= len(source):
            return Result(
                None,
                mode,
                settings=settings,
                reason=f"there are only {len(source):,} rows for {size:,} labels",
                metric=name,
            )
        test = min(test, len(source) - size)
    fit_on, test_on = source.split(rng, size, test)
    codes, others = source.codes_at(fit_on, rng), source.codes_at(test_on, rng)
    classes, answers = source.factors_at(fit_on), source.factors_at(test_on)
    right = np.array(
        [_accuracies(codes, classes[:, k], others, answers[:, k], mode, seed, threads) for k in range(classes.shape[1])]
    )  # (K, 2)
    value = float(right[:, 1].mean())
    parts = {
        "train": float(right[:, 0].mean()),
        "min_train": float(right[:, 0].min()),
        "min_test": float(right[:, 1].min()),
        "factors_train": right[:, 0],
        "factors_test": right[:, 1],
        "chance": [1 / n for n in source.sizes],
        "ceiling": [ceilings.get(name, 1.0) for name in source.names],
        "unseen": [n - len(np.unique(c)) for n, c in zip(source.sizes, classes.T, strict=True)],
    }
    low, high = binomtest(round(value * len(others)), len(others)).proportion_ci(LEVEL, method="wilson")
    interval = span("Wilson", float(low), float(high), len(others))
    settings |= {"test": len(others)}
    return Result(
        value, mode, settings=settings, interval=interval, parts=parts, metric=name, seconds=time.perf_counter() - start
    )


def _accuracies(
    codes: Floats, classes: Ints, others: Floats, answers: Ints, mode: str, seed: int, threads: int | None
) -> NDArray[np.float64]:
    """On the training points and on the test points, (2,)."""
    model = fit(codes, classes, mode, seed, threads)
    return np.array([np.mean(model.predict(codes) == classes), np.mean(model.predict(others) == answers)])


def _efficiency(found: Mapping[str, Result], size: int, most: int) -> Result:
    few, many = found[f"downstream-{size}"], found[f"downstream-{most}"]
    name, settings = f"efficiency-{size}", {**few.settings, "train": [size, most]}
    if few.value is None or not many.value:
        reason = few.reason or many.reason or "no prediction is correct, even with the most labels"
        return Result(None, few.mode, settings=settings, reason=reason, metric=name)
    return Result(few.value / many.value, few.mode, settings=settings, metric=name)
