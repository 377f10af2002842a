"""Curves of every term and weight over the steps of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from elboroom.core.problem import Problem
from elboroom.plots.style import FIRST, INK, MUTED, SECOND, small_multiples, styled
from elboroom.runs.run import Run

START = 0.05  # the share of a run that may leave the frame: the first values dwarf all others
POINTS = 400


@dataclass(frozen=True)
class Series:
    """One term or weight by step."""

    name: str
    steps: tuple[float, ...]
    values: tuple[float, ...]

    @property
    def is_weight(self) -> bool:
        """Whether it is the weight of a term that moves, or the capacity that one is held at."""
        return "." in self.name

    @property
    def title(self) -> str:
        """As shown above its curve."""
        term, _, what = self.name.partition(".")
        return f"{what} of {term}" if what else term

    @property
    def frame(self) -> tuple[float, float]:
        """The values between which it is drawn, the first moments of a run left aside."""
        late = [v for s, v in zip(self.steps, self.values, strict=True) if s > START * self.steps[-1]]
        seen = late if len(late) >= 10 and not self.is_weight else list(self.values)
        low, high = min(seen), max(seen)
        pad = 0.06 * (high - low) or 0.06 * abs(high) or 1.0
        return low - pad, high + pad

    def thinned(self, points: int = POINTS) -> Series:
        """The means over at most `points` stretches of the run."""
        if len(self.steps) <= points:
            return self
        parts = np.array_split(np.arange(len(self.steps)), points)
        means = tuple(float(np.mean([self.values[i] for i in part])) for part in parts)
        return Series(self.name, tuple(self.steps[part[-1]] for part in parts), means)


def series(log: Sequence[dict[str, float]]) -> list[Series]:
    """Every term and weight of a log, in the order of the formula; the loss comes last."""
    names = dict.fromkeys(name for line in log for name in line if name != "step")
    ordered = sorted(names, key=lambda name: name == "loss")
    found = []
    for name in ordered:
        pairs = [(line["step"], line[name]) for line in log if name in line]
        found.append(Series(name, tuple(s for s, _ in pairs), tuple(v for _, v in pairs)))
    return found


def thousands(value: float, _: object = None) -> str:
    """20000 as 20k."""
    return f"{value / 1000:g}k" if abs(value) >= 1000 else f"{value:g}"


@styled
def curves(run: Run | Sequence[dict[str, float]]) -> Figure:
    """Every term and weight over the steps, from a run or the lines of its log; weights are drawn in the second colour."""
    found = [s.thinned() for s in series(run.log if isinstance(run, Run) else run)]
    if not found:
        raise Problem("the log is empty; the run ended before its first line")
    figure, axes = small_multiples(len(found), 3)
    for ax, one in zip(axes, found, strict=True):
        colour = SECOND if one.is_weight else FIRST
        ax.plot(one.steps, one.values, color=colour, marker="." if len(one.steps) < 3 else "")
        ax.set_ylim(one.frame)
        ax.set_title(one.title, color=colour if one.is_weight else INK)
        ax.set_title(f"{one.values[-1]:.4g}", loc="right", color=MUTED)
        ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        ax.xaxis.set_major_formatter(FuncFormatter(thousands))
        ax.yaxis.set_major_locator(MaxNLocator(4))
        ax.margins(x=0.02)
    return figure
