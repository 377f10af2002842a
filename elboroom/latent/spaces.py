"""Spaces: where codes live, so that what moves them stays there: R^d, the sphere, the Poincare ball."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from elboroom.core.ball import Ball
from elboroom.core.draw import LatentModel
from elboroom.core.law import law_of
from elboroom.latent import paths


class Space(Protocol):
    """Codes, (..., J), and a chart of them in which they are added and moved along one dimension."""

    def flat(self, z: Tensor) -> Tensor: ...

    def back(self, v: Tensor) -> Tensor: ...

    def way(self, a: Tensor, b: Tensor, points: int) -> Tensor: ...  # the shortest way, (points, J)


class Euclidean:
    """R^d, with straight lines."""

    def flat(self, z: Tensor) -> Tensor:
        return z

    def back(self, v: Tensor) -> Tensor:
        return v

    def way(self, a: Tensor, b: Tensor, points: int) -> Tensor:
        return paths.line(a, b, points)


class Sphere:
    """Codes of norm one, with great circles; what leaves the sphere is brought back to it."""

    def flat(self, z: Tensor) -> Tensor:
        return z

    def back(self, v: Tensor) -> Tensor:
        return torch.nn.functional.normalize(v, dim=-1)

    def way(self, a: Tensor, b: Tensor, points: int) -> Tensor:
        return self.back(paths.arc(a, b, points))


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


def space_of(model: LatentModel) -> Space:
    """Where the codes of a model live."""
    space = law_of(model.families[0]).space
    if space == "ball":
        return Hyperbolic(getattr(model.prior, "ball", None) or model.posterior.ball)  # type: ignore[arg-type]
    return Sphere() if space == "sphere" else Euclidean()
