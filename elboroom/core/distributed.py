"""Ranks: what noise and batch-wide quantities need to know of the other processes of a data-parallel run.

With one process every function here is the identity, or plain `torch.randn`.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def world() -> int:
    """How many processes share the global batch."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Which of them this is."""
    return dist.get_rank() if world() > 1 else 0


class _Gather(torch.autograd.Function):
    """Concatenation over ranks; its backward adds what every rank sends to this one's rows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.rows = x.shape[0]
        parts = [torch.empty_like(x) for _ in range(world())]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        grad = grads[0].clone(memory_format=torch.contiguous_format)  # autograd may hand the same tensor to others
        dist.all_reduce(grad)
        return grad[rank() * ctx.rows : (rank() + 1) * ctx.rows]


def gather(x: Tensor) -> Tensor:
    """The rows of all ranks, (B, ...) -> (world * B, ...), with gradients.

    Together with gradients that are averaged over ranks, a term of gathered codes has the gradient of one process.
    """
    return x if world() == 1 else _Gather.apply(x)  # type: ignore[no-untyped-call]


def mean(x: Tensor) -> Tensor:
    """The mean over ranks of a rank's value; the gradient is that of the rank's own value."""
    if world() == 1:
        return x
    total = x.detach().clone()
    dist.all_reduce(total)
    return x + (total / world() - x.detach())


def normal(shape: tuple[int, ...], like: Tensor, rows: int) -> Tensor:
    """Standard normal noise, drawn for the global batch and sliced along dimension `rows`: 2 ranks see what 1 would."""
    return _sliced(torch.randn, shape, like, rows)


def uniform(shape: tuple[int, ...], like: Tensor, rows: int) -> Tensor:
    """Uniform noise on [0, 1), drawn for the global batch and sliced along dimension `rows`."""
    return _sliced(torch.rand, shape, like, rows)


def _sliced(make: Any, shape: tuple[int, ...], like: Tensor, rows: int) -> Tensor:
    size = shape[rows]
    whole = (*shape[:rows], size * world(), *shape[rows + 1 :])
    noise: Tensor = make(whole, dtype=like.dtype, device=like.device)
    return noise if world() == 1 else noise.narrow(rows, rank() * size, size)
