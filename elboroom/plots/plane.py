"""The rate-distortion plane: one point a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from elboroom.core.problem import Problem
from elboroom.plots.style import FIRST, INK, LINE, MUTED, SECOND, styled
from elboroom.runs.run import Run


@styled
def rate_distortion(runs: Sequence[Run]) -> Figure:
    """Distortion against rate; lines of equal ELBO have slope -1, the IW bound of each run is a second marker."""
    if not runs:
        raise Problem("the rate-distortion plane shows runs; give at least one")
    points = [_measured(run) for run in runs]
    figure = Figure(figsize=(5.6, 4.2), layout="constrained")
    ax = figure.subplots()
    rates, distortions = (np.array([p[key] for p in points]) for key in ("rate", "distortion"))
    room = 0.15 * max(float(np.ptp(rates)), 1.0)
    low, high = float(rates.min()) - room, float(rates.max()) + room
    for total in np.unique(np.round(rates + distortions, 0)):
        ax.plot([low, high], [total - low, total - high], color=LINE, linewidth=0.8, zorder=1)
    ax.scatter(rates, distortions, color=FIRST, s=26, zorder=3, label="ELBO")
    bounds = [(p["rate"], p["bound"] - p["rate"]) for p in points if p["bound"] is not None]
    if bounds:
        x, y = np.array(bounds).T
        ax.scatter(x, y, facecolors="none", edgecolors=SECOND, s=26, zorder=3, label="IW bound")
    for point in points:
        ax.annotate(
            point["name"],
            (point["rate"], point["distortion"]),
            xytext=(5, 4),
            textcoords="offset points",
            fontsize=7,
            color=INK,
        )
    ax.set_xlim(low, high)
    spread = 0.15 * max(float(np.ptp(distortions)), 1.0)
    ax.set_ylim(float(distortions.min()) - spread, float(distortions.max()) + spread)
    ax.set_xlabel("rate, nats")
    ax.set_ylabel("distortion, nats")
    ax.text(0.99, 0.98, "thin lines: equal ELBO", transform=ax.transAxes, ha="right", va="top", fontsize=7, color=MUTED)
    ax.legend(loc="lower left")
    return figure


def _measured(run: Run) -> dict[str, Any]:
    """Rate, distortion and -IW bound of a run, from its metrics.json if it is of this step."""
    kept = run.measured
    if "rate" not in kept:
        kept = run.evaluate(samples=50, most=1000)
    if kept["rate"]["value"] is None:
        raise Problem(f"{run.folder} has no rate: {kept['rate']['reason']}")
    bound = kept["log_likelihood"]["value"]
    options = ", ".join(f"{k} {v:g}" for k, v in run.spec.options.items() if isinstance(v, float))
    name = f"{run.spec.method} {options}".strip()
    return {
        "name": name if len(name) < 40 else run.spec.method,
        "rate": kept["rate"]["value"],
        "distortion": kept["distortion"]["value"],
        "bound": None if bound is None else -bound,
    }
