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
    over examples, so what becomes of one does not depend on the others. log_p: (n, J) -> (n,).
    """
    sizes = torch.tensor(sorted(steps), dtype=z.dtype, device=z.device).view(-1, 1, 1)
    now = z.detach().expand(len(sizes), *z.shape).clone()  # (S, B, J)
    for left in range(iterations, -1, -1):
        with torch.enable_grad():
            now.requires_grad_(True)
            found = log_p(now.flatten(0, 1)).view(now.shape[:2])
            (uphill,) = torch.autograd.grad(found.sum(), now)
        found, now = found.detach(), now.detach()
        done = found >= math.log(sure)  # (S, B)
        if not left or bool(done.all()):
            break
        now = torch.where(done.unsqueeze(-1), now, now + sizes * uphill)
    best = torch.where(done.any(0), done.int().argmax(0), found.argmax(0))  # the first that is done, (B,)
    row = torch.arange(len(z), device=z.device)
    return Descent(now[best, row], sizes.flatten()[best], done[best, row])
