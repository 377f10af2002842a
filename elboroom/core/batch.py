"""Batch: what a model is given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from elboroom.core.problem import Problem


class Condition(NamedTuple):
    """What nets see of what is observed beside x."""

    vector: Tensor | None = None  # labels one-hot, side by side, (B, U); a context encoded beside them
    memory: Tensor | None = None  # of a context, (B, L, H)
    mask: Tensor | None = None  # where that holds a word, (B, L)


class Memory(NamedTuple):
    """The words of a context as vectors, and where there is one."""

    states: Tensor  # (B, L, M)
    mask: Tensor  # (B, L)

    @property
    def trimmed(self) -> Memory:
        """As long as the longest context in it: sums over a memory are rounded in blocks, which depend on its length."""
        longest = int(self.mask.any(0).nonzero().max()) + 1
        return self if longest == self.mask.shape[1] else Memory(self.states[:, :longest], self.mask[:, :longest])

    def of(self, order: Tensor) -> Memory:
        """The memory of these rows."""
        return Memory(self.states[order], self.mask[order])

    def repeated(self, copies: int) -> Memory:
        """All rows, and all again, `copies` times."""
        return Memory(self.states.repeat(copies, 1, 1), self.mask.repeat(copies, 1))

    def each(self, copies: int) -> Memory:
        """Every row `copies` times, one after the other."""
        return Memory(self.states.repeat_interleave(copies, 0), self.mask.repeat_interleave(copies, 0))


@dataclass(frozen=True, repr=False)
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
    context: Tensor | None = None  # token ids of what a sentence answers, each turn ending in </s>, padded, (B, C)
    context_lengths: Tensor | None = None  # (B,)
    target: Tensor | None = None  # token ids of the sentence that x is paired with, padded, (B, T)
    target_lengths: Tensor | None = None  # (B,)
    condition: Condition | None = None  # what the nets of a model see beside x, worked out; u is then its vector

    def __repr__(self) -> str:
        shapes = (f"{name} {tuple(t.shape)}" for name, t in vars(self).items() if isinstance(t, Tensor))
        low, high = (self.x.min().item(), self.x.max().item()) if self.x.numel() else (0, 0)
        values = "token ids" if not self.x.is_floating_point() else f"values from {low:.3g} to {high:.3g}"
        return f"Batch of {len(self.x)}: {', '.join(shapes)}; {values}"

    def to(self, device: torch.device) -> Batch:
        """The same batch on another device."""
        moved: dict[str, Any] = {
            name: tensor.to(device, non_blocking=True)
            for name, tensor in vars(self).items()
            if isinstance(tensor, Tensor) and tensor.device != device
        }
        return replace(self, **moved) if moved else self

    def paired(self) -> Batch:
        """The same batch with its targets in the place of x."""
        return self.instead("target")

    def instead(self, name: str) -> Batch:
        """The same batch with the sequence of this name, target or context, in the place of x."""
        x, lengths = getattr(self, name), getattr(self, f"{name}_lengths")
        if x is None:
            said = "paired targets" if name == "target" else "contexts"
            raise Problem(f"this needs {said}, and the data has none; say which column holds them: --{name}-column")
        gone: dict[str, Any] = {name: None, f"{name}_lengths": None}
        return replace(self, x=x, lengths=lengths, **gone)
