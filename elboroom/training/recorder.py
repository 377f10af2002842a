"""Recorder: the values of the last steps, kept on the device until a line of the log is due."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elboroom.core import distributed
from elboroom.core.files import write
from elboroom.core.problem import Problem
from elboroom.training.checkpoint import Pending


class Diverged(Problem):
    """A loss that is no longer a number, with what was seen and what to try."""


class Recorder:
    """Collects every term and weight of every step; `flush` looks at them, once, and writes their means."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.steps: list[int] = []
        self.rows: list[dict[str, Tensor | float]] = []

    def add(self, step: int, logged: dict[str, Tensor | float]) -> None:
        """Keeps the values of one step. Copies nothing to the host."""
        self.steps.append(step)
        self.rows.append(logged)

    def pending(self) -> Pending:
        """What was seen since the last line, to be kept with a checkpoint; raises Diverged if a value is not finite."""
        self._line()
        return Pending(
            steps=self.steps, rows=[{name: _kept(value) for name, value in row.items()} for row in self.rows]
        )

    def restore(self, pending: Pending) -> None:
        """Goes on where a stopped run was between two lines of its log."""
        for step, row in zip(pending.steps, pending.rows, strict=False):
            self.add(step, {name: _restored(value) for name, value in row.items()})

    def flush(self) -> dict[str, float]:
        """The means since the last flush, as a line of the log; raises Diverged if a value is not finite."""
        line = self._line()
        self.steps, self.rows = [], []
        if line and self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps(line) + "\n")
        return line

    def _line(self) -> dict[str, float]:
        if not self.rows:
            return {}
        line: dict[str, Any] = {"step": self.steps[-1] + 1}
        seen: dict[str, list[float]] = {}
        for name in {name: None for row in self.rows for name in row}:
            values = [row[name] for row in self.rows if name in row]
            if isinstance(values[-1], Tensor):
                device = values[-1].device  # those of a stopped run were kept on none
                seen[name] = distributed.mean(torch.stack([torch.as_tensor(v, device=device) for v in values])).tolist()
            else:
                seen[name] = [float(v) for v in values]
            line[name] = math.fsum(seen[name]) / len(seen[name]) if all(map(math.isfinite, seen[name])) else math.nan
        broken = [name for name in line if name != "step" and math.isnan(line[name])]
        if broken:
            raise self._diagnosis(self.steps, seen, broken)
        return line

    @staticmethod
    def _diagnosis(steps: list[int], seen: dict[str, list[float]], broken: list[str]) -> Diverged:
        first = {name: next(i for i, v in enumerate(seen[name]) if not math.isfinite(v)) for name in broken}
        at = min(first.values())
        terms = [name for name in broken if first[name] == at and name != "loss"] or ["loss"]
        value = seen[terms[0]][at]
        before = (
            f"it was {seen[terms[0]][at - 1]:.4g} the step before" if at else "from the first step that was looked at"
        )
        return Diverged(
            f"training stopped: {' and '.join(terms)} became {value} at step {steps[at] + 1} ({before}); "
            "try a smaller --lr, or --clip 1; if it happens at once, look at the range of the data"
        )


def _kept(value: Tensor | float) -> Any:
    """A value as JSON keeps it, a tensor with its type."""
    if not isinstance(value, Tensor):
        return float(value)
    return distributed.mean(value.detach()).item(), str(value.dtype).removeprefix("torch.")


def _restored(kept: float | tuple[float, str]) -> Tensor | float:
    return torch.tensor(kept[0], dtype=getattr(torch, kept[1])) if isinstance(kept, tuple) else kept


def read_log(path: Path) -> list[dict[str, float]]:
    """The lines of a log; what a crash cut off is left out, and a damaged line within is told and left out."""
    texts = path.read_text(errors="replace").splitlines() if path.exists() else []
    lines: list[dict[str, float]] = []
    for number, text in enumerate(texts, 1):
        try:
            line = json.loads(text)
            if not isinstance(line.get("step"), int):
                raise ValueError
        except (ValueError, AttributeError):
            if number < len(texts):
                warnings.warn(f"{path}: line {number} is damaged and left out", stacklevel=2)
            continue
        lines.append(line)
    return lines


def cut_log(path: Path, step: int) -> None:
    """Drops what was logged after a step, so that a resumed run writes those lines again; written anew and renamed."""
    lines = [line for line in read_log(path) if line["step"] <= step]
    write(path, "".join(json.dumps(line) + "\n" for line in lines).encode())
