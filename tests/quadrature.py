"""Points and volumes over which tests integrate."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from elboroom.geometry.ball import Ball


def disc(c: float, far: float = 16.0, n: int = 250) -> tuple[Tensor, Tensor]:
    """The Poincare disc in polar coordinates: dV = sinh(sqrt(c) r) / sqrt(c) dr dtheta; (n^2, 2) and (n^2,)."""
    nodes, weights = (torch.from_numpy(part) for part in np.polynomial.legendre.leggauss(n))
    r, theta = (nodes + 1) * far / 2, torch.arange(n).double() * 2 * math.pi / n
    radius = torch.tanh(math.sqrt(c) * r / 2) / math.sqrt(c)
    grid = radius[:, None, None] * torch.stack([theta.cos(), theta.sin()], -1)  # (n, n, 2)
    volume = torch.sinh(math.sqrt(c) * r) / math.sqrt(c) * weights * far / 2 * (2 * math.pi / n)
    return grid.view(-1, 2), volume[:, None].expand(n, n).reshape(-1)


def plane(reach: float = 10.0, n: int = 401) -> tuple[Tensor, Tensor]:
    """A square of R^2, (n^2, 2) and (n^2,): for a smooth law that vanishes at its edge equal steps are the best there are."""
    axis = torch.linspace(-reach, reach, n, dtype=torch.float64)
    step = 2 * reach / (n - 1)
    return torch.cartesian_prod(axis, axis), torch.full((n * n,), step**2, dtype=torch.float64)


def sphere(n: int = 120) -> tuple[Tensor, Tensor]:
    """S^2 by its height and its angle, (2 n^2, 3) and (2 n^2,)."""
    nodes, weights = (torch.from_numpy(part) for part in np.polynomial.legendre.leggauss(n))
    angle = torch.arange(2 * n, dtype=torch.float64) * math.pi / n
    ring = torch.stack([angle.cos(), angle.sin()], -1) * torch.sqrt(1 - nodes.square()).view(-1, 1, 1)
    z = torch.cat([ring, nodes.view(-1, 1, 1).expand(-1, 2 * n, 1)], -1)
    return z.flatten(0, 1), (weights * math.pi / n).repeat_interleave(2 * n)


def around(ball: Ball, at: Tensor, far: float = 9.0, n: int = 150) -> tuple[Tensor, Tensor]:
    """The disc in polar coordinates about a point of its own, (4 n^2, 2) and (4 n^2,).

    Its points are those at the distance 2 |v| <= 2 far, and carry how far out they are.
    """
    nodes, weights = (torch.from_numpy(part) for part in np.polynomial.legendre.leggauss(n))
    r, theta = (nodes + 1) * far, torch.arange(4 * n, dtype=torch.float64) * math.pi / (2 * n)
    v = (r / 2).view(-1, 1, 1) * torch.stack([theta.cos(), theta.sin()], -1)
    root = math.sqrt(ball.c.item())
    volume = torch.sinh(root * r) / root * weights * far * math.pi / (2 * n)
    return ball.wrap(v.flatten(0, 1), at), volume.repeat_interleave(4 * n)
