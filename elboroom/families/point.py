"""The point posterior of a deterministic encoder: it has no density, and says so."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor, nn
from torch.distributions import Distribution

from elboroom.core.draw import Batch
from elboroom.families.gaussian import widened


class Point(Distribution):
    """All mass at loc."""

    arg_constraints: ClassVar[dict[str, Any]] = {}
    has_rsample = True
    has_density = False

    def __init__(self, loc: Tensor) -> None:
        self.loc = loc
        super().__init__(loc.shape[:-1], loc.shape[-1:], validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.loc

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.loc.expand(*sample_shape, *self.loc.shape)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.rsample(sample_shape).detach()


class PointPosterior(nn.Module):
    """z = f(x, u)."""

    family = Point

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, batch: Batch) -> Point:
        return Point(widened(self.net(batch.x, batch.u)))
