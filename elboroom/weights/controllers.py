"""Weights that answer to the value of their term. What they remember is in buffers, so a checkpoint keeps it."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from elboroom.core import distributed
from elboroom.core.objective import Constant, Weight
from elboroom.core.problem import Problem


class Hold(Weight):
    """gamma * |mean - C(t)|: holds the batch mean of a term at the capacity C."""

    logged_as = "capacity"
    steers = True
    couples = True

    def __init__(self, target: Weight | float, gamma: float) -> None:
        super().__init__()
        self.target = target if isinstance(target, Weight) else Constant(target)
        self.gamma = gamma

    def now(self, step: int) -> float | Tensor:
        """The capacity, which is what one wants to see move."""
        return self.target.now(step)

    def apply_to(self, step: int, value: Tensor) -> Tensor:
        return self.gamma * (distributed.mean(value) - self.target.now(step)).abs()

    def extra_repr(self) -> str:
        return f"Hold({self.gamma:g} |. - {self.target.extra_repr()}|)"


class PI(Weight):
    """Holds a value at `target`: w = low + kp sigmoid(-e) - ki sum(e), with e = target - value, within [low, high]."""

    steers = True
    value: Tensor
    integral: Tensor

    def __init__(self, target: Weight | float, kp: float, ki: float, low: float, high: float = math.inf) -> None:
        super().__init__()
        if not low < high:
            raise Problem(f"--low {low:g} must be below --high {high:g}")
        self.target = target if isinstance(target, Weight) else Constant(target)
        self.kp, self.ki, self.low, self.high = kp, ki, low, high
        self.register_buffer("value", torch.tensor(float(low)))
        self.register_buffer("integral", torch.tensor(0.0))

    def now(self, step: int) -> Tensor:
        return self.value.clone()  # what a step used stays in its log when the controller moves on

    def update(self, step: int, value: Tensor) -> None:
        error = self.target.now(step) - value
        integral = self.integral - self.ki * error
        weight = self.low + self.kp * torch.sigmoid(-error) + integral
        outward = (weight < self.low) & (error > 0) | (weight > self.high) & (error < 0)
        self.integral.copy_(torch.where(outward, self.integral, integral))  # out of range, the sum may only come back
        self.value.copy_(weight.clamp(self.low, self.high))

    def extra_repr(self) -> str:
        return f"PI(target {self.target.extra_repr()}, kp {self.kp:g}, ki {self.ki:g}, [{self.low:g}, {self.high:g}])"


class MinimumRate(Weight):
    """value + u (target - value): a Lagrange multiplier u >= 0 that holds a value at or above `target`."""

    steers = True
    u: Tensor

    def __init__(self, target: float, rate: float, high: float = 1.0) -> None:
        super().__init__()
        self.target, self.rate, self.high = target, rate, high
        self.register_buffer("u", torch.tensor(0.0))

    def now(self, step: int) -> Tensor:
        return 1 - self.u

    def apply_to(self, step: int, value: Tensor) -> Tensor:
        u = self.u.clone()  # the graph of this step must not see the update
        return value + u * (self.target - value)

    def update(self, step: int, value: Tensor) -> None:
        self.u.copy_((self.u + self.rate * (self.target - value)).clamp(0, self.high))

    def extra_repr(self) -> str:
        return f"MinimumRate({self.target:g}, step {self.rate:g})"
