"""The charts of a study: f(Scores) -> Figure and the rows that it was drawn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from elboroom.core.problem import Problem
from elboroom.methods import cards
from elboroom.plots.style import INK, LINE, MUTED, SEVERAL, small_multiples, styled
from elboroom.studies.analysis.scores import Floats, Scores
from elboroom.studies.analysis.table import Row
from elboroom.studies.space import shown

Drawn = tuple[Figure, list[Row]]
Chart = Callable[[Scores], Drawn]
ORDER = (0, 6, 3, 1, 7, 2, 4, 8, 5, 9)  # of the palette: neighbours are far apart
MANY = 400  # runs above which points are drawn as pixels, also in an SVG
LABELLED = 14  # settings of a method at most whose strengths stand beside their points; of more, the ends
MOST = 6  # metrics at most in a figure of many panels


def chart(draw: Chart) -> Chart:
    """A chart in the common look."""

    @wraps(draw)
    def inner(scores: Scores) -> Drawn:
        rows: list[Row] = []

        @styled
        def figure() -> Figure:
            drawn, found = draw(scores)
            rows.extend(found)
            return drawn

        return figure(), rows

    return inner


def tints(scores: Scores) -> dict[str, str]:
    """A colour for each method."""
    return {method: SEVERAL[ORDER[i % len(ORDER)]] for i, method in enumerate(scores.methods)}


def title(metric: str) -> str:
    """The name of a metric in a figure; one that is also the name of a method says so."""
    return f"{metric} metric" if metric in cards() else metric.replace("_", " ")


def points(scores: Scores, names: Sequence[str]) -> list[Row]:
    """The runs with some of their numbers, as a figure shows them."""
    return [
        {**run, **{name: plain(scores.columns[name][i]) for name in names}} for i, run in enumerate(scores.runs)
    ]  # fmt: skip


def plain(value: Any) -> float | None:
    """A number as CSV holds it: nothing for NaN."""
    return float(value) if np.isfinite(value) else None


def legend(figure: Figure, scores: Scores) -> None:
    """The colours of the methods, below a figure."""
    colours = tints(scores)
    dots = [Line2D([], [], color=colours[m], marker="o", linestyle="", markersize=5, label=m) for m in scores.methods]
    figure.legend(handles=dots, loc="outside lower center", ncols=min(6, len(dots)))


def main_metrics(scores: Scores) -> list[str]:
    """What a figure of many panels shows: the metrics that know the factors, or else the evidence."""
    found = [name for name in scores.supervised if scores.varies(name)]
    return (found or [name for name in ("elbo", "distortion", "rate") if name in scores.columns])[:MOST]


@chart
def violins(scores: Scores) -> Drawn:
    """The distribution of every metric over seeds and strengths, by method."""
    names, colours, rng = main_metrics(scores), tints(scores), np.random.default_rng(0)
    figure, axes = small_multiples(len(names), 3, height=2.1)
    for ax, name in zip(axes, names, strict=True):
        for at, method in enumerate(scores.methods):
            values = scores.of_method(name, method)
            if len(values) > 1 and np.ptp(values) > 0:
                body = ax.violinplot(values, [at], widths=0.8, showextrema=False)["bodies"][0]  # type: ignore[index]
                body.set(facecolor=colours[method], alpha=0.28, linewidth=0)
            jitter = rng.uniform(-0.1, 0.1, len(values))
            is_many = len(scores.runs) > MANY
            ax.scatter(at + jitter, values, s=5, color=colours[method], linewidths=0, rasterized=is_many)
            if len(values):
                ax.plot([at - 0.22, at + 0.22], [np.median(values)] * 2, color=INK, linewidth=1.3)
        ax.set_title(title(name))
        ax.set_xticks(range(len(scores.methods)), scores.methods, rotation=24, ha="right", rotation_mode="anchor")
        ax.grid(axis="x", visible=False)
    return figure, points(scores, names)


@chart
def strengths(scores: Scores) -> Drawn:
    """Every metric, and the reconstruction, against the strength of the method: every run, the median as a line."""
    methods = [m for m in scores.methods if len({s for _, s in scores.settings(m) if s is not None}) > 1]
    if not methods:
        raise Problem("no method has runs with several strengths")
    names = [
        *(n for n in ("distortion",) if n in scores.columns and n not in main_metrics(scores)),
        *main_metrics(scores),
    ]
    figure, axes = small_multiples(len(names) * len(methods), len(methods), height=1.35)
    colours = tints(scores)
    for number, ax in enumerate(axes):
        name, method = names[number // len(methods)], methods[number % len(methods)]
        by: dict[float, list[Floats]] = {}
        for setting, s in scores.settings(method):
            if s is not None:
                by.setdefault(s, []).append(scores.of_method(name, method, setting))
        _along(ax, [(s, np.concatenate(values)) for s, values in by.items()], colours[method])
        low, high = np.nanmin(scores.columns[name]), np.nanmax(scores.columns[name])
        ax.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
        if number < len(methods):
            ax.set_title(method)
        if number % len(methods) == 0:
            ax.set_ylabel(title(name))
        else:
            ax.set_yticklabels([])
    return figure, points(scores, names)


def _along(ax: Axes, pairs: Sequence[tuple[float, Floats]], colour: str) -> None:
    """Values by strength: points, and medians joined by a line with a band between the quartiles."""
    known = [(x, values) for x, values in pairs if len(values)]
    for x, values in known:
        ax.scatter([x] * len(values), values, s=6, color=colour, alpha=0.6, linewidths=0, rasterized=len(values) > 30)
    if known:
        at = [x for x, _ in known]
        low, middle, high = np.array([np.quantile(v, (0.25, 0.5, 0.75)) for _, v in known]).T
        ax.plot(at, middle, color=colour)
        ax.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0)
        if min(at) > 0 and max(at) > 8 * min(at):
            ax.set_xscale("log")
        ax.xaxis.set_major_locator(FixedLocator(at))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: shown(float(f"{x:.3g}"))))
    ax.yaxis.set_major_locator(MaxNLocator(3))


@chart
def trade_off(scores: Scores) -> Drawn:
    """Reconstruction against each metric, a point a run; larger points are stronger settings."""
    names = [name for name in main_metrics(scores) if name != "distortion"]
    if "distortion" not in scores.columns or not names:
        raise Problem("no run has a distortion to compare a metric with")
    figure, axes = small_multiples(len(names), 3, height=2.1)
    for ax, name in zip(axes, names, strict=True):
        scatter(ax, scores, "distortion", name)
        ax.set_title(title(name))
        ax.set_xlabel("distortion, nats")
    legend(figure, scores)
    return figure, points(scores, ["distortion", *names])


@chart
def errors(scores: Scores) -> Drawn:
    """Each metric against the error per pixel: the median of every setting, joined from weak to strong (Kumar et al. 2018)."""
    names = [name for name in main_metrics(scores) if name in scores.supervised]
    if "error_per_pixel" not in scores.columns or not names:
        raise Problem("no run of images has both an error per pixel and a metric of factors")
    figure, axes = small_multiples(len(names), 2, height=2.9)
    colours = tints(scores)
    for ax, name in zip(axes, names, strict=True):
        for method in scores.methods:
            at = []
            for setting, strength in scores.settings(method):
                x, y = (scores.of_method(column, method, setting) for column in ("error_per_pixel", name))
                if len(x) and len(y):
                    at.append((float(np.median(x)), float(np.median(y)), strength))
            xs, ys = [x for x, _, _ in at], [y for _, y, _ in at]
            ax.plot(xs, ys, color=colours[method], marker="o", markersize=3.5, linewidth=1)
            for at_x, at_y, strength in at if len(at) <= LABELLED else [*at[:1], *at[-1:]]:
                if strength is not None:
                    beside: dict[str, Any] = {"xytext": (3, 3), "textcoords": "offset points"}
                    ax.annotate(shown(strength), (at_x, at_y), **beside, fontsize=6, color=colours[method])
        ax.set_title(title(name))
        ax.set_xlabel("squared error per pixel")
        ax.margins(0.08)
        ax.xaxis.set_major_locator(MaxNLocator(5))
    legend(figure, scores)
    return figure, points(scores, ["error_per_pixel", *names])


def scatter(ax: Axes, scores: Scores, x: str, y: str) -> None:
    """One metric against another, a point a run; larger points are stronger settings."""
    colours = tints(scores)
    for method in scores.methods:
        order = {setting: i for i, (setting, _) in enumerate(scores.settings(method))}
        mine = [i for i, run in enumerate(scores.runs) if run["method"] == method]
        sizes = [10 + 30 * order[scores.runs[i]["setting"]] / max(1, len(order) - 1) for i in mine]
        look: dict[str, Any] = {"alpha": 0.75, "linewidths": 0, "rasterized": len(scores.runs) > MANY}
        ax.scatter(scores.columns[x][mine], scores.columns[y][mine], s=sizes, color=colours[method], **look)


@chart
def plane(scores: Scores) -> Drawn:
    """Distortion against rate, a point a run; lines of equal ELBO have slope -1."""
    if not {"rate", "distortion"} <= scores.columns.keys():
        raise Problem("no run has a rate")
    figure, (ax,) = small_multiples(1, 1, height=4.0, width=6.4)
    rate, distortion = scores.columns["rate"], scores.columns["distortion"]
    total = rate + distortion
    span = np.array([np.nanmin(rate), np.nanmax(rate)])
    for level in MaxNLocator(7).tick_values(float(np.nanmin(total)), float(np.nanmax(total))):
        ax.plot(span, level - span, color=LINE, linewidth=0.9, zorder=1)
    scatter(ax, scores, "rate", "distortion")
    for method in scores.methods:
        for setting, _ in scores.settings(method):
            x, y = (scores.of_method(name, method, setting) for name in ("rate", "distortion"))
            if len(x) and len(y):
                ax.annotate(
                    setting, (float(np.median(x)), float(np.median(y))), xytext=(5, 4), textcoords="offset points",
                    fontsize=6, color=INK,
                )  # fmt: skip
    ax.set_ylim(_room(distortion))
    ax.set_xlabel("rate, nats")
    ax.set_ylabel("distortion, nats")
    ax.text(0.99, 0.98, "thin lines: equal ELBO", transform=ax.transAxes, ha="right", va="top", fontsize=7, color=MUTED)
    legend(figure, scores)
    return figure, points(
        scores, ["rate", "distortion", "elbo"] if "elbo" in scores.columns else ["rate", "distortion"]
    )


def _room(values: Floats) -> tuple[float, float]:
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    pad = 0.07 * (high - low) or 1.0
    return low - pad, high + pad
