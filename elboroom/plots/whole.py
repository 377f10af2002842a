"""Whole traversals of inputs that a model was not made for: pixels flipped, an unseen shape, the inverted image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from elboroom.core.batch import Batch
from elboroom.evaluate.robustness import FLIPS, flipped, triangle
from elboroom.plots.codes import Codes
from elboroom.plots.images import ROWS
from elboroom.plots.pictures import SEPARATOR, colour, contact_sheet
from elboroom.plots.robustness import images_of
from elboroom.plots.style import MINUS
from elboroom.runs.run import Run

POINTS, REACH = 10, 3.0
BLANK = SEPARATOR[:, None, None] / 255  # where there is nothing to show


def of_flips(run: Run, codes: Codes | None = None, seed: int = 0) -> Figure:
    """One image with more and more of its pixels flipped, each traversed in every dimension."""
    clean = images_of(run, 1, seed)
    inputs = {f"{share:.1%} flipped": replace(clean, x=flipped(clean.x, share)) for share in FLIPS}
    return _traversed(run, inputs, codes)


def of_shift(run: Run, codes: Codes | None = None, seed: int = 0) -> Figure:
    """A triangle and an inverted image, each traversed in every dimension; below them the image itself, to compare."""
    clean = images_of(run, 1, seed)
    unseen = replace(clean, x=triangle(tuple(clean.x.shape[1:])).clone())
    return _traversed(run, {"triangle": unseen, "inverted": replace(clean, x=1 - clean.x), "as it is": clean}, codes)


def _traversed(run: Run, inputs: Mapping[str, Batch], codes: Codes | None) -> Figure:
    """A block for each input: a row a dimension, highest rate first, beside the input and below it what is made of it."""
    codes = codes or Codes.of(run)
    dims = codes.order[:ROWS]
    reach = run.space.reach(REACH)
    rows, names = [], []
    for name, batch in inputs.items():
        grid = run.traverse(batch, dims, POINTS, REACH)  # (dims, points, C, H, W)
        beside = np.broadcast_to(BLANK, (len(dims), 1, 3, *grid.shape[3:])).copy()
        beside[0, 0] = colour(batch.x[0].numpy())
        if len(dims) > 1:
            beside[1, 0] = colour(run.reconstruct(batch)[0])
        rows.append(np.concatenate([beside, colour(grid)], 1))
        names += [f"{name}   z{j}" if j == dims[0] else f"z{j}" for j in dims]
    values = [f"{v:.1f}".replace("-", MINUS) for v in np.linspace(-reach, reach, POINTS)]
    return contact_sheet(np.concatenate(rows), names, ["in, out", *values], cell=64)
