"""Dropout of sentences: masks drawn for the global batch and sliced, so that two processes see what one would."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from elboroom.core import ranks


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
    a multiple of 1 / 256, as 1/2 is, or rounded to one of 1 / 65536.
    """
    kind, levels = (torch.int8, 1 << 8) if (p * 256).is_integer() else (torch.int16, 1 << 16)
    drop = round(p * levels)
    whole = (copies, rows * ranks.world(), longest(length, like), width)
    count = whole[0] * whole[1] * whole[2] * whole[3]
    numbers = torch.empty(-(-count // (8 // kind.itemsize)), dtype=torch.int64, device=like.device)
    stay = numbers.random_(-(1 << 63), None).view(kind)[:count] >= drop - levels // 2
    mine = stay.view(whole)[:, ranks.rank() * rows : (ranks.rank() + 1) * rows, :length].flatten(0, 1)
    return take(mine).to(like.dtype).mul_(levels / (levels - drop))


def longest(length: int, like: Tensor) -> int:
    """The longest of the lengths that the processes ask for, so that all draw the same noise."""
    if ranks.world() == 1:
        return length
    found = torch.tensor(length, device=like.device)
    dist.all_reduce(found, op=dist.ReduceOp.MAX)
    return int(found)
