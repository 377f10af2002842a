"""The figure of an atlas: a panel for each map, coloured by a true coordinate or a label."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from elboroom.core.problem import unknown
from elboroom.evaluate.manifold import Atlas, atlas, swiss_roll
from elboroom.plots.style import FIRST, MUTED, SEVERAL, small_multiples, styled
from elboroom.runs.estimator import VAE
from elboroom.runs.run import Run

RAMP = "viridis"
RHO = "\N{GREEK SMALL LETTER RHO}"
ROLL: dict[str, Any] = {"latent": 2, "steps": 3000, "lr": 2e-3, "threads": 1}  # of the models on the Swiss roll
POINTS = 1500  # of the roll


def of_run(run: Run) -> Figure:
    """Manifold comparators beside the codes of a run, on at most 1,000 of its examples."""
    split = run.split(most=1000)
    x = run.data.x(split.rows).flatten(1).numpy()
    labels = run.data.labels[split.rows, 0] if run.data.about.labels else None
    return manifold(atlas(x, {run.spec.method: split.codes[0].numpy()}, labels=labels))


def of_roll() -> Figure:
    """Manifold comparators on the Swiss roll, beside an autoencoder and a VAE trained on it for a moment."""
    return manifold(swiss_roll({"ae": VAE("ae", **ROLL), "vae": VAE("vae", sigma=0.1, **ROLL)}, n=POINTS))


@styled
def manifold(atlas: Atlas, colour: str | None = None) -> Figure:
    """Each map as a scatter of its two widest axes; trustworthiness T and, by true coordinates, Spearman's rho beside it.

    colour: the name of a true coordinate; by default labels where there are any, else the first coordinate.
    """
    if colour is not None and colour not in atlas.truth:
        raise unknown("true coordinate", colour, atlas.truth)
    name = colour or (None if atlas.labels is not None else next(iter(atlas.truth), None))
    figure, axes = small_multiples(len(atlas.maps), 5, height=1.85)
    order = np.random.default_rng(0).permutation(atlas.settings["rows"])  # no class is drawn over all others
    for ax, found in zip(axes, atlas.maps, strict=True):
        wide = np.sort(np.argsort(-found.points.var(0))[:2])
        xy = found.points[order][:, wide] if len(wide) == 2 else _beside(found.points[order, 0])
        if name is not None:
            ax.scatter(xy[:, 0], xy[:, 1], s=4, c=atlas.truth[name][order], cmap=RAMP, linewidths=0, rasterized=True)
        else:
            tints = FIRST if atlas.labels is None else [SEVERAL[k % len(SEVERAL)] for k in atlas.labels[order]]
            ax.scatter(xy[:, 0], xy[:, 1], s=4, c=tints, linewidths=0, rasterized=True)
        ax.set_title(found.name)
        said = [f"T {found.trustworthiness.value:.3f}"]
        if found.spearman:
            said.append(f"{RHO} " + ", ".join(f"{key} {rho.value:.2f}" for key, rho in found.spearman.items()))
        ax.set_xlabel("\n".join(said), fontsize=6.5, color=MUTED)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_box_aspect(1)
    if name is not None:
        values = atlas.truth[name]
        shade = ScalarMappable(Normalize(float(values.min()), float(values.max())), RAMP)
        bar = figure.colorbar(shade, ax=axes, shrink=0.5, aspect=30, pad=0.015)
        bar.set_label(name)
        bar.outline.set_visible(False)
    elif atlas.labels is not None and len(atlas.classes) <= len(SEVERAL):
        dots = [
            Line2D([], [], color=SEVERAL[k], marker="o", linestyle="", markersize=4, label=name)
            for k, name in enumerate(atlas.classes)
        ]
        figure.legend(handles=dots, loc="outside right upper")
    return figure


def _beside(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """A map of one axis with a height drawn at random, so that its points do not hide one another, (n, 2)."""
    return np.column_stack([values, np.random.default_rng(1).uniform(-1, 1, len(values))])
