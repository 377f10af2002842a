"""Moves in the latent space: along a dimension, from one example to another, by the difference of two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from elboroom.core.batch import Batch
from elboroom.core.problem import Problem
from elboroom.families.decoding import Decoding
from elboroom.geometry import paths
from elboroom.geometry.spaces import Euclidean
from elboroom.runs.inputs import as_batch

if TYPE_CHECKING:
    from elboroom.runs.run import Run


def traverse(
    run: Run, x: Any, dims: list[int] | None, points: int, reach: float, u: ArrayLike | None, decoding: Decoding | None
) -> Any:
    """One dimension at a time; see `Run.traverse`."""
    batch = run.examples(1) if x is None else as_batch(run, x, u)
    values = paths.spread(points, run.space.reach(reach))
    if dims is not None and not all(0 <= j < run.latent for j in dims):
        raise Problem(f"the dimensions of this model are 0 to {run.latent - 1}, not {dims}")
    grid = run.space.along(torch.from_numpy(run.encode(batch)[0]), run.order if dims is None else dims, values)
    return decoded(run, grid, batch, grid[..., 0].numel(), decoding)


def interpolate(
    run: Run, a: Any, b: Any, points: int, spherical: bool, decoding: Decoding | None, u: ArrayLike | None
) -> Any:
    """The way from a to b; see `Run.interpolate`."""
    paths.check_points(points, "an interpolation")
    left, right = (as_batch(run, x, u) for x in (a, b))
    if len(left.x) != len(right.x):
        raise Problem(f"{len(left.x)} examples and {len(right.x)} cannot be paired; give as many of each")
    if spherical and not isinstance(run.space, Euclidean):
        raise Problem("--spherical has no effect here, since the codes of this model lie on a curved space; remove it")
    way = paths.arc if spherical else run.space.way
    codes = zip(torch.from_numpy(run.encode(left)), torch.from_numpy(run.encode(right)), strict=True)
    grid = torch.stack([way(z, w, points) for z, w in codes])  # (n, points, J)
    return decoded(run, grid, left, points, decoding)


def decoded(run: Run, grid: Tensor, batch: Batch, times: int, decoding: Decoding | None) -> Any:
    """A grid of codes decoded, so many of each example with the labels and the context that it has."""
    rows = len(grid.flatten(0, 1)) // times
    given, context = (
        None if beside is None else beside[:rows].repeat_interleave(times, 0) for beside in (batch.u, batch.context)
    )
    made = run._decoded(torch.from_numpy(grid.flatten(0, 1).numpy()).float(), given, decoding, context)
    return run.medium().grid(made, *grid.shape[:2])


def analogy(run: Run, a: Any, b: Any, c: Any, strength: float, decoding: Decoding | None, u: ArrayLike | None) -> Any:
    """c + strength (a - b); see `Run.analogy`."""
    if not np.isfinite(strength):
        raise Problem(f"the strength of an analogy is a finite number, not {strength}")
    one, two, three = (run.space.flat(torch.from_numpy(run.encode(x, u))) for x in (a, b, c))
    if not len(one) == len(two) == len(three):
        raise Problem(
            f"an analogy needs as many examples of each of its three, not {len(one)}, {len(two)}, {len(three)}"
        )
    return run.decode(run.space.back(three + strength * (one - two)).numpy(), u, decoding)
