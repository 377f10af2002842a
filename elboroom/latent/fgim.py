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
HALVINGS = 10  # of the last step


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

    Each code takes the smallest step size that gets there, or where none does the one that gets nearest. Its last step ends
    where the classifier is just sure: on the far side of a boundary the gradient vanishes, so a size that gets there at all
    may overshoot by far. The loss is a sum over examples, so what becomes of one does not depend on the others. Nothing is
    worked out for what has got there, nor for larger step sizes from the same code. log_p: (n, J) -> (n,).
    """
    sizes = torch.tensor(sorted(steps), dtype=z.dtype, device=z.device)
    shape = (len(sizes), len(z))
    now = z.detach().repeat(len(sizes), 1)  # (S B, J)
    before = now.clone()
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
        before[going] = now[going]
        now[going] += sizes[going // max(1, len(z))].unsqueeze(1) * uphill[goes]
    nearest = found.view(shape).argmax(0)
    best = torch.where(done.any(0), done.int().argmax(0), nearest)  # the first that is done, (B,)
    row = torch.arange(len(z), device=z.device)
    last, codes = (each.view(*shape, -1)[best, row] for each in (before, now))
    codes = torch.where(done[best, row].unsqueeze(1), just_sure(last, codes, log_p, sure), codes)
    return Descent(codes, sizes[best], done[best, row])


@torch.no_grad()
def just_sure(start: Tensor, end: Tensor, log_p: Callable[[Tensor], Tensor], sure: float) -> Tensor:
    """On the way from `start` to an `end` of which the classifier is sure, the first point of which it is; by bisection."""
    low, high = start, end
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        enough = (log_p(middle) >= math.log(sure)).unsqueeze(1)
        low, high = torch.where(enough, low, middle), torch.where(enough, middle, high)
    return high
