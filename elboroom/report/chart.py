"""Charts of a log as small SVG drawings that a page can style and a script can read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

from matplotlib.ticker import MaxNLocator

from elboroom.plots.curves import Series, thousands
from elboroom.plots.style import FIRST, INK, LINE, MINUS, MUTED, PAPER, SECOND

WIDTH, HEIGHT = 300, 150
LEFT, RIGHT, TOP, BOTTOM = 40, 8, 26, 18
ALONE = f"""
text {{ font: 10px system-ui, sans-serif; fill: {MUTED} }} .name {{ font-size: 11.5px; fill: {INK} }}
.grid {{ stroke: {LINE}; stroke-width: .7 }} .line {{ fill: none; stroke: {FIRST}; stroke-width: 1.6; stroke-linejoin: round }}
.weight .line {{ stroke: {SECOND} }} .weight .name {{ fill: {SECOND} }} .paper {{ fill: {PAPER} }}
"""


def panel(series: Series) -> str:
    """The curve of one series as an SVG group of WIDTH x HEIGHT, with its last value and a few ticks."""
    (low, high), last = series.frame, series.steps[-1]
    first = min(0.0, series.steps[0])
    wide, tall = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(step: float, value: float) -> tuple[float, float]:
        x = LEFT + wide * (step - first) / max(last - first, 1)
        y = TOP + tall * (high - value) / (high - low)
        return round(x, 1), round(y, 1)

    parts = []
    for tick in MaxNLocator(4).tick_values(low, high):
        if low <= tick <= high:
            y = place(last, tick)[1]
            parts.append(f'<path class="grid" d="M{LEFT} {y}H{WIDTH - RIGHT}"/>')
            parts.append(f'<text x="{LEFT - 5}" y="{y + 3.5:.1f}" text-anchor="end">{_minus(f"{tick:.4g}")}</text>')
    for tick in MaxNLocator(4, integer=True).tick_values(first, last):
        if first <= tick <= last:
            x = place(tick, low)[0]
            at = "end" if x > WIDTH - RIGHT - 10 else "middle"
            parts.append(f'<text x="{x}" y="{HEIGHT - 5}" text-anchor="{at}">{thousands(float(tick))}</text>')
    points = " ".join("{},{}".format(*place(s, v)) for s, v in zip(series.steps, series.values, strict=True))
    frame = f'x="{LEFT}" y="{TOP}" width="{wide}" height="{tall}" viewBox="{LEFT} {TOP} {wide} {tall}"'
    parts.append(f'<svg {frame}><polyline class="line" points="{points}"/></svg>')  # what leaves the frame is cut
    if len(series.steps) == 1:  # a line of one point is not seen
        x, y = place(series.steps[0], series.values[0])
        parts.append(f'<circle class="line" cx="{x}" cy="{y}" r="1"/>')
    parts.append(f'<text class="name" x="{LEFT}" y="14">{escape(series.title)}</text>')
    value = _minus(f"{series.values[-1]:.4g}")
    parts.append(f'<text class="value" x="{WIDTH - RIGHT}" y="14" text-anchor="end">{value}</text>')
    return f'<g class="{"weight" if series.is_weight else "term"}">{"".join(parts)}</g>'


def interactive(series: Sequence[Series]) -> str:
    """One SVG for each series, with its values beside it for a script to show under the pointer."""
    shown = []
    for one in (s.thinned() for s in series):
        data = json.dumps({"steps": one.steps, "values": [float(f"{v:.5g}") for v in one.values], "frame": one.frame})
        shown.append(
            f'<svg class="curve" role="img" aria-label="{escape(one.title)}, last {one.values[-1]:.4g}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" data-series="{escape(data)}">{panel(one)}</svg>'
        )
    return f'<div class="curves">{"".join(shown)}</div>'


def drawing(series: Sequence[Series], columns: int = 3) -> str:
    """One SVG file of all series, on light paper, that stands alone."""
    columns = min(columns, len(series))
    wide, tall = WIDTH * columns, HEIGHT * -(-len(series) // columns)
    placed = (
        f'<g transform="translate({WIDTH * (i % columns)} {HEIGHT * (i // columns)})">{panel(s.thinned(150))}</g>'
        for i, s in enumerate(series)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{tall}" viewBox="0 0 {wide} {tall}">'
        f'<style>{ALONE}</style><rect class="paper" width="{wide}" height="{tall}" rx="6"/>{"".join(placed)}</svg>\n'
    )


def _minus(number: str) -> str:
    return number.replace("-", MINUS)
