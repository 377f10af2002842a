"""The look of every figure: one palette that colour-blind readers can tell apart, light paper, small legible type."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.style import context

PAPER, INK, MUTED, LINE = "#ffffff", "#1d2733", "#667382", "#dde2e8"
FIRST, SECOND, PASSIVE = "#2b6a99", "#c8641b", "#b4bdc8"  # what is shown, what it is held against, what is idle
SEVERAL = ("#332288", "#88ccee", "#44aa99", "#117733", "#999933", "#ddcc77", "#cc6677", "#882255", "#aa4499", "#777777")
MINUS = "\N{MINUS SIGN}"
SIGNED = LinearSegmentedColormap.from_list("signed", [FIRST, "#9fc1da", "#f7f8f9", "#eab98f", SECOND])
DPI = 150  # of pictures; charts are drawn as SVG too

STYLE: dict[str, Any] = {
    "figure.facecolor": PAPER,
    "figure.dpi": DPI,
    "savefig.facecolor": PAPER,
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "text.color": INK,
    "axes.facecolor": PAPER,
    "axes.edgecolor": LINE,
    "axes.labelcolor": MUTED,
    "axes.labelsize": 8,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.size": 2,
    "ytick.major.size": 0,
    "lines.linewidth": 1.4,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "svg.hashsalt": "elboroom",
}

P = ParamSpec("P")


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """The same figure in the common look, whatever the user's matplotlib is set to."""

    @wraps(draw)
    def inner(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with context(["default", STYLE]):
            figure = draw(*args, **kwargs)
        for axes in figure.axes:
            if not axes.has_data():  # an empty frame would look as if something had failed
                axes.set_axis_off()
        return figure

    return inner


def save(figure: Figure, path: Path) -> Path:
    """Writes a figure as its suffix says; the same figure gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with context(["default", STYLE]):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else {"Software": None})
    return path


def small_multiples(count: int, columns: int, height: float = 1.5, width: float = 7.6) -> tuple[Figure, list[Axes]]:
    """A figure with `count` axes in rows of `columns`."""
    columns = min(columns, max(1, count))
    rows = -(-count // columns)
    figure = Figure(figsize=(width, height * rows + 0.2), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.07))
    axes: list[Axes] = list(figure.subplots(rows, columns, squeeze=False).flat)
    for spare in axes[count:]:
        spare.set_axis_off()
    return figure, axes[:count]
