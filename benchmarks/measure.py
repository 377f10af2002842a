"""Measurements by name, and how time is taken: both sides in turns, then medians."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch

THREADS = 2
SIDE = 1024  # of the square matrices whose product is the limit of this machine


@dataclass(frozen=True)
class Result:
    """One measured number beside its reference; `ratio` is value / reference, more is better, `target` what it should be."""

    value: float
    unit: str
    reference: float
    ratio: float
    fraction_of_sgemm: float | None = None
    target: float | None = None


Measurement = Callable[[], Result]
MEASUREMENTS: dict[str, Measurement] = {}


def measurement(name: str) -> Callable[[Measurement], Measurement]:
    """Registers a function that measures one thing; the first line of its docstring says what and against what."""

    def register(measure: Measurement) -> Measurement:
        MEASUREMENTS[name] = measure
        return measure

    return register


def in_turns(sides: dict[str, Callable[[], float]], repetitions: int) -> dict[str, float]:
    """The median of every side's seconds, measured A B C A B C ... after one round to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(repetitions + 1):
        for name, side in sides.items():
            seconds[name].append(side())
    return {name: median(values[1:]) for name, values in seconds.items()}


def timed(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> Callable[[], float]:
    """The same work, which returns the seconds it took."""

    def run() -> float:
        start = clock()
        work()
        return clock() - start

    return run


def sgemm() -> Callable[[], float]:
    """The seconds of one product of two 1024 x 1024 matrices: what a CPU can do at best."""
    a, b, c = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE), torch.empty(SIDE, SIDE)
    once = timed(lambda: torch.mm(a, b, out=c))
    return lambda: median(once() for _ in range(15))


def sgemm_rate(seconds: float) -> float:
    """Floating-point operations per second of a product that took so long."""
    return 2 * SIDE**3 / seconds
