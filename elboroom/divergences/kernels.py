"""Kernels between two samples, and MMD^2 from kernel matrices: torch functions with gradients, leading axes allowed.

MMD^2 of each dimension on its own is the same call with samples of shape (D, n, 1).
"""

from __future__ import annotations

import torch
from torch import Tensor

from elboroom.core.problem import Problem

SCALES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def square_distances(x: Tensor, y: Tensor) -> Tensor:
    """||x_i - y_j||^2, (..., n, m)."""
    centre = y.detach().mean(-2, keepdim=True)  # near the origin, less is lost in the difference of squares
    x, y = x - centre, y - centre
    across = x @ y.transpose(-1, -2)  # (..., n, m)
    return (x.square().sum(-1).unsqueeze(-1) + y.square().sum(-1).unsqueeze(-2) - 2 * across).clamp_min(0)


def rbf(x: Tensor, y: Tensor, h: float | Tensor) -> Tensor:
    """exp(-r^2 / (2 h^2)), (..., n, m)."""
    return torch.exp(-square_distances(x, y) / (2 * h**2))


def imq(x: Tensor, y: Tensor, c: float | Tensor) -> Tensor:
    """The inverse multiquadric C / (C + r^2), (..., n, m)."""
    return c / (c + square_distances(x, y))


def imq_scales(x: Tensor, y: Tensor, c: float | Tensor, scales: tuple[float, ...] = SCALES) -> Tensor:
    """The sum of sC / (sC + r^2) over scales s, (..., n, m); C = 2 J sigma^2 suits a prior N(0, sigma^2 I)."""
    r2 = square_distances(x, y)
    total = torch.zeros_like(r2)
    for s in scales:
        total = total + s * c / (s * c + r2)
    return total


@torch.no_grad()
def median_distance(x: Tensor, y: Tensor, most: int = 1000, seed: int = 0) -> Tensor:
    """The median distance of two different points of the pooled sample, of `most` of them if there are more; ()."""
    pooled = torch.cat([x, y])
    if len(pooled) > most:
        order = torch.randperm(len(pooled), generator=torch.Generator().manual_seed(seed))
        pooled = pooled[order[:most].to(pooled.device)]
    distances = torch.pdist(pooled)
    distances = distances[distances > 0].sort().values
    if not len(distances):
        raise Problem("all points are equal, so the bandwidth of a kernel cannot be computed; set it")
    return (distances[(len(distances) - 1) // 2] + distances[len(distances) // 2]) / 2


def mmd2_v(kxx: Tensor, kyy: Tensor, kxy: Tensor) -> Tensor:
    """MMD^2, biased: mean k(x, x') + mean k(y, y') - 2 mean k(x, y), diagonals in; never negative, (...)."""
    return kxx.mean((-2, -1)) + kyy.mean((-2, -1)) - 2 * kxy.mean((-2, -1))


def mmd2_u(kxx: Tensor, kyy: Tensor, kxy: Tensor) -> Tensor:
    """MMD^2, unbiased: means without the diagonals within, a plain mean across (as WAE has it); may be negative, (...)."""
    return off_diagonal_mean(kxx) + off_diagonal_mean(kyy) - 2 * kxy.mean((-2, -1))


def off_diagonal_mean(k: Tensor) -> Tensor:
    """1/(n (n-1)) sum over i != j of k_ij, (...)."""
    n = k.shape[-1]
    return (k.sum((-2, -1)) - k.diagonal(dim1=-2, dim2=-1).sum(-1)) / (n * (n - 1))
