"""Number: a value that never travels without the estimator that made it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class Number:
    """A measured value with its unit, estimator, settings and errors; value None carries a reason instead."""

    value: float | None
    unit: str
    estimator: str
    settings: dict[str, Any] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)  # named standard errors
    parts: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    each: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)  # of every row; not kept

    def __post_init__(self) -> None:
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"{self.estimator} gave {self.value}")

    def to_json(self) -> dict[str, Any]:
        """As kept in metrics.json, without what is empty."""
        kept = asdict(replace(self, each=None))
        return {k: v for k, v in kept.items() if k == "value" or (k != "each" and v not in ({}, ""))}

    def __str__(self) -> str:
        if self.value is None:
            return f"— ({self.reason})"
        spread = "".join(f" ± {error:.3g} ({name.replace('_', ' ')})" for name, error in self.errors.items())
        return f"{self.value:.4g}{spread} {self.unit}".rstrip()


def mean(
    values: Tensor, unit: str, estimator: str, settings: dict[str, Any], parts: dict[str, Any] | None = None
) -> Number:
    """The mean of the values of rows, with its standard error over them, of which one row has none."""
    errors = {"sampling": values.std().item() / math.sqrt(len(values))} if len(values) > 1 else {}
    return Number(values.mean().item(), unit, estimator, settings, errors, parts or {}, each=values.numpy())
