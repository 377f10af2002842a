"""Gyroplanes: the layer through which a decoder reads a point of the Poincare ball, and the chart of its critics."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from elboroom.core.batch import Batch
from elboroom.core.reference import Reference
from elboroom.geometry.ball import DEEP, Ball


def gyroplane(ball: Ball, z: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """f_{a,b}(z) = lambda_b |a| / sqrt(c) asinh(2 sqrt(c) <k, a> / ((1 - c |k|^2) |a|)), k = (-b) (+) z: (N, J) -> (N, H).

    The signed distance of z from the geodesic plane through b with normal a, scaled: 4 <a, z - b> as c goes to 0.
    """
    depth = ball.log_gap(z)
    z, a, b, c = z.double(), a.double(), b.double(), ball.c
    z2, a2, b2 = (t.square().sum(-1) for t in (z, a, b))  # (N,), (H,), (H,)
    here, ab = 1 - c * b2, (a * b).sum(-1)
    apart = z2.unsqueeze(-1) - 2 * z @ b.T + b2  # |z - b|^2, (N, H)
    size = (a2.clamp_min(1e-30) / c).sqrt()
    slope = 2 * (here * (z @ a.T - ab) - c * apart * ab) / (here * size)  # 2 <k, a> sqrt(c) / |a|, of a gap of one
    deep = depth < DEEP
    near = torch.asinh(slope * torch.exp(-torch.where(deep, torch.zeros_like(depth), depth)))
    some = torch.where(deep & (slope != 0), slope, torch.ones_like(slope))
    far = torch.where(slope != 0, some.sign() * (some.abs().log() + math.log(2) - depth), 0.0)
    return 2 / here * size * torch.where(deep, far, near)


class GyroplaneLayer(nn.Module):
    """Units f_{a,b}, each b a point exp_0(b') and each a a vector a' carried from the origin to b: (..., J) -> (..., H)."""

    def __init__(self, latent: int, units: int, ball: Ball) -> None:
        super().__init__()
        self.ball = ball
        self.a = nn.Parameter(torch.randn(units, latent) / (4 * latent**0.5))
        self.b = nn.Parameter(0.01 * torch.randn(units, latent))

    def forward(self, z: Tensor) -> Tensor:
        b = self.ball.centre(self.b)
        z = self.ball.inside(z)
        units = gyroplane(self.ball, z.reshape(-1, z.shape[-1]), self.ball.transport(self.a, b), b)
        return units.to(self.a.dtype).view(*z.shape[:-1], -1)


class Gyroplanes(nn.Module):
    """p(x|z) of a z on the ball: as many gyroplane units as z has dimensions stand where a likelihood takes z."""

    def __init__(self, likelihood: nn.Module, latent: int, ball: Ball) -> None:
        super().__init__()
        self.layer, self.likelihood = GyroplaneLayer(latent, latent, ball), likelihood
        self.family = likelihood.family
        self.learns_sigma = getattr(likelihood, "learns_sigma", False)

    def forward(self, z: Tensor, batch: Batch) -> Any:
        return self.likelihood(self.layer(z), batch)


class Flat(nn.Module):
    """log_0(z), in the precision of nets: how a critic reads a point of the ball.

    Its curvature is the model's to move; of a z that is a constant, so is log_0(z), learned curvature or not.
    """

    like: Tensor

    def __init__(self, ball: Ball) -> None:
        super().__init__()
        self.ball = Reference(ball)
        self.register_buffer("like", torch.zeros(()), persistent=False)

    def forward(self, z: Tensor) -> Tensor:
        ball = self.ball.module
        flat = ball.log0(ball.inside(z)).to(self.like.dtype)
        return flat if z.requires_grad else flat.detach()
