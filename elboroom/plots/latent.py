"""Figures of codes: the rate of each dimension, the aggregate posterior, collapse, and pairs of dimensions."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from scipy.stats import gaussian_kde

from elboroom.core.problem import Problem
from elboroom.plots.codes import Codes, Floats
from elboroom.plots.style import FIRST, INK, MUTED, PASSIVE, SECOND, SEVERAL, small_multiples, styled
from elboroom.runs.run import Run

PANELS = 12  # dimensions at most in one figure
LEAST = 0.1  # of what a frame of codes spans


@styled
def rates(run: Run, codes: Codes | None = None) -> Figure:
    """The mean rate of each dimension as bars, highest first, active ones in colour."""
    codes = codes or Codes.of(run)
    if codes.rate is None:
        why = codes.split.lacking or "the KL is not a sum over dimensions"
        raise Problem(f"{why}, so there is no KL per dimension")
    order = codes.order[:60]
    figure, (ax,) = small_multiples(1, 1, height=2.2)
    colours = [FIRST if codes.active[j] else PASSIVE for j in order]
    bars = ax.bar(range(len(order)), codes.rate[order], color=colours, width=0.72)
    if len(order) <= 20:
        ax.bar_label(bars, [f"{codes.rate[j]:.2f}" for j in order], padding=2, fontsize=7, color=MUTED)
        ax.set_xticks(range(len(order)), [f"z{j}" for j in order])
    else:
        ax.set_xlabel("dimensions by rate")
    ax.set_ylabel("KL in nats")
    ax.grid(axis="x", visible=False)
    ax.margins(x=0.02, y=0.14)
    active = int(codes.active.sum())
    names = [(FIRST, f"active ({active})"), (PASSIVE, f"passive ({len(codes.active) - active})")]
    ax.legend(handles=[Patch(color=c, label=text) for c, text in names], loc="upper right", ncols=2)
    return figure


def bins(n: int) -> int:
    """How many bars a histogram of n values has: few of few, so that each holds some, at most 60."""
    return int(np.clip(3 * np.cbrt(n), 8, 60))


@styled
def aggregate(run: Run, codes: Codes | None = None) -> Figure:
    """The aggregate posterior: a histogram of z ~ q(z|x) for each dimension, and p(z) over it as a line.

    The line is the density of the prior where each dimension has one, else a histogram of its draws.
    """
    codes = codes or Codes.of(run)
    order, prior, frame = codes.order[:PANELS], codes.prior_draws(), None
    figure, axes = small_multiples(len(order), 5, height=1.35)
    if prior is not None:
        reach = max(float(np.quantile(np.abs(z), 0.999)) for z in (codes.z, prior))
        frame = (-reach, reach)  # one for all dimensions
    at = np.linspace(*(frame or (-1.0, 1.0)), 200)
    density = None if prior is None else codes.prior_density(at)
    for ax, j in zip(axes, order, strict=True):
        tint = FIRST if prior is None or codes.active[j] else PASSIVE
        ax.hist(codes.z[:, j], bins=bins(len(codes.z)), density=True, range=frame, color=tint, histtype="stepfilled")
        if density is not None:
            ax.plot(at, density[:, j], color=SECOND, linewidth=1.1)
        elif prior is not None:
            over = bins(len(prior))
            ax.hist(prior[:, j], bins=over, density=True, range=frame, color=SECOND, histtype="step", linewidth=1.1)
        ax.set_title(f"z{j}")
        ax.set_title(codes.label(j), loc="right", color=MUTED)
        ax.set_yticks([])
        ax.xaxis.set_major_locator(MaxNLocator(3))
        ax.spines["left"].set_visible(False)
    return figure


@styled
def collapse(run: Run, codes: Codes | None = None) -> Figure:
    """The densities of the means and of the deviations of q(z_j|x), active dimensions against passive ones."""
    codes = codes or Codes.of(run)
    if codes.stddev is None:
        raise Problem("q(z|x) is not a diagonal Gaussian, so its dimensions have no standard deviations to show")
    figure, axes = small_multiples(2, 2, height=1.9)
    for ax, values, name in zip(
        axes, (codes.mean, codes.stddev), ("means of q(z|x)", "deviations of q(z|x)"), strict=True
    ):
        for kind, tint, text in ((codes.active, FIRST, "active"), (~codes.active, PASSIVE, "passive")):
            if kind.any():
                _kernel(ax, values[:, kind].ravel(), tint, text)
        ax.set_title(name)
        ax.set_yticks([])
        ax.set_ylim(0)
        ax.spines["left"].set_visible(False)
    axes[1].axvline(1, color=SECOND, linewidth=0.9, linestyle=(0, (4, 3)))
    axes[1].set_xlim(0)
    handles, names = axes[0].get_legend_handles_labels()
    axes[0].legend(handles, names, loc="upper right")
    return figure


@styled
def dimensions(run: Run, codes: Codes | None = None) -> Figure:
    """The densities of the mean and of the deviation of q(z_j|x), a line a dimension: active ones above, passive ones below."""
    codes = codes or Codes.of(run)
    if codes.stddev is None:
        raise Problem("q(z|x) is not a diagonal Gaussian, so its dimensions have no standard deviations to show")
    kinds = {
        name: [j for j in codes.order if bool(codes.active[j]) == is_active][: len(SEVERAL)]
        for name, is_active in (("active", True), ("passive", False))
    }
    kinds = {name: dims for name, dims in kinds.items() if dims}
    figure, axes = small_multiples(2 * len(kinds), 2, height=2.0)
    for row, (name, dims) in enumerate(kinds.items()):
        of_mean, of_width = axes[2 * row : 2 * row + 2]
        for j, tint in zip(dims, SEVERAL, strict=False):
            _kernel(of_mean, codes.mean[:, j], tint, f"z{j}", alpha=0.03)
            _kernel(of_width, codes.stddev[:, j], tint, f"z{j}", alpha=0.03)
        for ax, what in ((of_mean, "mean"), (of_width, "deviation")):
            ax.set_title(f"{what} of q(z|x), {name} dimensions")
            ax.set_yticks([])
            ax.set_ylim(0)
            ax.spines["left"].set_visible(False)
        of_width.axvline(1, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
        of_width.set_xlim(0, max(1.1, of_width.get_xlim()[1]))
        of_mean.set_xlim(min(-1.0, of_mean.get_xlim()[0]), max(1.0, of_mean.get_xlim()[1]))
        of_width.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _kernel(ax: Axes, values: Floats, tint: str, text: str, alpha: float = 0.35) -> None:
    few = np.random.default_rng(0).choice(values, min(len(values), 5000), replace=False)
    low, high = np.quantile(few, [0.001, 0.999])
    if high - low < 1e-6:
        ax.axvline(float(low), color=tint, label=text)
        return
    at = np.linspace(low - 0.2 * (high - low), high + 0.2 * (high - low), 200)
    density = gaussian_kde(few)(at)
    # on one axis, a spike of passive means would flatten everything else: each density is shown by its shape
    ax.fill_between(at, density / density.max(), color=tint, alpha=alpha, linewidth=0)
    ax.plot(at, density / density.max(), color=tint, label=text)


@styled
def pairs(run: Run, codes: Codes | None = None, most: int = 4, points: int = 2000) -> Figure:
    """The means of q(z|x) in each pair of the first dimensions, coloured by the first label of few values, if any."""
    codes = codes or Codes.of(run)
    dims = codes.order[:most]
    chosen = np.random.default_rng(0).permutation(len(codes.mean))[:points]
    if len(dims) == 1:
        figure, (ax,) = small_multiples(1, 1, height=1.9)
        ax.hist(codes.mean[:, dims[0]], bins=bins(len(codes.mean)), color=FIRST)
        ax.set_xlabel(f"z{dims[0]}")
        return figure
    side = len(dims) - 1
    size = 6.4 if side > 1 else 4.0
    figure = Figure(figsize=(size, size), layout="constrained")
    grid = figure.subplots(side, side, squeeze=False, sharex="col", sharey="row")
    name, values = _label(codes, chosen)
    tints = np.array([FIRST] if values is None else SEVERAL)
    colours = tints[np.zeros(len(chosen), int) if values is None else values]
    for row in range(side):
        for column in range(side):
            ax = grid[row, column]
            if column > row:
                ax.set_axis_off()
                continue
            xy = codes.mean[chosen][:, [dims[column], dims[row + 1]]]
            ax.scatter(*xy.T, s=3.5, c=colours, linewidths=0, rasterized=True)
            ax.set_box_aspect(1)
            for axis, (low, high) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
                axis.set_major_locator(MaxNLocator(3))
                if high - low < LEAST:  # what has collapsed looks like a point, not like its rounding
                    axis.axes.set(**{f"{axis.axis_name}lim": ((low + high - LEAST) / 2, (low + high + LEAST) / 2)})
            if row == side - 1:
                ax.set_xlabel(f"z{dims[column]}", color=INK)
            if column == 0:
                ax.set_ylabel(f"z{dims[row + 1]}", color=INK)
    if values is not None:
        dots = [
            Line2D([], [], color=tints[v], marker="o", linestyle="", markersize=4, label=str(v))
            for v in np.unique(values)
        ]
        figure.legend(handles=dots, title=name, loc="upper right" if side > 1 else "outside right upper")
    return figure


def _label(codes: Codes, chosen: NDArray[np.int64]) -> tuple[str, NDArray[np.int64] | None]:
    """The first label that has at most ten values, for the chosen rows."""
    data = codes.split.data
    for column, (name, size) in enumerate(data.about.labels.items()):
        if 1 < size <= len(SEVERAL):
            return name, data.labels[codes.split.rows[chosen], column]
    return "", None
