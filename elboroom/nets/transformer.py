"""The causal transformer as a decoder of sentences.

Blocks normalise before they attend: x += attention(norm x), x += feed-forward(norm x). Positions are sinusoids, so that no
sentence is too long. Pads stand behind the words, where a causal mask lets no word see them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elboroom.core.batch import Memory
from elboroom.core.problem import Problem
from elboroom.nets.attention import CrossAttention
from elboroom.nets.autoregressive import Autoregressive, State
from elboroom.nets.dropout import kept
from elboroom.nets.fast.crossentropy import Head
from elboroom.nets.fast.packing import Packing

PART = 256  # sentences at a time without gradients


class Block(nn.Module):
    """Attention to the words before, what z says, attention to a context, and a feed-forward layer, each added to its input.

    z is one vector, so all attention goes to it, and what comes back is a linear function of it: no queries and keys,
    which would never learn. A context has many.
    """

    def __init__(self, width: int, heads: int, inner: int, code: int, context: int = 0) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.inputs, self.outputs = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.memory = nn.Sequential(nn.Linear(code, width), nn.Linear(width, width)) if code else None
        self.across = CrossAttention(width, heads, context) if context else None
        self.feed = nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))

    def heard(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, (N, heads, T, width / heads) each."""
        three = self.inputs(self.norms[0](x)).unflatten(-1, (3, self.heads, -1))
        query, key, value = three.permute(2, 0, 3, 1, 4)
        return query, key, value

    def say(self, found: Tensor) -> Tensor:
        """What the heads have found, put together: (N, heads, T, width / heads) -> (N, T, width)."""
        out: Tensor = self.outputs(found.transpose(1, 2).flatten(2))
        return out


