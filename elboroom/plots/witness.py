"""The figure of a comparison: two samples and the witness function, which shows where they differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.stats import gaussian_kde

from elboroom.divergences.comparison import Comparison
from elboroom.plots.pictures import colour, mosaic
from elboroom.plots.style import FIRST, INK, MINUS, MUTED, SECOND, SIGNED, small_multiples, styled

Floats = NDArray[np.float64]
SHOWN = (3, 6)  # images of each end, rows and columns
LONGEST = 28  # letters of a name
POINTS = 1500  # of each sample at most in a scatter
GRID = 60  # points along each side of the plane


@styled
def witness(comparison: Comparison, shape: tuple[int, ...] | None = None) -> Figure:
    """Numbers: the two densities over the witness; more columns: the plane of the first two principal axes, with contours.

    shape: (C, H, W) of images, of which those are shown beside it where the witness is largest, and where it is smallest.
    """
    if comparison.a.shape[1] == 1:
        return _line(comparison)
    figure = Figure(figsize=(5.6 if shape is None else 9.2, 4.6), layout="constrained")
    if shape is None:
        _plane(comparison, figure.subplots())
    else:
        halves: Any = figure.subfigures(1, 2, width_ratios=(5.6, 3.6))
        _plane(comparison, halves[0].subplots())
        _images(comparison, shape, halves[1].subplots(2, 1))
    figure.suptitle(_said(comparison), color=MUTED, fontsize=8.5, x=0.01, ha="left")
    return figure


def _line(comparison: Comparison) -> Figure:
    a, b = comparison.a[:, 0].numpy(), comparison.b[:, 0].numpy()
    figure, (top, bottom) = small_multiples(2, 1, height=1.9)
    bottom.sharex(top)
    pooled = np.concatenate([a, b])
    low, high = np.quantile(pooled, [0.001, 0.999])
    at = np.linspace(low - 0.15 * (high - low), high + 0.15 * (high - low), 400)
    for values, tint, name in ((a, FIRST, comparison.names[0]), (b, SECOND, comparison.names[1])):
        _density(top, values, at, tint, f"{_short(name)} ({len(values):,})")
    top.set_ylabel("density")
    top.set_ylim(0)
    top.tick_params(labelbottom=False)
    top.legend(loc="upper right")
    heights = comparison.witness(torch.from_numpy(at).unsqueeze(1)).numpy()
    bottom.fill_between(at, heights.clip(0), color=FIRST, alpha=0.3, linewidth=0)
    bottom.fill_between(at, heights.clip(None, 0), color=SECOND, alpha=0.3, linewidth=0)
    bottom.plot(at, heights, color=INK, linewidth=1.1)
    bottom.axhline(0, color=MUTED, linewidth=0.7)
    bottom.set_ylabel("witness")
    bottom.set_xlim(at[0], at[-1])
    top.set_title(_said(comparison), color=MUTED)
    return figure


def _density(ax: Axes, values: Floats, at: Floats, tint: str, name: str) -> None:
    if np.ptp(values) == 0:
        ax.axvline(float(values[0]), color=tint, label=name)
        return
    density = gaussian_kde(values)(at)
    ax.fill_between(at, density, color=tint, alpha=0.25, linewidth=0)
    ax.plot(at, density, color=tint, label=name)


def _images(comparison: Comparison, shape: tuple[int, ...], axes: Any) -> None:
    """The rows of each sample that are the most unlike the other: the ends of the witness function."""
    rows = torch.cat([comparison.a, comparison.b])
    order = comparison.witness(rows).argsort(descending=True)
    ends_of = [(float(v.min()), float(v.max())) for v in (comparison.a, comparison.b)]
    low, high = max(e[0] for e in ends_of), min(e[1] for e in ends_of)  # what both reach: a stray value dims nothing
    low, high = (low, high) if low < high else (float(rows.min()), float(rows.max()))
    ends_by = ("largest", FIRST, order), ("smallest", SECOND, order.flip(0))
    for ax, (end, tint, ranked), name in zip(axes, ends_by, comparison.names, strict=True):
        ends = rows[ranked[: SHOWN[0] * SHOWN[1]]].reshape(-1, *shape).numpy()
        grid = np.zeros((SHOWN[0] * SHOWN[1], *shape))
        grid[: len(ends)] = ends
        ax.imshow(mosaic(colour(grid, low, high).reshape(*SHOWN, 3, *shape[1:]), 48), interpolation="nearest")
        ax.set_title(f"{end} witness, most of {_short(name)}", color=tint)
        ax.set_axis_off()


def _plane(comparison: Comparison, ax: Axes) -> None:
    a, b = comparison.a, comparison.b
    pooled = torch.cat([a, b])
    centre = pooled.mean(0)
    _, values, axes = torch.linalg.svd(pooled - centre, full_matrices=False)
    axes = axes[:2]  # (2, d)
    share = values[:2].square() / values.square().sum()
    flat = ((pooled - centre) @ axes.T).numpy()  # (N, 2)
    low, high = np.quantile(flat, 0.002, axis=0), np.quantile(flat, 0.998, axis=0)
    margin = 0.1 * (high - low) + 1e-9
    sides = [np.linspace(low[j] - margin[j], high[j] + margin[j], GRID) for j in (0, 1)]
    grid = np.stack(np.meshgrid(*sides), -1).reshape(-1, 2)
    exact = a.shape[1] == 2
    seen_at = centre + torch.from_numpy(grid) @ axes if exact else pooled
    values_there = comparison.witness(seen_at).numpy()
    heights = (values_there if exact else _smoothed(flat, values_there, grid, sides)).reshape(GRID, GRID)
    reach = float(np.nanmax(np.abs(heights))) or 1.0
    levels = np.linspace(-reach, reach, 12)  # an even number, so that the palest band lies about zero
    # the signed palette runs from the first colour to the second, so the sign is turned
    shades = ax.contourf(*sides, -heights, levels=levels, cmap=SIGNED, alpha=0.6)
    bar = ax.figure.colorbar(shades, ax=ax, shrink=0.6, aspect=25, pad=0.02, ticks=[-reach, 0, reach])
    bar.ax.set_yticklabels([f"{v:.2g}".replace("-", MINUS) for v in (reach, 0, -reach)])
    bar.ax.invert_yaxis()
    bar.set_label("witness" if exact else "mean witness of the rows there")
    bar.outline.set_visible(False)
    ax.contour(*sides, heights, levels=[0.0], colors=INK, linewidths=0.7)
    order = np.random.default_rng(0).permutation(len(flat))
    seen = np.concatenate([order[order < len(a)][:POINTS], order[order >= len(a)][:POINTS]])
    seen = np.random.default_rng(1).permutation(seen)  # neither sample is drawn over the other
    tints = np.where(seen < len(a), FIRST, SECOND)
    ax.scatter(flat[seen, 0], flat[seen, 1], s=6, c=tints, linewidths=0, alpha=0.8, rasterized=True)
    ax.set_xlim(sides[0][0], sides[0][-1])
    ax.set_ylim(sides[1][0], sides[1][-1])
    ax.set_xlabel(f"first principal axis ({share[0]:.0%} of variance)")
    ax.set_ylabel(f"second ({share[1]:.0%})")
    ax.grid(visible=False)
    dots = [
        Line2D([], [], color=tint, marker="o", linestyle="", markersize=4, label=f"{_short(name)} ({len(sample):,})")
        for tint, name, sample in ((FIRST, comparison.names[0], a), (SECOND, comparison.names[1], b))
    ]
    if np.nanmin(heights) < 0 < np.nanmax(heights):
        dots.append(Line2D([], [], color=INK, linewidth=0.8, label="witness = 0"))
    ax.legend(handles=dots, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3)


def _smoothed(flat: Floats, values: Floats, grid: Floats, sides: Sequence[Floats]) -> Floats:
    """The mean witness of the rows that lie near each point of the plane, (GRID^2,); NaN where there are none.

    Rows of more than two columns lie off the plane, whose own points are like none of them.
    """
    scale = np.array([(side[-1] - side[0]) / 25 for side in sides])
    near = np.exp(-0.5 * cdist(grid / scale, flat / scale, "sqeuclidean"))  # (GRID^2, N)
    weight = near.sum(1)
    return np.where(weight > 0.05, (near @ values) / np.maximum(weight, 1e-12), np.nan)


def _short(name: str) -> str:
    """The end of a long name, which a figure has no room for."""
    return name if len(name) <= LONGEST else f"…{name[1 - LONGEST :]}"


def _said(comparison: Comparison) -> str:
    return f"MMD² = {comparison.statistic:.3g}   p = {comparison.p:.3g}"
