"""Noise on sentences: words shuffled, dropped, blanked, substituted, for encoders that are to see through it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.problem import Problem
from elboroom.core.vocabulary import END, PAD, START, UNK
from elboroom.nets.dropout import longest
from elboroom.nets.fast.packing import lengths_of

MARKS = 4  # ids below this are no words


class Corruption(nn.Module):
    """Sentences with noise, in this order; in training only. <s> and </s> stay where they are.

    shuffle     words move, none by more than so many places
    drop        words are left out with this probability; the others close up, so that no pad stands among them
    blank       words become <unk>
    substitute  words become other words, all equally likely
    """

    def __init__(
        self, drop: float = 0.0, blank: float = 0.0, substitute: float = 0.0, shuffle: int = 0, vocabulary: int = 0
    ) -> None:
        super().__init__()
        for name, p in (("drop", drop), ("blank", blank), ("substitute", substitute)):
            if not 0 <= p < 1:
                raise Problem(f"the probability to {name} a word must be at least 0 and below 1, not {p:g}")
        if shuffle < 0:
            raise Problem(f"words must be shuffled by at least 0 places, not {shuffle}")
        if substitute and vocabulary <= MARKS:
            raise Problem("to substitute words, give a vocabulary to draw them from")
        self.vocabulary, self.shuffle = vocabulary, shuffle
        self.drop, self.blank, self.substitute = drop, blank, substitute

    def forward(self, x: Tensor) -> Tensor:
        """(B, L) -> (B, at most L)."""
        if not self.training:
            return x
        x = shuffled(x, self.shuffle) if self.shuffle else x
        x = dropped(x, self.drop) if self.drop else x
        x = torch.where(chance(x, self.blank), UNK, x) if self.blank else x
        if self.substitute:
            others = MARKS + (noise(x) * (self.vocabulary - MARKS)).long()
            x = torch.where(chance(x, self.substitute), others, x)
        return (
            x[:, : int(lengths_of(x).max())] if self.drop else x
        )  # at last: noise is of one shape in all parts of a batch

    def extra_repr(self) -> str:
        return f"shuffle={self.shuffle}, drop={self.drop:g}, blank={self.blank:g}, substitute={self.substitute:g}"


class Corrupted(nn.Module):
    """q(z | corrupted x): a posterior that is shown noisy sentences in training."""

    def __init__(self, posterior: nn.Module, corruption: Corruption) -> None:
        super().__init__()
        self.posterior, self.corruption = posterior, corruption

    @property
    def family(self) -> Any:
        """The family of the posterior."""
        return self.posterior.family

    def forward(self, batch: Batch) -> Any:
        x = self.corruption(batch.x)
        lengths = None if batch.lengths is None else lengths_of(x) - 1
        return self.posterior(replace(batch, x=x, lengths=lengths))


def noise(x: Tensor) -> Tensor:
    """Uniform noise for every token, (B, L), in single precision."""
    like = torch.empty(0, device=x.device)
    return distributed.uniform((len(x), longest(x.shape[1], x)), like, 0)[:, : x.shape[1]]


def words(x: Tensor) -> Tensor:
    """Where no mark but <unk> stands, (B, L)."""
    return (x != PAD) & (x != START) & (x != END)


def chance(x: Tensor, p: float) -> Tensor:
    """Words, each with probability p, (B, L)."""
    return words(x) & (noise(x) < p)


def shuffled(x: Tensor, most: int) -> Tensor:
    """The words in the order of i + U(0, most + 1): none is passed by one that was more than `most` places before it."""
    place = torch.arange(x.shape[1], device=x.device) + words(x) * noise(x) * (most + 1)
    place = torch.where(words(x) | (x == START), place, float(x.shape[1] + most + 1))
    return x.gather(1, place.argsort(dim=1, stable=True))


def dropped(x: Tensor, p: float) -> Tensor:
    """The words that are left, then padding."""
    gone = chance(x, p)
    return x.masked_fill(gone, PAD).gather(1, (gone | (x == PAD)).to(torch.uint8).argsort(dim=1, stable=True))
