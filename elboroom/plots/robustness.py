"""Figures of a model out of its depth: flipped pixels and domain shift."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from elboroom.core.batch import Batch
from elboroom.core.problem import Problem
from elboroom.evaluate.robustness import FLIPS, Response, domain_shift, elbo_per_example, noise
from elboroom.plots.pictures import colour, contact_sheet
from elboroom.runs.run import Run


def flips(run: Run, n: int = 10, seed: int = 0) -> Figure:
    """Inputs with more and more flipped pixels, each above its reconstruction, with drift and overlap."""
    clean = images_of(run, n, seed)
    rows, names = [clean.x.numpy(), run.reconstruct(clean)], ["clean", "reconstructed"]
    for share, response in noise(run.model, clean, FLIPS).items():
        rows += [response.x, response.reconstruction]
        names += [f"{share:.1%} flipped", _said(response)]
    return contact_sheet(colour(np.stack(rows)), names)


def shift(run: Run, n: int = 8, seed: int = 0) -> Figure:
    """A triangle that was never seen, moved along the first dimension, then inverted images above their reconstructions."""
    clean = images_of(run, n, seed)
    n = len(clean.x)  # of a small data set all that it has
    rows, names = [], []
    split = run.split(most=1000)
    known = [elbo_per_example(run.model, batch) for batch in split.batches()] if split.has_density else []
    elbos = np.concatenate([np.zeros(0), *known])  # without a density nothing has a rank
    for name, response in domain_shift(run.model, clean, elbos).items():
        pair, said = [response.x, response.reconstruction], _said(response)
        if name == "triangle":  # one image, moved along the first dimensions
            start = replace(clean, x=clean.x.new_tensor(response.x), u=None if clean.u is None else clean.u[:1])
            moved = run.traverse(start, run.order[:1], points=n)[0]
            pair, said = [np.repeat(response.x, n, 0), moved], f"along z{run.order[0]}\n{said}"
        rows += pair
        names += [name, said]
    return contact_sheet(colour(np.stack(rows)), names)


def _said(response: Response) -> str:
    parts = []
    if response.drift is not None:
        parts.append(f"drift {response.drift:.2f}")
    if response.overlap is not None:
        parts.append(f"IoU {response.overlap:.2f}")
    if response.rank is not None:
        parts.append(f"ELBO above {response.rank:.0%} of data")
    return "\n".join(parts)


def images_of(run: Run, n: int, seed: int) -> Batch:
    """Some images of a run; refuses those whose pixels can be neither flipped nor inverted."""
    if run.spec.about.kind != "pixels" or not run.spec.about.levels:
        raise Problem("pixels can be flipped or inverted only in images with values in [0, 1]")
    return run.examples(n, seed=seed)
