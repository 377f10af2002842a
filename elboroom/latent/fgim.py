"""Fast gradient iterative modification: a code moves down the loss of a classifier until that is sure (Wang et al. 2019)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

STEPS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # in units of the variance of codes
ITERATIONS = 30
SURE = 0.999


class Descent(NamedTuple):
    """Codes, (B, J), the step size that each was reached with, and whether the classifier is sure of it, (B,)."""

    codes: Tensor
    steps: Tensor
    sure: Tensor


def fgim(
    z: Tensor,
    log_p: Callable[[Tensor], Tensor],
    steps: Sequence[float] = STEPS,
    iterations: int = ITERATIONS,
    sure: float = SURE,
) -> Descent:
    """z - w grad of -log p(z), again and again until p is at least `sure`; all step sizes w are tried at once.

    Each code takes the smallest step size that gets there, or where none does the one that gets nearest. The loss is a sum
    over examples, so what becomes of one does not depend on the others. Nothing is worked out for what has got there, nor
    for larger step sizes from the same code. log_p: (n, J) -> (n,).
    """
    sizes = torch.tensor(sorted(steps), dtype=z.dtype, device=z.device)
    shape = (len(sizes), len(z))
    now = z.detach().repeat(len(sizes), 1)  # (S B, J)
    found = z.new_empty(len(now))
    going = torch.arange(len(now), device=z.device)  # those that are not there yet
    for left in range(iterations, -1, -1):
        with torch.enable_grad():
            here = now[going].requires_grad_(True)
            value = log_p(here)
            (uphill,) = torch.autograd.grad(value.sum(), here)
        found[going] = value.detach().to(found)
        done = (found >= math.log(sure)).view(shape)
        goes = ~done.cummax(0).values.flatten()[going]
        going = going[goes]
        if not left or not len(going):
            break
        now[going] += sizes[going // max(1, len(z))].unsqueeze(1) * uphill[goes]
    nearest = found.view(shape).argmax(0)
    best = torch.where(done.any(0), done.int().argmax(0), nearest)  # the first that is done, (B,)
    row = torch.arange(len(z), device=z.device)
    return Descent(now.view(*shape, -1)[best, row], sizes[best], done[best, row])
