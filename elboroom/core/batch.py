"""Batch: what a model is given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """What a model is given: x, and what is observed beside it."""

    x: Tensor  # pixels in [0, 1] of shape (B, C, H, W), real vectors (B, D), or token ids (B, T)
    u: Tensor | None = None  # labels or context, (B, U)
    lengths: Tensor | None = None  # text lengths, (B,)
    index: Tensor | None = None  # rows in the data set, (B,)
    step: int = 0
    y: Tensor | None = (
        None  # all labels as whole numbers in the order of the data's columns, (B, K); terms predict them
    )
    context: Tensor | None = None  # token ids of what a sentence answers, padded, (B, C)
    context_lengths: Tensor | None = None  # (B,)

    def to(self, device: torch.device) -> Batch:
        """The same batch on another device."""
        moved: dict[str, Any] = {
            name: tensor.to(device, non_blocking=True)
            for name, tensor in vars(self).items()
            if isinstance(tensor, Tensor) and tensor.device != device
        }
        return replace(self, **moved) if moved else self
