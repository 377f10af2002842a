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
