"""Dropout of sentences: masks drawn for the global batch and sliced, so that two processes see what one would."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from elboroom.core import distributed

_TWOS = 0x0202020202020202


def kept(
    rows: int,
    length: int,
    width: int,
    p: float,
    like: Tensor,
    copies: int = 1,
    take: Callable[[Tensor], Tensor] = lambda mask: mask,
) -> Tensor:
    """A mask that is 0 with probability p and 1 / (1 - p) otherwise, of (copies * rows, length, width) what is taken.

    Several of its values are read off one random number: Bernoulli draws, one by one, take longer than a layer. p is
    a multiple of 1 / 256, or rounded to one of 1 / 65536.
    """
    kind, levels = (torch.int8, 1 << 8) if (p * 256).is_integer() else (torch.int16, 1 << 16)
    share, of = distributed.share()
    whole = (copies, rows * of, longest(length, like), -(-width * kind.itemsize // 8))
    numbers = torch.empty(whole, dtype=torch.int64, device=like.device).random_(-(1 << 63), None)
    mine = take(numbers[:, share * rows : (share + 1) * rows, :length].flatten(0, 1))
    if p == 0.5:  # one bit of every byte, which is 0 or 2 already
        return mine.bitwise_and(_TWOS).view(kind)[..., :width].to(like.dtype)
    drop = round(p * levels)
    stay = mine.view(kind)[..., :width] >= drop - levels // 2
    return stay.to(like.dtype).mul_(levels / (levels - drop))


def longest(length: int, like: Tensor) -> int:
    """The longest of the lengths that the processes ask for, so that all draw the same noise."""
    if distributed.world() == 1:
        return length
    found = torch.tensor(length, device=like.device)
    dist.all_reduce(found, op=dist.ReduceOp.MAX)
    return int(found)
