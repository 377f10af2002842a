"""Forward and reverse KL: what a Gaussian becomes when it is fitted to something that it cannot be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import norm

from elboroom.plots.style import FIRST, MINUS, MUTED, PASSIVE, SECOND, small_multiples, styled

Floats = NDArray[np.float64]
AT = np.linspace(-12, 12, 4001)
WEIGHTS, MEANS, WIDTHS = (0.6, 0.4), (-3.0, 3.0), (0.8, 1.0)  # of the two modes
CORRELATION = 0.85  # of the Gaussian in the plane


@dataclass(frozen=True)
class Fit:
    """A Gaussian on the line, and the divergence at it, in nats."""

    mean: float
    width: float
    value: float

    def density(self, at: Floats) -> Floats:
        """Its density."""
        return np.asarray(norm.pdf(at, self.mean, self.width))


def target(at: Floats) -> Floats:
    """The density of a mixture of two Gaussians."""
    return np.asarray(sum(w * norm.pdf(at, m, s) for w, m, s in zip(WEIGHTS, MEANS, WIDTHS, strict=True)))


def kl(p: Floats, q: Floats, at: Floats = AT) -> float:
    """KL(p || q) in nats, of densities on a grid."""
    seen = p > 1e-300
    ratio = np.log(p[seen]) - np.log(np.maximum(q[seen], 1e-300))
    return float((p[seen] * ratio).sum() * (at[1] - at[0]))


def forward() -> Fit:
    """The Gaussian q of the least KL(p || q): that of the mean and variance of p."""
    step, p = AT[1] - AT[0], target(AT)
    mean = float((AT * p).sum() * step)
    width = float(np.sqrt(((AT - mean) ** 2 * p).sum() * step))
    return Fit(mean, width, kl(p, norm.pdf(AT, mean, width)))


def reverse(start: float) -> Fit:
    """The Gaussian q of the least KL(q || p) near a start: it settles on one mode."""
    p = target(AT)
    found = minimize(
        lambda v: kl(norm.pdf(AT, v[0], np.exp(v[1])), p), [start, 0.0], method="Nelder-Mead", tol=1e-9
    )  # fmt: skip
    return Fit(float(found.x[0]), float(np.exp(found.x[1])), float(found.fun))


@styled
def kl_fits() -> Figure:
    """A Gaussian fitted to two modes, and one of independent dimensions to a correlated one, by either KL."""
    figure, axes = small_multiples(4, 2, height=2.5)
    over, near = forward(), sorted((reverse(m) for m in MEANS), key=lambda fit: fit.value)
    for ax, fits, title in (
        (axes[0], [over], "KL(p || q): q covers p"),
        (axes[1], near, "KL(q || p): q settles on a mode"),
    ):
        _line(ax, fits, title)
    covariance = np.array([[1.0, CORRELATION], [CORRELATION, 1.0]])
    _plane(axes[2], covariance, np.diag(covariance), "KL(p || q): the variances of p")
    _plane(axes[3], covariance, 1 / np.diag(np.linalg.inv(covariance)), "KL(q || p): variances given the other")
    handles = [
        Line2D([], [], color=PASSIVE, linewidth=5, label="p"),
        Line2D([], [], color=FIRST, label="q, the best fit"),
        Line2D([], [], color=SECOND, linestyle="--", label="q, another minimum"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def _line(ax: Axes, fits: list[Fit], title: str) -> None:
    ax.fill_between(AT, target(AT), color=PASSIVE, alpha=0.6, linewidth=0)
    for fit, (tint, dashes) in zip(fits, ((FIRST, "-"), (SECOND, "--")), strict=False):
        ax.plot(AT, fit.density(AT), color=tint, linestyle=dashes)
        said = f"N({fit.mean:.2f}, {fit.width:.2f}²): {fit.value:.3f} nats".replace("-", MINUS)
        at = 0.98 if tint == FIRST else 0.89
        ax.text(0.99, at, said, transform=ax.transAxes, ha="right", va="top", fontsize=7, color=tint)
    ax.set_xlim(-8, 8)
    ax.set_ylim(0, 0.68)
    ax.set_yticks([])
    ax.set_title(title)


def _plane(ax: Axes, covariance: Floats, variances: Floats, title: str) -> None:
    side = np.linspace(-3, 3, 121)
    grid = np.stack(np.meshgrid(side, side), -1)
    height = np.exp(-0.5 * np.einsum("...i,ij,...j", grid, np.linalg.inv(covariance), grid))
    for reach, depth in ((2, 0.35), (1, 0.6)):
        ax.contourf(side, side, height, levels=[np.exp(-reach * reach / 2), 1.01], colors=[PASSIVE], alpha=depth)
    for reach in (1, 2):
        wide, high = 2 * reach * np.sqrt(variances)
        ax.add_patch(Ellipse((0, 0), wide, high, fill=False, color=FIRST, linewidth=1.3))
    ax.set_xlim(-3, 3)
    ax.set_ylim(-3, 3)
    ax.set_box_aspect(1)
    ax.set_title(title)
    said = f"correlation of p {CORRELATION}; variance of q {variances[0]:.2f}; one and two deviations"
    ax.set_xlabel(said, fontsize=6.5, color=MUTED)
