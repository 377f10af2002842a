"""I(x; z) over a whole split, for evaluation and for watches: no batch can show more than the log of its size."""

from __future__ import annotations

import math

import torch
from torch import Tensor


@torch.no_grad()
def information(loc: Tensor, logvar: Tensor, noise: Tensor, chunk: int = 1000) -> Tensor:
    """log q(z|x_i) - log 1/M sum_m q(z|x_m) at z = mu_i + sigma_i noise_i for M diagonal Gaussians, (M,).

    Its mean is I(x; z), q(z) being the mixture of all M: it cannot exceed log M.
    """
    loc, logvar = loc.double(), logvar.double()  # (M, J)
    z, precision = loc + (0.5 * logvar).exp() * noise, (-logvar).exp()
    # log q(z_i | x_m), as one matrix product of (z^2, z, 1) with the natural parameters of every x_m
    natural = torch.cat([-0.5 * precision, loc * precision], 1)
    constant = -0.5 * (loc.square() * precision + logvar + math.log(2 * math.pi)).sum(1)
    values, m = [], len(loc)
    for start in range(0, m, chunk):
        part = z[start : start + chunk]
        pairs = torch.cat([part.square(), part], 1) @ natural.T + constant  # (chunk, M)
        rows = torch.arange(len(part), device=z.device)
        values.append(pairs[rows, start + rows] - torch.logsumexp(pairs, 1) + math.log(m))
    return torch.cat(values)
