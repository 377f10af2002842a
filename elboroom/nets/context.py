"""The encoder of contexts: of one sentence, or of the turns of a dialogue."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from elboroom.core.batch import Batch, Condition
from elboroom.core.problem import Problem
from elboroom.core.vocabulary import END, PAD, START
from elboroom.nets.fast.packing import Packing
from elboroom.nets.recurrent import Cell, Layer, RecurrentEncoder, Trunk, begin


@dataclass(frozen=True)
class Turns:
    """The turns of contexts, each as a sentence `<s> .. </s>`; a context without any is one turn without words."""

    ids: Tensor  # (N, L)
    counts: Tensor  # turns of each context, (B,)

    @classmethod
    def of(cls, context: Tensor) -> Turns:
        """Rows `<s> turn </s> turn </s> <pad> ..` taken apart, (B, C)."""
        ends = context == END
        counts, row = ends.sum(1), torch.arange(len(context), device=context.device)
        first = counts.cumsum(0) - counts
        number = ends.cumsum(1) - ends.long()  # of the turn that a token is in, (B, C)
        there = context != PAD
        turn, later = (first.unsqueeze(1) + number)[there], (number > 0)[there]
        lengths = turn.bincount(minlength=int(counts.sum()))
        place = torch.arange(len(turn), device=row.device) - (lengths.cumsum(0) - lengths)[turn] + later
        ids = context.new_full((len(lengths), int(place.max()) + 1), PAD)
        ids[:, 0] = START
        ids[turn, place] = context[there]
        return cls(ids, counts)

    @property
    def first(self) -> Tensor:
        """Where the turns of each context begin, (B,)."""
        return self.counts.cumsum(0) - self.counts

    @property
    def last(self) -> Tensor:
        """The last turn of each context, (B,)."""
        return self.counts.cumsum(0) - 1


class ContextEncoder(nn.Module):
    """What nets see of a context: a vector, with the labels that are given before it, and its words as a memory.

    Every turn is read by itself, in both directions: v is read off the last states, and the states are the memory. The
    vector is that of the last turn and what a recurrent net makes of the turns before it, each with whether it was said by
    who speaks next: v_T + r(v_1, .., v_T-1). Of one turn that is v_1, as if there were no dialogue.
    """

    def __init__(
        self,
        cell: Cell,
        vocabulary: int,
        embed: int = 256,
        hidden: int = 256,
        trunk: Trunk = "a",
        turns: int = 1,
        remembers: bool = True,
    ) -> None:
        super().__init__()
        self.words = RecurrentEncoder(cell, vocabulary, hidden, 0, embed, hidden, 1, trunk, both=True)
        self.before = begin(Layer(cell, hidden + 1, hidden), trunk) if turns > 1 else None
        self.remembers, self.width = remembers, hidden  # the width of the vector, labels not counted

    def forward(self, batch: Batch) -> Condition:
        if batch.context is None:
            raise Problem("this model reads a context, and there is none; give it the turns before")
        turns = Turns.of(batch.context)
        v, states, mask = self.words.states(turns.ids)
        vector = v[turns.last]
        if self.before is not None and bool((turns.counts > 1).any()):
            vector = vector + self._turns_before(v, turns)
        vector = vector if batch.u is None else torch.cat([batch.u.to(vector), vector], 1)
        return Condition(vector, *_joined(states, mask, turns)) if self.remembers else Condition(vector)

    def _turns_before(self, v: Tensor, turns: Turns) -> Tensor:
        """r(v_1, .., v_T-1), zero where there is one turn, (B, H)."""
        assert self.before is not None
        several = (turns.counts > 1).nonzero().squeeze(1)
        counts, first = turns.counts[several] - 1, turns.first[several]
        packing = Packing.of(counts)
        which = first[packing.sentence] + packing.step  # the turn of every step, (n,)
        mine = (counts[packing.sentence] - packing.step) % 2  # whether who speaks next said it
        read = self.before(
            torch.cat([v[which], mine.unsqueeze(1).to(v)], 1), packing.sizes, self.before.zeros(len(several), v)
        )
        last = packing.last(read)
        return last.new_zeros(len(turns.counts), last.shape[1]).index_copy(0, several, last)


def _joined(states: Tensor, mask: Tensor, turns: Turns) -> tuple[Tensor, Tensor]:
    """The states of all turns of a context, one after the other: (N, L, M), (N, L) -> (B, C, M), (B, C)."""
    rows = torch.arange(len(turns.counts), device=mask.device).repeat_interleave(turns.counts)
    turn, step = mask.nonzero(as_tuple=True)
    owner = rows[turn]
    counts = owner.bincount(minlength=len(turns.counts))
    place = torch.arange(len(owner), device=mask.device) - (counts.cumsum(0) - counts)[owner]
    memory = states.new_zeros(len(counts), int(counts.max()), states.shape[2])
    there = torch.arange(memory.shape[1], device=mask.device) < counts.unsqueeze(1)
    return memory.index_put((owner, place), states[turn, step]), there
