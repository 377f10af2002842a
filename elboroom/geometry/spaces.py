"""Spaces: where codes live, so that what moves them stays there: R^d, the sphere, the Poincare ball."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from elboroom.core.law import capabilities
from elboroom.core.model import LatentModel
from elboroom.geometry import paths
from elboroom.geometry.ball import Ball


class Space(Protocol):
    """Codes, (..., J), and a chart of them in which they are added and moved along one dimension."""

    def flat(self, z: Tensor) -> Tensor: ...

    def back(self, v: Tensor) -> Tensor: ...

    def way(self, a: Tensor, b: Tensor, points: int) -> Tensor: ...  # the shortest way, (points, J)

    def along(self, z: Tensor, dims: list[int], values: Tensor) -> Tensor: ...  # each set to each, (dims, values, J)

    def reach(self, asked: float) -> float: ...  # how far a dimension can be moved of what is asked


class Euclidean:
    """R^d, with straight lines."""

    def flat(self, z: Tensor) -> Tensor:
        return z

    def back(self, v: Tensor) -> Tensor:
        return v

    def way(self, a: Tensor, b: Tensor, points: int) -> Tensor:
        return paths.line(a, b, points)

    def along(self, z: Tensor, dims: list[int], values: Tensor) -> Tensor:
        return paths.along(z, dims, values)

    def reach(self, asked: float) -> float:
        return asked


class Sphere:
    """Codes of norm one, with great circles; what leaves the sphere is brought back to it."""

    def flat(self, z: Tensor) -> Tensor:
        return z

    def back(self, v: Tensor) -> Tensor:
        return torch.nn.functional.normalize(v, dim=-1)

    def way(self, a: Tensor, b: Tensor, points: int) -> Tensor:
        return self.back(paths.arc(a, b, points))

    def along(self, z: Tensor, dims: list[int], values: Tensor) -> Tensor:
        """One coordinate is set, and the others make room for it: they keep their direction."""
        grid, where = paths.along(z, dims, values), torch.eye(len(z), dtype=torch.bool, device=z.device)[dims]
        others = torch.nn.functional.normalize(grid.masked_fill(where.unsqueeze(1), 0.0), dim=-1)  # (dims, values, J)
        room = torch.sqrt((1 - values.square()).clamp_min(0)).unsqueeze(-1)
        return torch.where(where.unsqueeze(1), grid, room * others)

    def reach(self, asked: float) -> float:
        return min(asked, 1.0)


class Hyperbolic:
    """The Poincare ball, with its geodesics; its chart is log_0."""

    def __init__(self, ball: Ball) -> None:
        self.ball = ball

    @torch.no_grad()
    def flat(self, z: Tensor) -> Tensor:
        return self.ball.log0(self.ball.inside(z)).to(z.dtype)

    @torch.no_grad()
    def back(self, v: Tensor) -> Tensor:
        return self.ball.exp0(v).to(v.dtype)

    @torch.no_grad()
    def way(self, a: Tensor, b: Tensor, points: int) -> Tensor:
        a, b = self.ball.inside(a), self.ball.inside(b)
        t = paths.line(torch.zeros(1), torch.ones(1), points).double()
        return self.ball.wrap(t * self.ball.unwrap(b, a), a.expand(points, -1)).float()

    def along(self, z: Tensor, dims: list[int], values: Tensor) -> Tensor:
        return self.back(paths.along(self.flat(z), dims, values))

    def reach(self, asked: float) -> float:
        return asked


def space_of(model: LatentModel) -> Space:
    """Where the codes of a model live."""
    space = capabilities(model.families[0]).space
    if space == "ball":
        return Hyperbolic(getattr(model.prior, "ball", None) or model.posterior.ball)  # type: ignore[arg-type]
    return Sphere() if space == "sphere" else Euclidean()
