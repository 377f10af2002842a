"""Weights that are functions of the step alone. Steps are absolute; builders turn fractions of the run into steps."""

from __future__ import annotations

import math

from torch import Tensor

from elboroom.core.objective import Weight
from elboroom.core.problem import Problem


class Linear(Weight):
    """From `start` to `end` in `steps` steps, then `end`."""

    def __init__(self, start: float, end: float, steps: int) -> None:
        super().__init__()
        self.start, self.end, self.steps = start, end, steps

    def now(self, step: int) -> float:
        share = min(1.0, step / self.steps) if self.steps else 1.0
        return self.start + (self.end - self.start) * share

    def extra_repr(self) -> str:
        return f"Linear({self.start:g} -> {self.end:g} in {self.steps:,} steps)"


class Geometric(Linear):
    """From `start` to `end` by a constant factor a step: half-way it is sqrt(start * end)."""

    def now(self, step: int) -> float:
        share = min(1.0, step / self.steps) if self.steps else 1.0
        return float(self.start * (self.end / self.start) ** share)

    def extra_repr(self) -> str:
        return f"Geometric({self.start:g} -> {self.end:g} in {self.steps:,} steps)"


class Tanh(Weight):
    """height (1 + tanh((t - centre) / width)), which stands still from `until` on: then it may never come near 2 height."""

    def __init__(self, height: float, centre: float, width: float, until: int) -> None:
        super().__init__()
        self.height, self.centre, self.width, self.until = height, centre, width, until

    def now(self, step: int) -> float:
        return self.height * (1 + math.tanh((min(step, self.until) - self.centre) / self.width))

    def extra_repr(self) -> str:
        return f"Tanh({self.now(0):.2g} -> {self.now(self.until):.2g} in {self.until:,} steps)"


class Sigmoid(Weight):
    """sigmoid((t - S/2) / (S/10)) for t < S, then 1; starts at 0.0067."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps

    def now(self, step: int) -> float:
        if step >= self.steps:
            return 1.0
        return 1 / (1 + math.exp(-(step - self.steps / 2) / (self.steps / 10)))

    def extra_repr(self) -> str:
        return f"Sigmoid(in {self.steps:,} steps)"


class Cyclical(Weight):
    """min(1, tau / ramp) with tau the position in the current cycle of `period` steps; mean over a cycle 1 - ramp/2."""

    def __init__(self, period: float, ramp: float) -> None:
        super().__init__()
        if period < 2:
            raise Problem(f"a cycle lasts only {period:g} steps; use fewer --cycles or more --steps")
        self.period, self.ramp = period, ramp

    def now(self, step: int) -> float:
        return min(1.0, (step % self.period) / self.period / self.ramp)

    def extra_repr(self) -> str:
        return f"Cyclical(period {self.period:,.0f}, ramp {self.ramp:g})"


class Staircase(Weight):
    """`start`, raised by `rise` every `every` steps, up to `end`."""

    def __init__(self, start: float, end: float, rise: float, every: int) -> None:
        super().__init__()
        self.start, self.end, self.rise, self.every = start, end, rise, every

    def now(self, step: int) -> float:
        return min(self.end, self.start + self.rise * (step // self.every))

    def extra_repr(self) -> str:
        return f"Staircase({self.start:g} -> {self.end:g} by {self.rise:g} every {self.every:,} steps)"


class After(Weight):
    """Another schedule, begun at step `start`, or when the stage that it is of begins; its first value before that."""

    def __init__(self, start: int, schedule: Weight) -> None:
        super().__init__()
        self.start, self.schedule = start, schedule

    def begin(self, step: int) -> None:
        self.start = step

    def now(self, step: int) -> float | Tensor:
        return self.schedule.now(max(0, step - self.start))

    def extra_repr(self) -> str:
        return f"{self.schedule.extra_repr()} from step {self.start:,}"
