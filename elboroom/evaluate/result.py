"""Result: a value that never travels without the estimator that made it, and that knows which way is better."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from elboroom.core.problem import Problem

Better = Literal["high", "low", "neither"]
KEPT = (
    "value",
    "unit",
    "metric",
    "estimator",
    "settings",
    "errors",
    "interval",
    "parts",
    "reason",
    "note",
)  # in metrics.json


@dataclass(frozen=True)
class Result:
    """A measured value with its estimator, unit, settings and errors; value None carries a reason instead.

    A metric of codes says its name, and its estimator is a mode of it: metrics.json has `metric` and `mode` there.
    """

    value: float | None
    estimator: str
    unit: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)  # named standard errors
    interval: dict[str, Any] | None = None
    parts: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    note: str = ""  # a warning that belongs beside the value
    metric: str = ""
    title: str = ""
    better: Better = "neither"
    each: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)  # of every row; not kept
    seconds: float = field(default=0.0, compare=False)  # not kept, so that equal is equal

    def __post_init__(self) -> None:
        if self.value is not None and not math.isfinite(self.value):
            raise Problem(
                f"{self._name}{self.estimator} gave {self.value}, which is no number: the weights or the data are too large"
            )

    @property
    def mode(self) -> str:
        """How a metric of codes was measured; nothing of other metrics."""
        return self.estimator if self.metric else ""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is said beside the value: how many draws an importance-weighted bound rests on, and its warning."""
        effective, draws = self.parts.get("effective_samples"), self.settings.get("K")
        said = f"{effective:.1f} of {draws:,} draws effective" if isinstance(effective, float) and draws else ""
        unknown = self.parts.get("unknown_words")
        words = f"{unknown:.1%} of the words unknown" if isinstance(unknown, float) and unknown else ""
        return tuple(remark for remark in (said, words, self.note) if remark and self.value is not None)

    @property
    def _name(self) -> str:
        return f"{self.metric} " if self.metric else ""

    def to_json(self) -> dict[str, Any]:
        """As kept in metrics.json: without what is empty, arrays as lists, what is undefined as None."""
        entry = {name: plain(getattr(self, name)) for name in KEPT}
        entry["errors"] = {name: error for name, error in entry["errors"].items() if error is not None}
        if self.metric:
            entry = {("mode" if name == "estimator" else name): value for name, value in entry.items()}
        return {name: value for name, value in entry.items() if name == "value" or value not in ({}, "", None)}

    @classmethod
    def from_json(cls, name: str, entry: Mapping[str, Any]) -> Result:
        """The entry of metrics.json under this name; title and direction are those of the registry."""
        from elboroom.evaluate.registry import described  # which knows the modules that make results

        said = {key: value for key, value in entry.items() if key in KEPT}
        if "mode" in entry and "estimator" not in entry:
            said = {"metric": name} | said | {"estimator": entry["mode"]}
        return described(name, cls(**{"estimator": ""} | said))

    def __str__(self) -> str:
        name = f"{self.metric} ({self.mode}): " if self.metric else ""
        if self.value is None:
            return f"{name}— ({self.reason})"
        spread = "".join(f" ± {error:.3g} ({which.replace('_', ' ')})" for which, error in self.errors.items())
        spread += f" [{self.interval['low']:.3f}, {self.interval['high']:.3f}]" if self.interval else ""
        return ", ".join([f"{name}{self.value:.4g}{spread} {self.unit}".rstrip(), *self.remarks])


def plain(value: Any) -> Any:
    """The same in what JSON can hold: lists, numbers, strings; NaN and infinity become None."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(v) for v in (value.tolist() if isinstance(value, np.ndarray) else value)]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def mean(
    values: Tensor, estimator: str, unit: str, settings: dict[str, Any], parts: dict[str, Any] | None = None
) -> Result:
    """The mean of the values of rows, with its standard error over them, of which one row has none."""
    errors = {"sampling": values.std().item() / math.sqrt(len(values))} if len(values) > 1 else {}
    return Result(values.mean().item(), estimator, unit, settings, errors, parts=parts or {}, each=values.numpy())
