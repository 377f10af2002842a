"""The figure of a comparison: two samples and the witness function, which shows where they differ."""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from scipy.stats import gaussian_kde

from elboroom.divergences.comparison import Comparison
from elboroom.plots.style import FIRST, INK, MUTED, SECOND, SIGNED, small_multiples, styled

Floats = NDArray[np.float64]
POINTS = 1500  # of each sample at most in a scatter
GRID = 60  # points along each side of the plane


@styled
def witness(comparison: Comparison) -> Figure:
    """Numbers: the two densities over the witness; more columns: the plane of the first two principal axes, with contours."""
    return _line(comparison) if comparison.a.shape[1] == 1 else _plane(comparison)


def _line(comparison: Comparison) -> Figure:
    a, b = comparison.a[:, 0].numpy(), comparison.b[:, 0].numpy()
    figure, (top, bottom) = small_multiples(2, 1, height=1.9)
    bottom.sharex(top)
    pooled = np.concatenate([a, b])
    low, high = np.quantile(pooled, [0.001, 0.999])
    at = np.linspace(low - 0.15 * (high - low), high + 0.15 * (high - low), 400)
    for values, tint, name in ((a, FIRST, comparison.names[0]), (b, SECOND, comparison.names[1])):
        _density(top, values, at, tint, f"{name} ({len(values):,})")
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


def _plane(comparison: Comparison) -> Figure:
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
    heights = comparison.witness(centre + torch.from_numpy(grid) @ axes).reshape(GRID, GRID).numpy()
    figure, (ax,) = small_multiples(1, 1, height=4.4, width=5.6)
    reach = float(np.abs(heights).max()) or 1.0
    levels = np.linspace(-reach, reach, 12)  # an even number, so that the palest band lies about zero
    # the signed palette runs from the first colour to the second, so the sign is turned
    ax.contourf(*sides, -heights, levels=levels, cmap=SIGNED, alpha=0.6)
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
        Line2D([], [], color=tint, marker="o", linestyle="", markersize=4, label=f"{name} ({len(sample):,})")
        for tint, name, sample in ((FIRST, comparison.names[0], a), (SECOND, comparison.names[1], b))
    ]
    dots.append(Line2D([], [], color=INK, linewidth=0.8, label="witness = 0"))
    figure.legend(handles=dots, loc="outside lower left", ncols=3)
    ax.set_title(_said(comparison), color=MUTED)
    return figure


def _said(comparison: Comparison) -> str:
    return f"MMD² = {comparison.statistic:.3g}   p = {comparison.p:.3g}"
