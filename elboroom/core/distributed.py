"""Ranks: what noise and batch-wide quantities need to know of the other processes of a data-parallel run.

The parts of a batch that are taken one after the other share it in the same way. With one process and one part every
function here is the identity, or plain `torch.randn`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

_alone = False


@contextmanager
def alone() -> Iterator[None]:
    """Inside, a process sees what it would if there were no other: for what all of them do alike."""
    global _alone
    _alone = True
    try:
        yield
    finally:
        _alone = False


def world() -> int:
    """How many processes share the global batch."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() and not _alone else 1


def rank() -> int:
    """Which of them this is."""
    return dist.get_rank() if world() > 1 else 0


_part = (0, 1)  # which part of a rank's batch is being taken, and of how many


@contextmanager
def part(number: int, of: int) -> Iterator[None]:
    """Inside, noise is that of one part of the batch."""
    global _part
    _part = (number, of)
    try:
        yield
    finally:
        _part = (0, 1)


def share() -> tuple[int, int]:
    """Which share of the global batch is being taken here, and of how many: the parts of each rank in turn."""
    number, of = _part
    return rank() * of + number, world() * of


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
    """Standard normal noise, drawn for the global batch and sliced along dimension `rows`: 2 shares see what 1 would."""
    return _sliced(torch.randn, shape, like, rows)


def uniform(shape: tuple[int, ...], like: Tensor, rows: int) -> Tensor:
    """Uniform noise on [0, 1), drawn for the global batch and sliced along dimension `rows`."""
    return _sliced(torch.rand, shape, like, rows)


def _sliced(make: Any, shape: tuple[int, ...], like: Tensor, rows: int) -> Tensor:
    size, (number, of) = shape[rows], share()
    whole = (*shape[:rows], size * of, *shape[rows + 1 :])
    noise: Tensor = make(whole, dtype=like.dtype, device=like.device)
    return noise if of == 1 else noise.narrow(rows, number * size, size)
