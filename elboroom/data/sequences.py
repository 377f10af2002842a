"""Sequences beside x: contexts and paired targets as tokens. A turn of a context ends in </s>, as a sentence does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elboroom.data.stores import Ragged, runs
from elboroom.data.tokens import END, PAD, START, Tokeniser

Ints = NDArray[np.int64]

CONTEXT, TARGET = "context", "target"
SEQUENCES = (CONTEXT, TARGET)
SEPARATOR = END  # between two turns


@dataclass(frozen=True)
class AboutSequence:
    """What a model needs to know of a sequence beside x."""

    size: int = 0  # of its vocabulary
    longest: int = 0  # the most tokens of one, its end counted
    shared: bool = True  # whether its ids are those of x
    turns: int = field(default=1, repr=False)  # the most turns of one

    @staticmethod
    def from_json(entry: Mapping[str, Any]) -> AboutSequence:
        """The same, read back from a plain dict; its sizes are whole numbers."""
        sizes = {name: int(entry[name]) for name in ("size", "longest", "turns") if name in entry}
        if min(sizes.values(), default=0) < 0:
            raise ValueError("a size is too small")
        return AboutSequence(**{**entry, "shared": bool(entry.get("shared", True)), **sizes})


@dataclass(frozen=True, eq=False)
class Beside:
    """A sequence for every example: where its ids lie, and what made them."""

    store: Ragged
    tokeniser: Tokeniser | None
    shared: bool = True
    most: int = 1  # turns of one

    @property
    def about(self) -> AboutSequence:
        """What a model needs to know of it."""
        longest = int(self.store.lengths(np.arange(len(self.store))).max(initial=0))
        return AboutSequence(self.tokeniser.size if self.tokeniser else 0, longest, self.shared, self.most)

    def turns(self, index: Ints) -> list[list[str]]:
        """The turns of these as text, decoded; those of a target are one."""
        assert self.tokeniser is not None
        rows = (turns_of(row) for row in self.store.take(index).tolist())
        return [[self.tokeniser.decode(turn) for turn in turns] for turns in rows]


def turns_of(ids: Iterable[Any]) -> list[list[int]]:
    """The turns of a row of ids: what lies before each </s>; an empty context has none."""
    inside = (int(i) for i in ids if int(i) not in (PAD, START))
    return [list(turn) for ends, turn in groupby(inside, lambda i: i == SEPARATOR) if not ends]


def alternating(turns: Sequence[str]) -> list[str]:
    """Turns without the blank ones; what one speaker says before and after the other's silence is one turn."""
    said = ((at % 2, turn.strip()) for at, turn in enumerate(turns) if turn.strip())
    return [" ".join(turn for _, turn in mine) for _, mine in groupby(said, itemgetter(0))]


@dataclass(frozen=True, eq=False)
class Turns:
    """Sequences as they were read: their words as places in the types of a corpus, end to end."""

    ids: NDArray[np.int32]
    offsets: Ints  # where each turn begins and the last ends, (T + 1,)
    rows: Ints  # which is the first turn of each example, (N + 1,)

    @property
    def most(self) -> int:
        """The most turns of one example."""
        return int(np.diff(self.rows).max(initial=1))

    @property
    def empty(self) -> int:
        """How many examples have no turn."""
        return int((np.diff(self.rows) == 0).sum())

    def of(self, index: Ints) -> Ints:
        """The turns of these examples."""
        return runs(self.rows[:-1][index], np.diff(self.rows)[index])

    def joined(self, tokens: NDArray[np.int32], offsets: Ints) -> Ragged:
        """All turns, in these tokens, as one sequence for each example, with a mark between two turns."""
        counts, last = np.diff(offsets), np.zeros(len(offsets) - 1, bool)
        last[self.rows[1:][np.diff(self.rows) > 0] - 1] = True
        ends = np.concatenate([[0], np.cumsum(counts + ~last)])
        ids = np.full(ends[-1], SEPARATOR, np.int32)
        ids[runs(ends[:-1], counts)] = tokens
        return Ragged(ids, ends[self.rows])
