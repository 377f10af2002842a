"""Figures of images: what a model makes of data, of its prior and of the ways between codes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from matplotlib.figure import Figure

from elboroom.core.batch import Batch
from elboroom.core.problem import Problem
from elboroom.families.gaussian import NoPrior
from elboroom.plots.codes import Codes
from elboroom.plots.pictures import Pixels, beside, colour, contact_sheet, signed
from elboroom.plots.style import MINUS
from elboroom.runs.run import Run

ROWS = 12  # dimensions at most in one figure


def reconstructions(run: Run, n: int = 10) -> Figure:
    """Inputs, what is decoded from the means of their codes, and the signed difference, in three rows."""
    batch = _images(run, n)
    inputs, outputs = batch.x.numpy(), run.reconstruct(batch)
    low, high = extent(run, inputs)
    reach = high - low
    rows = np.stack([colour(inputs, low, high), colour(outputs, low, high), signed(outputs - inputs, reach)])
    return contact_sheet(rows, ["input", "output", f"difference\n{MINUS}{reach:.3g} … {reach:.3g}"])


def samples(run: Run, side: int = 5, seed: int = 0) -> Figure:
    """Means of p(x|z) for codes from the prior, as a square grid."""
    _images(run, 1)
    _prior(run, "prior samples")
    drawn = run.sample(side * side, seed)
    low, high = extent(run)
    grid = np.resize(colour(drawn, low, high), (side, side, 3, *drawn.shape[2:]))
    return contact_sheet(grid)


def data(run: Run, n: int = 10_000, side: int = 5, seed: int = 0) -> Figure:
    """Examples of the data in a square, and beside them the mean of n of them."""
    some = _images(run, side * side, seed).x.numpy()
    split = run.split(most=n)
    mean = _mean(batch.x.cpu().numpy() for batch in split.batches())
    low, high = extent(run, some)
    grid = np.resize(colour(some, low, high), (side, side, 3, *some.shape[2:]))
    return beside(grid, colour(mean, float(mean.min()), float(mean.max())), [
        f"{side * side} of {len(split.data.splits[split.name]):,} examples ({split.name})",
        f"mean of {len(split.rows):,}, {mean.min():.2g} … {mean.max():.2g}",
    ])  # fmt: skip


def densities(run: Run, n: int = 10_000, seed: int = 0) -> Figure:
    """The pixel mean of the data, of n prior samples, and the signed difference of the two."""
    _images(run, 1)
    _prior(run, "the mean of prior samples")
    split = run.split(most=n)
    real = _mean(batch.x.cpu().numpy() for batch in split.batches())
    rounds = [min(1000, n - at) for at in range(0, n, 1000)]
    made = _mean(run.sample(size, seed + i) for i, size in enumerate(rounds))
    low, high = float(min(real.min(), made.min())), float(max(real.max(), made.max()))
    reach = float(np.abs(made - real).max())
    row = np.stack([colour(real, low, high), colour(made, low, high), signed(made - real, reach)])
    names = [f"data\n{low:.2g} … {high:.2g}", "samples\nsame scale", f"difference\n{MINUS}{reach:.2g} … {reach:.2g}"]
    return contact_sheet(row[:, None], names, cell=192)


def traversals(run: Run, codes: Codes | None = None, points: int = 10, reach: float = 3.0, seed: int = 0) -> Figure:
    """One row a dimension: its value runs over [-reach, reach], all others stay as in the code of one image."""
    start = _images(run, 1, seed)
    codes = codes or Codes.of(run)
    dims = codes.order[:ROWS]
    grid, reach = run.traverse(start, dims, points, reach), run.space.reach(reach)
    low, high = extent(run)
    values = [f"{v:.1f}".replace("-", MINUS) for v in np.linspace(-reach, reach, points)]
    return contact_sheet(colour(grid, low, high), [f"z{j}   {codes.label(j)}" for j in dims], values)


def interpolations(run: Run, n: int = 5, points: int = 8, seed: int = 0) -> Figure:
    """Strips from one image to another: the input, the decoded line between the two codes, the other input."""
    many = _images(run, 200, seed)
    left, right = _couples(many, n)
    a, b = (Batch(many.x[rows], None if many.u is None else many.u[rows]) for rows in (left, right))
    strips = np.concatenate([a.x.numpy()[:, None], run.interpolate(a, b, points), b.x.numpy()[:, None]], 1)
    low, high = extent(run)
    names = ["input", *(f"{t:.2f}" for t in np.linspace(0, 1, points)), "input"]
    return contact_sheet(colour(strips, low, high), columns=names)


def transfers(run: Run, n: int = 6) -> Figure:
    """Images, and beside each what becomes of it with the style of every value of a run's labels; its own reconstructs it."""
    batch, styles = _images(run, n), run.styles()
    made = {
        value if len(styles) == 1 else f"{label} {value}": run.transfer(batch, {label: value})
        for label, values in styles.items()
        for value in values[:ROWS]
    }
    low, high = extent(run, batch.x.numpy())
    grid = np.stack([batch.x.numpy(), *made.values()], 1)
    return contact_sheet(colour(grid, low, high), columns=["input", *made])


def extent(run: Run, images: Pixels | None = None) -> tuple[float, float]:
    """The values shown as black and white: 0 and 1, or the ends of the data where they are reals."""
    if run.spec.about.levels:
        return 0.0, 1.0
    seen = run.examples(200).x.numpy() if images is None else images
    return float(seen.min()), float(seen.max())


def _mean(parts: Iterable[Pixels]) -> Pixels:
    """The mean image of many, part by part."""
    total, count = np.zeros(()), 0
    for part in parts:
        total, count = total + part.sum(0, dtype=np.float64), count + len(part)
    return total / count


def _couples(batch: Batch, n: int) -> tuple[list[int], list[int]]:
    """n pairs of different rows; of the same u where the model is given one, since u stays along the way."""
    free, left, right = list(range(len(batch.x))), list[int](), list[int]()
    while len(left) < n and len(free) > 1:
        a = free.pop(0)
        b = next((i for i in free if batch.u is None or bool((batch.u[i] == batch.u[a]).all())), None)
        if b is not None:
            free.remove(b)
            left.append(a)
            right.append(b)
    return (left, right) if left else ([0], [len(batch.x) - 1])


def _images(run: Run, n: int, seed: int = 0) -> Batch:
    if run.spec.about.kind != "pixels":
        raise Problem(f"this figure is for images; the data are {run.spec.about.kind}")
    return run.examples(n, seed=seed)


def _prior(run: Run, what: str) -> None:
    if isinstance(run.model.prior, NoPrior):
        raise Problem(f"the model has no prior, so there are no {what}")
