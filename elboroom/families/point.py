"""The point posterior of a deterministic encoder: it has no density, and says so."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from elboroom.core.batch import Batch
from elboroom.core.law import Law
from elboroom.families.gaussian import widened


class Point(Law):
    """All mass at loc."""

    has_rsample = True
    has_density = False
    has_parts = True

    def __init__(self, loc: Tensor) -> None:
        self.loc = loc
        super().__init__(loc.shape[:-1], loc.shape[-1:])

    @property
    def mean(self) -> Tensor:
        return self.loc

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.loc.expand(*sample_shape, *self.loc.shape)

    def part(self, where: slice) -> Point:
        """The law of some of its dimensions."""
        return Point(self.loc[..., where])

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.rsample(sample_shape).detach()  # without a graph, expand may be loc itself, which has a gradient


class PointPosterior(nn.Module):
    """z = f(x, u)."""

    family = Point

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, batch: Batch) -> Point:
        return Point(widened(self.net(batch.x, batch.u)))
