"""The figures that `elbo plot KIND` draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from elboroom.core.problem import Problem
from elboroom.evaluate.manifold import atlas, swiss_roll
from elboroom.plots import images, latent
from elboroom.plots.attributes import attributes
from elboroom.plots.curves import curves
from elboroom.plots.labels import label_efficiency
from elboroom.plots.manifold import manifold
from elboroom.plots.plane import rate_distortion
from elboroom.plots.robustness import flips, shift
from elboroom.runs.estimator import VAE
from elboroom.runs.run import Run

ROLL: dict[str, Any] = {"latent": 2, "steps": 3000, "lr": 2e-3, "threads": 1}  # of the models on the Swiss roll
POINTS = 1500  # of the roll


@dataclass(frozen=True)
class Kind:
    """A figure by name: of one run, or of several."""

    what: str
    draw: Callable[[Sequence[Run]], Figure]


def _of_one(what: str, draw: Callable[[Run], Figure]) -> Kind:
    def one(runs: Sequence[Run]) -> Figure:
        if len(runs) != 1:
            raise Problem(f"this figure is of one run, not of {len(runs)}")
        return draw(runs[0])

    return Kind(what, one)


def _codes(run: Run) -> Figure:
    """Manifold comparators beside the codes of a run, on at most 1,000 of its examples."""
    split = run.split(most=1000)
    x = run.data.x(split.rows).flatten(1).numpy()
    labels = run.data.labels[split.rows, 0] if run.data.about.labels else None
    return manifold(atlas(x, {run.spec.method: split.codes[0].numpy()}, labels=labels))


def _roll(runs: Sequence[Run]) -> Figure:
    """Manifold comparators on the Swiss roll, beside an autoencoder and a VAE trained on it for a moment."""
    if runs:
        raise Problem("this figure takes no run: elbo plot swiss-roll")
    return manifold(swiss_roll({"ae": VAE("ae", **ROLL), "vae": VAE("vae", sigma=0.1, **ROLL)}, n=POINTS))


KINDS: dict[str, Kind] = {
    "curves": _of_one("every term and weight, by step", curves),
    "reconstructions": _of_one("inputs, outputs and their difference", images.reconstructions),
    "traversals": _of_one("one dimension at a time, highest rate first", images.traversals),
    "interpolations": _of_one("the way from one code to another", images.interpolations),
    "samples": _of_one("images from the prior", images.samples),
    "densities": _of_one("pixel means of data and of samples", images.densities),
    "rates": _of_one("KL of each dimension", latent.rates),
    "aggregate": _of_one("q(z) of each dimension against the prior", latent.aggregate),
    "collapse": _of_one("means and deviations of active and passive units", latent.activity),
    "pairs": _of_one("codes in pairs of dimensions", latent.pairs),
    "attributes": _of_one("edits along the vector of a label, z + t w", attributes),
    "flips": _of_one("flipped pixels: drift and overlap", flips),
    "shift": _of_one("an unseen triangle and inverted images", shift),
    "labels": _of_one("accuracy of predicting factors by number of labels", label_efficiency),
    "rate-distortion": Kind("rate against distortion, a point a run", rate_distortion),
    "manifold": _of_one("codes beside PCA, MDS, Isomap, LLE, t-SNE, ...", _codes),
    "swiss-roll": Kind("the same on the Swiss roll; takes no run", _roll),
}
