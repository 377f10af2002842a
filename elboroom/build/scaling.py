"""The statistics of the training data that a model has inside, so that its nets work with numbers near one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from elboroom.core.problem import Problem
from elboroom.data.dataset import About, DataSet
from elboroom.nets.mlp import LinearBeside

MOST = 10_000  # examples that are looked at
FEW = 2_000  # of which principal components are computed
LEAST = 0.1  # width of what they leave over, where that is nothing: a net that has learnt nothing yet needs some room


def standard(about: About, data: DataSet | None, most: int = MOST) -> tuple[Tensor, Tensor]:
    """Mean and width of the training split: of every column of a table, and of images the mean image with one width.

    The pixels of an image share their unit, so that those which hardly change are not blown up. A column that never changes
    has the width one. Zeros and ones where the data is not at hand: a checkpoint has them.
    """
    one = (1,) * len(about.shape) if about.kind == "pixels" else about.shape
    if data is None:
        return torch.zeros(about.shape), torch.ones(one)
    x = some(data, most)
    centre = x.mean(0)
    squares = (x - centre).square()
    width = (squares.mean() if about.kind == "pixels" else squares.mean(0)).sqrt().reshape(one)
    least = 1e-6 * (centre.abs().max() if about.kind == "pixels" else centre.abs())  # what rounding leaves of nothing
    width = torch.where((width > least) & (width > 0), width, torch.ones(()).double())
    return centre.float(), width.float()


def some(data: DataSet, most: int) -> Tensor:
    """At most so many examples of the training split, the same every time, in double precision."""
    rows = data.splits["train"]
    few = rows if len(rows) <= most else np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
    return data.x(few).double()


def refuse_outside(data: DataSet | None, what: str) -> None:
    """Refuses vectors with values outside [0, 1], where the data is at hand."""
    if data is None:
        return
    low, high = (float(v) for v in some(data, MOST).aminmax())
    if low < 0 or high > 1:
        raise Problem(f"{what} needs values in [0, 1], and '{data.about.name}' has {low:g} to {high:g}")


class Principal(NamedTuple):
    """Probabilistic PCA of standardised data: J axes, the widths along them, and that of what is left of each value."""

    axes: Tensor  # (J, D)
    widths: Tensor  # (J,)
    rest: float


def principal(x: Tensor, latent: int) -> Principal:
    """The best linear model of rows (n, D) of mean zero; axes that the rows do not have are zero."""
    n, size = x.shape
    narrow = size <= n
    values, vectors = torch.linalg.eigh(x.T @ x / n if narrow else x @ x.T / n)  # ascending
    values, vectors = values.flip(0)[:latent].clamp_min(0), vectors.flip(1)[:, :latent]
    found = values > 1e-9 * values.max()
    widths = torch.where(found, values.sqrt(), torch.zeros(()).double())  # (<= J,)
    axes = vectors.T if narrow else vectors.T @ x / (n**0.5 * widths.clamp_min(1e-30))[:, None]
    axes = torch.where(found[:, None], axes, torch.zeros(()).double())
    rest = (x.square().sum() / n - values.sum()).clamp_min(1e-6 * values.sum()) / max(1, size - len(values))
    more = latent - len(values)  # dimensions of z beyond those of the data
    axes, widths = nn.functional.pad(axes, (0, 0, 0, more)), nn.functional.pad(widths, (0, more))
    return Principal(axes.float(), widths.float(), max(LEAST, float(rest.sqrt())))


@torch.no_grad()
def begin_encoder(net: LinearBeside, known: Principal) -> None:
    """The first J outputs begin as whitened scores, the next J as the log variances that probabilistic PCA gives them."""
    latent, size = known.axes.shape
    weight, bias = net.linear.weight, net.linear.bias
    if len(weight) < latent:
        return
    weight[:latent, :size] = known.axes / known.widths.clamp_min(known.rest)[:, None] / net.pace
    if len(weight) >= 2 * latent:
        weight[latent : 2 * latent] = 0
        bias[latent : 2 * latent] = -torch.log1p((known.widths / known.rest).square())


@torch.no_grad()
def begin_decoder(net: LinearBeside, known: Principal) -> None:
    """The mean begins as the axes, each as long as the data is wide along it."""
    latent, size = known.axes.shape
    net.linear.weight[:size, :latent] = (known.axes * known.widths[:, None]).T / net.pace