class Transformer(Autoregressive):
    """Words by a causal transformer. Where z (with u beside it) enters is said by `inject`, joined by "+":

    memory   every block attends to it
    prefix   stands as a word before the first
    add      to every input word, through a linear layer

    Of no latent dimensions this is a language model. With a `memory` of so many features, every block also attends to the
    words of a context. Softmax and input embeddings share their weights if `tied`.
    """

    INJECTIONS = ("memory", "prefix", "add", "memory+add", "prefix+add")

    def __init__(
        self,
        vocabulary: int,
        latent: int,
        given: int = 0,
        width: int = 256,
        layers: int = 3,
        heads: int = 8,
        inner: int = 1024,
        dropout: float = 0.2,
        word_dropout: float = 0.0,
        inject: str = "memory",
        tied: bool = True,
        memory: int = 0,
    ) -> None:
        super().__init__(latent, given, dropout, word_dropout)
        if width % (2 * heads):
            raise Problem(
                f"a transformer of width {width} cannot have {heads} heads; use a multiple of {2 * heads} as width"
            )
        places = inject.split("+") if self.code else []
        self.width, self.heads, self.attends = width, heads, bool(memory)
        self.embedding = nn.Embedding(vocabulary, width)
        self.prefix = nn.Linear(self.code, width) if "prefix" in places else None
        self.added = nn.Linear(self.code, width) if "add" in places else None
        remembered = self.code if "memory" in places else 0
        self.blocks = nn.ModuleList(Block(width, heads, inner, remembered, memory) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = Head(width, vocabulary, bias=False)
        self._initialise(tied)

    def _initialise(self, tied: bool) -> None:
        """Embeddings normal with variance 1 / width, scaled up as inputs; linear layers uniform by Glorot."""
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
        nn.init.normal_(self.embedding.weight, std=self.width**-0.5)
        nn.init.normal_(self.head.weight, std=self.width**-0.5)
        if tied:
            self.head.weight = self.embedding.weight

    @property
    def stack(self) -> list[Block]:
        """The blocks, from words to the softmax."""
        return cast(list[Block], list(self.blocks))

    def run(self, codes: Tensor, tokens: Tensor, packing: Packing, copies: int, memory: Memory | None = None) -> Tensor:
        self.require_memory(memory)
        each = codes.shape[1]
        x = self.laid_out(tokens, packing, copies).repeat_interleave(each, 0)  # (B K, T)
        rows = codes.flatten(0, 1)  # (B K, code)
        part = len(x) if torch.is_grad_enabled() else PART
        seen = None if memory is None else self.look(memory.each(each))
        h = torch.cat(
            [
                self.attend(rows[at : at + part], x[at : at + part], packing.order, copies, _rows_of(seen, at, part))
                for at in range(0, len(x), part)
            ]
        )
        return self.taken(h, packing, each)

    def look(self, memory: Memory) -> list[State]:
        """What each block sees of a memory; nothing where it does not attend to one."""
        return [() if block.across is None else block.across.prepared(memory) for block in self.stack]

    def attend(
        self, rows: Tensor, x: Tensor, order: Tensor, copies: int, seen: Sequence[State] | None = None
    ) -> Tensor:
        """The states after every word of a padded batch: (N, code), (N, T) -> (N, T, width)."""
        h = self.embed(x, rows, 0)
        if self.prefix is not None:
            h = torch.cat([self.prefix(rows).unsqueeze(1), h], 1)
        h = self.mask(h, order, copies)
        for block, memory in zip(self.stack, seen or [()] * len(self.blocks), strict=True):
            query, key, value = block.heard(h)
            found = F.scaled_dot_product_attention(query, key, value, is_causal=True)
            h = h + self.mask(block.say(found), order, copies)
            h = self.rest(block, h, rows, memory, order, copies)
        out: Tensor = self.norm(h if self.prefix is None else h[:, 1:])
        return out

    def rest(self, block: Block, h: Tensor, rows: Tensor, seen: State, order: Tensor | None, copies: int) -> Tensor:
        """A block after its attention to words."""
        if block.memory is not None:
            h = h + self.mask(block.memory(rows).unsqueeze(1).expand_as(h), order, copies)
        if block.across is not None:
            h = h + self.mask(block.across(h, *seen), order, copies)
        return h + self.mask(block.feed(block.norms[1](h)), order, copies)

    def embed(self, x: Tensor, rows: Tensor, at: int) -> Tensor:
        """Words, the first of them at a position, with their sinusoids: (N, T) -> (N, T, width)."""
        half = torch.arange(self.width // 2, device=x.device)
        turns = torch.arange(at, at + x.shape[1], device=x.device).unsqueeze(1) * torch.exp(
            half * (-math.log(10_000) / max(1, self.width // 2 - 1))
        )
        h: Tensor = self.embedding(x) * math.sqrt(self.width)
        h = h + torch.cat([turns.sin(), turns.cos()], 1).to(h.dtype)
        return h if self.added is None else h + self.added(rows).unsqueeze(1)

    def mask(self, h: Tensor, order: Tensor | None, copies: int) -> Tensor:
        """Dropout: (N, T, width) -> (N, T, width), rows in the order of a packing."""
        if order is None or not (self.training and self.dropout):
            return h
        noise = kept(len(h) // copies, h.shape[1], h.shape[2], self.dropout, h, copies)
        return h * noise[order]

    def start(self, z: Tensor, u: Tensor | None = None, memory: Memory | None = None) -> State:
        self.require_memory(memory)
        rows = self.codes(z, u)
        nothing = rows.new_zeros(rows.shape[0], self.heads, 0, self.width // self.heads)
        seen = () if memory is None else [t for tensors in self.look(memory) for t in tensors]
        state: State = (rows, *[nothing] * (2 * len(self.blocks)), *seen)
        return state if self.prefix is None else self.advance(self.prefix(rows).unsqueeze(1), state)[1]

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        at = state[1].shape[2] - int(self.prefix is not None)
        h, state = self.advance(self.embed(tokens.unsqueeze(1), state[0], at), state)
        out: Tensor = self.norm(h.squeeze(1))
        return out, state

    def advance(self, h: Tensor, state: State) -> tuple[Tensor, State]:
        """One more input each, (N, 1, width); the state is the codes, keys and values of every block, then its memory."""
        rows, *memory = state
        looks = 3 if self.attends else 0  # tensors of the memory of a block
        for number, block in enumerate(self.stack):
            query, key, value = block.heard(h)
            key, value = torch.cat([memory[2 * number], key], 2), torch.cat([memory[2 * number + 1], value], 2)
            h = h + block.say(F.scaled_dot_product_attention(query, key, value))
            seen = tuple(memory[2 * len(self.blocks) + looks * number :][:looks])
            h = self.rest(block, h, rows, seen, None, 1)
            memory[2 * number : 2 * number + 2] = key, value
        return h, (rows, *memory)


def _rows_of(seen: Sequence[State] | None, at: int, part: int) -> list[State] | None:
    """Some rows of what the blocks see of a memory."""
    return None if seen is None else [tuple(t[at : at + part] for t in tensors) for tensors in seen]
