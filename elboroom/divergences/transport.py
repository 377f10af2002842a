"""The Wasserstein distance on the line, where sorting solves the transport."""

from __future__ import annotations

import torch
from torch import Tensor


def wasserstein(x: Tensor, y: Tensor) -> Tensor:
    """W_1 of two samples of numbers, (n,) and (m,): mean |x_(i) - y_(i)| for n = m, with gradients; ()."""
    n, m = len(x), len(y)
    # in units of 1/(n m) the quantile functions step at multiples of m and of n
    cuts = torch.cat([torch.arange(1, n + 1) * m, torch.arange(1, m + 1) * n]).sort().values.to(x.device)
    width = torch.diff(cuts, prepend=cuts.new_zeros(1)) / (n * m)
    gap = x.sort().values[(cuts - 1) // m] - y.sort().values[(cuts - 1) // n]
    return (width.to(gap) * gap.abs()).sum()


def frechet(x: Tensor, y: Tensor) -> Tensor:
    """|m - m'|^2 + tr(C + C' - 2 (C C')^1/2): W_2^2 of the Gaussians of two samples, (n, d) and (m, d); ()."""
    x, y = x.double(), y.double()
    c, other = (torch.cov(rows.T).reshape(rows.shape[1], -1) for rows in (x, y))
    values, axes = torch.linalg.eigh(c)
    root = (axes * values.clamp_min(0).sqrt()) @ axes.T
    across = torch.linalg.eigvalsh(root @ other @ root).clamp_min(0).sqrt().sum()
    distance: Tensor = (x.mean(0) - y.mean(0)).square().sum() + c.trace() + other.trace() - 2 * across
    return distance
