"""Points and volumes over which tests integrate."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor


def disc(c: float, far: float = 16.0, n: int = 250) -> tuple[Tensor, Tensor]:
    """The Poincare disc in polar coordinates: dV = sinh(sqrt(c) r) / sqrt(c) dr dtheta; (n^2, 2) and (n^2,)."""
    nodes, weights = (torch.from_numpy(part) for part in np.polynomial.legendre.leggauss(n))
    r, theta = (nodes + 1) * far / 2, torch.arange(n).double() * 2 * math.pi / n
    radius = torch.tanh(math.sqrt(c) * r / 2) / math.sqrt(c)
    grid = radius[:, None, None] * torch.stack([theta.cos(), theta.sin()], -1)  # (n, n, 2)
    volume = torch.sinh(math.sqrt(c) * r) / math.sqrt(c) * weights * far / 2 * (2 * math.pi / n)
    return grid.view(-1, 2), volume[:, None].expand(n, n).reshape(-1)
