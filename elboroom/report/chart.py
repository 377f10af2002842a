"""Charts of a log as small SVG drawings that a page can style and a script can read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.ticker import MaxNLocator

from elboroom.plots.curves import Series, thousands
from elboroom.plots.style import FIRST, INK, LINE, MINUS, MUTED, PAPER, SECOND
from elboroom.report.page import render

WIDTH, HEIGHT = 300, 150
LEFT, RIGHT, TOP, BOTTOM = 40, 8, 26, 18
WIDE, TALL = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
COLOURS = {"first": FIRST, "second": SECOND, "ink": INK, "muted": MUTED, "line": LINE, "paper": PAPER}


@dataclass(frozen=True)
class Tick:
    """A number on an axis."""

    at: float
    text: str
    anchor: str = "end"


@dataclass(frozen=True)
class Panel:
    """The curve of one series, placed on WIDTH x HEIGHT: its last value, a few ticks, and its points."""

    title: str
    last: str
    is_weight: bool
    rows: tuple[Tick, ...]
    columns: tuple[Tick, ...]
    points: tuple[tuple[float, float], ...]
    series: str  # the values as JSON, for a script to show under the pointer

    @classmethod
    def of(cls, series: Series) -> Panel:
        """A series, as it is drawn."""
        (low, high), last = series.frame, series.steps[-1]
        first = min(0.0, series.steps[0])

        def x(step: float) -> float:
            return round(LEFT + WIDE * (step - first) / max(last - first, 1), 1)

        def y(value: float) -> float:
            return round(TOP + TALL * (high - value) / (high - low), 1)

        rows = [Tick(y(v), short(float(v))) for v in MaxNLocator(4).tick_values(low, high) if low <= v <= high]
        steps = [s for s in MaxNLocator(4, integer=True).tick_values(first, last) if first <= s <= last]
        columns = [Tick(x(s), thousands(float(s)), "end" if x(s) > WIDTH - RIGHT - 10 else "middle") for s in steps]
        values = [float(f"{v:.5g}") for v in series.values]
        return cls(
            series.title, _minus(f"{series.values[-1]:.4g}"), series.is_weight, tuple(rows), tuple(columns),
            tuple((x(s), y(v)) for s, v in zip(series.steps, series.values, strict=True)),
            json.dumps({"steps": series.steps, "values": values, "frame": series.frame}),
        )  # fmt: skip


def drawing(series: Sequence[Series], columns: int = 3) -> str:
    """One SVG file of all series, on light paper, that stands alone."""
    columns = min(columns, len(series))
    placed = [(WIDTH * (i % columns), HEIGHT * (i // columns), Panel.of(s.thinned(150))) for i, s in enumerate(series)]
    wide, tall = WIDTH * columns, HEIGHT * -(-len(series) // columns)
    return render("curves.svg", wide=wide, tall=tall, placed=placed, colours=COLOURS)


def short(value: float) -> str:
    """A number that has room beside its axis: 12k, 0.25, 3e−4."""
    if value == 0 or 0.01 <= abs(value) < 1e4:
        return _minus(f"{value:.4g}")
    if abs(value) >= 1e7 or abs(value) < 0.01:
        mantissa, _, power = f"{value:.2e}".partition("e")
        return _minus(f"{float(mantissa):g}e{int(power)}")
    return _minus(thousands(value))


def _minus(number: str) -> str:
    return number.replace("-", MINUS)
