"""Causal dilated convolutions as a decoder of sentences, after Yang et al. 2017, whose depth and widths are not at hand.

A block adds to its input what a bottleneck makes of it, h += W2 relu(conv(relu(W1 relu(h)))), where the convolution of a word
looks at it and at the words d and 2 d before it; d doubles from block to block. Five blocks see 62 words back. How far a
decoder sees is what it can do without z: fewer blocks leave more to the code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elboroom.core.batch import Memory
from elboroom.nets.autoregressive import Autoregressive, State
from elboroom.nets.dropout import kept
from elboroom.nets.fast.crossentropy import Head
from elboroom.nets.fast.packing import Packing

KERNEL = 3  # words that a convolution looks at


class Block(nn.Module):
    """h + W2 relu(causal convolution of relu(W1 relu(h))), the convolution dilated."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.inner, self.dilation, self.past = max(1, width // 2), dilation, (KERNEL - 1) * dilation
        self.narrow, self.widen = nn.Linear(width, self.inner), nn.Linear(self.inner, width)
        self.look = nn.Conv1d(self.inner, self.inner, KERNEL, dilation=dilation)

    def forward(self, h: Tensor) -> Tensor:
        """All words of padded sentences at once, (N, T, width)."""
        seen = F.relu(self.narrow(F.relu(h))).transpose(1, 2)  # (N, inner, T)
        out: Tensor = h + self.widen(F.relu(self.look(F.pad(seen, (self.past, 0)))).transpose(1, 2))
        return out

    def step(self, h: Tensor, past: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """One more word, (N, width), after the past ones, each (N, inner), which are handed on and not copied."""
        seen = [*past, F.relu(self.narrow(F.relu(h)))]
        found = F.linear(torch.stack(seen[:: self.dilation], 2).flatten(1), self.look.weight.flatten(1), self.look.bias)
        return h + self.widen(F.relu(found)), seen[1:]


class DilatedDecoder(Autoregressive):
    """Words by causal dilated convolutions; z, with u beside it, stands beside every input word.

    Of no latent dimensions this is a language model.
    """

    INJECTIONS = ("concat",)

    def __init__(
        self,
        vocabulary: int,
        latent: int,
        given: int = 0,
        embed: int = 256,
        hidden: int = 256,
        layers: int = 5,
        dropout: float = 0.5,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__(latent, given, dropout, word_dropout)
        self.embedding = nn.Embedding(vocabulary, embed)
        self.enter = nn.Linear(embed + self.code, hidden)
        self.blocks = nn.ModuleList(Block(hidden, 2**number) for number in range(layers))
        self.head = Head(hidden, vocabulary)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        nn.init.uniform_(self.head.weight, -0.1, 0.1)

    @property
    def stack(self) -> list[Block]:
        """The blocks, from words to the softmax."""
        return cast(list[Block], list(self.blocks))

    def run(self, codes: Tensor, tokens: Tensor, packing: Packing, copies: int, memory: Memory | None = None) -> Tensor:
        each = codes.shape[1]
        x = self.laid_out(tokens, packing, copies).repeat_interleave(each, 0)  # (B K, T)
        words = self.mask(self.embedding(x), packing.order, copies)
        h = self.enter(torch.cat([words, codes.flatten(0, 1).unsqueeze(1).expand(-1, x.shape[1], -1)], 2))
        for block in self.blocks:
            h = block(h)
        return self.taken(self.mask(F.relu(h), packing.order, copies), packing, each)

    def mask(self, h: Tensor, order: Tensor, copies: int) -> Tensor:
        """Dropout: (N, T, width) -> (N, T, width), rows in the order of a packing."""
        if not (self.training and self.dropout):
            return h
        return h * kept(len(h) // copies, h.shape[1], h.shape[2], self.dropout, h, copies)[order]

    def start(self, z: Tensor, u: Tensor | None = None, memory: Memory | None = None) -> State:
        rows = self.codes(z, u)
        silence = (rows.new_zeros(rows.shape[0], block.inner) for block in self.stack)
        return (
            rows,
            *(words for block, none in zip(self.stack, silence, strict=True) for words in [none] * block.past),
        )

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        rows, *pasts = state
        h = self.enter(torch.cat([self.embedding(tokens), rows], 1))
        done = 0
        for block in self.stack:
            h, pasts[done : done + block.past] = block.step(h, pasts[done : done + block.past])
            done += block.past
        return F.relu(h), (rows, *pasts)
