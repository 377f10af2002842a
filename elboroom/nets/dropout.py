"""Dropout of sentences: masks drawn for the global batch and sliced, so that two processes see what one would."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from elboroom.core import ranks

_LEVELS = 1 << 16  # a probability is rounded to a multiple of 1 / 65536


def kept(rows: int, length: int, width: int, p: float, like: Tensor, copies: int = 1) -> Tensor:
    """A mask that is 0 with probability p and 1 / (1 - p) otherwise, (copies * rows, length, width).

    Four of its values are read off one random number: Bernoulli draws, one by one, take longer than a layer.
    """
    drop = round(p * _LEVELS)
    whole = (copies, rows * ranks.world(), longest(length, like), width)
    count = whole[0] * whole[1] * whole[2] * whole[3]
    bits = torch.empty(-(-count // 4), dtype=torch.int64, device=like.device).random_(-(1 << 63), None)
    stay = bits.view(torch.int16)[:count] >= drop - _LEVELS // 2
    mine = stay.view(whole)[:, ranks.rank() * rows : (ranks.rank() + 1) * rows, :length].flatten(0, 1)
    return mine.to(like.dtype).mul_(_LEVELS / (_LEVELS - drop))


def longest(length: int, like: Tensor) -> int:
    """The longest of the lengths that the processes ask for, so that all draw the same noise."""
    if ranks.world() == 1:
        return length
    found = torch.tensor(length, device=like.device)
    dist.all_reduce(found, op=dist.ReduceOp.MAX)
    return int(found)
