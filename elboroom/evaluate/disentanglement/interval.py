"""Intervals of scores: the spread over evaluation samples, by the rule that fits the estimator."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import stats

from elboroom.evaluate.disentanglement.factors import Ints
from elboroom.evaluate.disentanglement.source import Rows
from elboroom.evaluate.result import Result

LEVEL = 0.95
NORMAL = float(stats.norm.ppf((1 + LEVEL) / 2))  # 1.96

Again = Callable[[Rows, int], Result]  # the same metric on other rows, with a seed


class Spread(Protocol):
    """A rule that gives the interval of a score on arrays."""

    def __call__(self, score: Result, rows: Rows, seed: int, again: Again) -> dict[str, Any]: ...


def span(how: str, low: float, high: float, n: int, **more: float) -> dict[str, Any]:
    """An interval with the rule that made it and the number of repeats or points behind it."""
    return {"how": how, "over": "evaluation sample", "level": LEVEL, "low": low, "high": high, "n": n, **more}


def repeated(values: Sequence[float]) -> dict[str, Any]:
    """The t-interval of the mean over independent evaluation draws."""
    n, mean, sd = len(values), float(np.mean(values)), float(np.std(values, ddof=1))
    half = float(stats.t.ppf((1 + LEVEL) / 2, n - 1)) * sd / math.sqrt(n)
    return span("t over evaluation draws", mean - half, mean + half, n, mean=mean, sd=sd)


def _pool(score: Result, rows: Rows, rng: np.random.Generator) -> Ints:
    """As many rows as the score was read off."""
    return rng.permutation(len(rows))[: int(score.settings.get("n", len(rows)))]


@dataclass(frozen=True)
class Wilson:
    """Of an accuracy on `test` evaluation points."""

    def __call__(self, score: Result, rows: Rows, seed: int, again: Again) -> dict[str, Any]:
        p, n = float(score.parts["accuracy"]), int(score.settings["test"])
        scale = 1 + NORMAL**2 / n
        centre = (p + NORMAL**2 / (2 * n)) / scale
        half = NORMAL * math.sqrt(p * (1 - p) / n + (NORMAL / (2 * n)) ** 2) / scale
        low, high = centre - half, centre + half
        if score.value != p:  # a score that is 0 at chance
            low, high = ((end - score.parts["chance"]) / (1 - score.parts["chance"]) for end in (low, high))
        return span("Wilson", low, high, n)


@dataclass(frozen=True)
class Bootstrap:
    """Percentiles over resamples of rows with replacement: for scores that rows drawn twice do not raise."""

    repeats: int = 200

    def __call__(self, score: Result, rows: Rows, seed: int, again: Again) -> dict[str, Any]:
        rng = np.random.default_rng([seed, 2])
        pool = _pool(score, rows, rng)
        drawn = (pool[rng.integers(len(pool), size=len(pool))] for _ in range(self.repeats))
        found = [again(rows.take(each), seed).value for each in drawn]
        values = [value for value in found if value is not None]
        low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return span("percentile bootstrap", float(low), float(high), len(values))


@dataclass(frozen=True)
class HalfSamples:
    """value +- t sd over half-samples without replacement: repeated rows would raise mutual information."""

    repeats: int = 200

    def __call__(self, score: Result, rows: Rows, seed: int, again: Again) -> dict[str, Any]:
        rng = np.random.default_rng([seed, 3])
        pool = _pool(score, rows, rng)
        halves = (rng.permutation(pool)[: len(pool) // 2] for _ in range(self.repeats))
        found = [again(rows.take(half), seed).value for half in halves]
        values = [value for value in found if value is not None]
        sd, value = float(np.std(values, ddof=1)), float(score.value or 0)
        wide = NORMAL if len(values) >= 100 else float(stats.t.ppf((1 + LEVEL) / 2, len(values) - 1))
        return span("half-samples", value - wide * sd, value + wide * sd, len(values), sd=sd)
