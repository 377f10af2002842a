"""Sentences of different lengths, word by word: the first of each, the second of each, and so on, without padding."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from elboroom.core.problem import Problem
from elboroom.core.vocabulary import PAD


@dataclass(frozen=True)
class Packing:
    """Where the tokens of a padded batch lie when sentences, longest first, are laid out step by step.

    `sizes[t]` sentences are longer than t. Those of a step are rows 0 .. sizes[t] - 1 of the step before it, so a
    recurrent net works on a shrinking slice of its state and no pad is ever read.
    """

    sizes: list[int]  # sentences at each step
    order: Tensor  # which sentence of the batch stands in which place, (B,)
    place: Tensor  # the place of every token, (n,)
    step: Tensor  # and its step, (n,)
    width: int  # steps of the padded batch that these sentences are part of

    @classmethod
    def of(cls, lengths: Tensor, width: int = 0) -> Packing:
        """For sentences of these lengths, (B,), of a batch padded to `width`, which is the longest of them if left out."""
        lengths, order = lengths.sort(descending=True, stable=True)
        steps = torch.arange(int(lengths[0]), device=lengths.device)
        step, place = (steps.unsqueeze(1) < lengths).nonzero(as_tuple=True)  # (n,) each, step after step
        sizes = step.bincount().tolist()
        if not sizes or sizes[0] < len(lengths):
            raise Problem("a sentence has no tokens; every row must begin with <s> and end with </s>")
        return cls(sizes, order, place, step, max(width, len(sizes)))

    @cached_property
    def sentence(self) -> Tensor:
        """The row of the batch that every token is of, (n,)."""
        return self.order[self.place]

    @property
    def count(self) -> int:
        """How many tokens there are, n."""
        return len(self.step)

    def take(self, padded: Tensor) -> Tensor:
        """The tokens of a padded batch: (B, L, ...) -> (n, ...)."""
        return padded.flatten(0, 1).index_select(0, self.sentence * padded.shape[1] + self.step)

    def spread(self, packed: Tensor) -> Tensor:
        """The padded batch of these tokens, zeros where there is none: (n, ...) -> (B, longest, ...)."""
        rows, length = self.sizes[0], len(self.sizes)
        zeros = packed.new_zeros(rows * length, *packed.shape[1:])
        return zeros.index_add(0, self.sentence * length + self.step, packed).view(rows, length, *packed.shape[1:])

    def total(self, packed: Tensor) -> Tensor:
        """Sums over the tokens of a sentence: (n, ...) -> (B, ...)."""
        zeros = packed.new_zeros(self.sizes[0], *packed.shape[1:])
        return zeros.index_add(0, self.sentence, packed)

    @cached_property
    def _starts(self) -> Tensor:
        """Where each step begins, (steps,)."""
        sizes = torch.tensor(self.sizes, device=self.step.device)
        return sizes.cumsum(0) - sizes

    @cached_property
    def _lengths(self) -> Tensor:
        """The lengths, longest first, (B,)."""
        return self.place.bincount()

    def last(self, packed: Tensor) -> Tensor:
        """What stands at the last token of each sentence of the batch: (n, ...) -> (B, ...)."""
        places = torch.arange(self.sizes[0], device=self.order.device)
        return packed.index_select(0, (self._starts[self._lengths - 1] + places)[self.order.argsort()])

    def backwards(self, packed: Tensor) -> Tensor:
        """The same with every sentence read from its end: (n, ...) -> (n, ...)."""
        return packed.index_select(0, self._starts[self._lengths[self.place] - 1 - self.step] + self.place)


def lengths_of(x: Tensor) -> Tensor:
    """How many tokens stand in each row before its padding: (B, L) -> (B,)."""
    return (x != PAD).sum(1)
