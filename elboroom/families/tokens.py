"""The likelihood of sentences: p(x|z,u) = prod_t p(x_t | x_<t, z, u)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elboroom.core.batch import Batch, Memory
from elboroom.core.law import Law
from elboroom.core.problem import Problem
from elboroom.core.vocabulary import PAD
from elboroom.families.decoding import Decoding, Sampling, State


class Tokens(Law):
    """Sentences given codes z (K, B, d). Lazy: nothing is computed before it is asked for.

    A sentence is a row <s> w_1 .. w_T </s> <pad> .. of ids; its T + 1 predicted tokens are the words and </s>.
    """

    has_mean = False

    def __init__(self, decoder: Any, z: Tensor, u: Tensor | None = None, memory: Memory | None = None) -> None:
        self.decoder, self.z, self.u, self.memory = decoder, z, u, memory
        super().__init__(z.shape[:2], torch.Size())

    def log_prob(self, x: Tensor) -> Tensor:
        """log p(x|z), nats, summed over predicted tokens: (B, L) -> (K, B)."""
        if hasattr(self.decoder, "log_prob"):
            seen = () if self.memory is None else (self.memory,)  # a decoder of a user need not know of one
            log_prob: Tensor = self.decoder.log_prob(self.z, x, self.u, *seen)
            return log_prob
        return teacher_forced(self.decoder, self.z, x, self.u)

    def logits(self, x: Tensor) -> Tensor:
        """Of every next word, teacher forced: (B, L) -> (K, B, L - 1, V); where a sentence has ended they mean nothing."""
        if not hasattr(self.decoder, "hidden"):
            raise Problem(
                "this needs the logits of every next word, which this decoder does not tell; it has no hidden"
            )
        z, u = flattened(self.z, self.u)
        seen = () if self.memory is None else (self.memory.repeated(len(self.z)),)
        h = self.decoder.hidden(z, x[:, :-1].repeat(len(self.z), 1), u, *seen)
        logits: Tensor = self.decoder.head(h)
        return logits.view(*self.z.shape[:2], *logits.shape[1:])

    def decode(self, strategy: Decoding, longest: int = 100) -> Tensor:
        """A sentence for every code, as rows of ids, written by a strategy; cut off after `longest` tokens, (K, B, L)."""
        z, u = flattened(self.z, self.u)
        seen = None if self.memory is None else self.memory.repeated(len(self.z))
        writer = self.decoder if seen is None else Remembering(self.decoder, seen)
        with torch.no_grad():
            written = strategy.write(writer, z, u, longest)
        return written.view(*self.z.shape[:2], -1)

    def sample(self, sample_shape: Any = (), longest: int = 100) -> Tensor:
        """Sentences drawn word by word, <unk> as any other, (*sample_shape, K, B, L)."""
        shape = torch.Size(sample_shape)
        copies = shape.numel()
        again = Tokens(self.decoder, self.z.repeat(copies, 1, 1), self.u, self.memory)
        return again.decode(Sampling(unknown=True), longest).view(*shape, *self.batch_shape, -1)


class Remembering:
    """A decoder that writes with a memory before it."""

    def __init__(self, decoder: Any, memory: Memory) -> None:
        self.decoder, self.memory, self.head = decoder, memory, decoder.head

    def start(self, z: Tensor, u: Tensor | None = None) -> State:
        """Before the first word."""
        state: State = self.decoder.start(z, u, self.memory)
        return state

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """One more word each."""
        h, after = self.decoder.step(tokens, state)
        return h, after


def flattened(z: Tensor, u: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Codes and what is given beside them, (K B, d) and (K B, U)."""
    return z.flatten(0, 1), None if u is None else u.expand(len(z), *u.shape).flatten(0, 1)


def teacher_forced(decoder: Any, z: Tensor, x: Tensor, u: Tensor | None) -> Tensor:
    """log p(x|z) of a decoder that has `hidden` and `head` only, (K, B)."""
    flat, given = flattened(z, u)
    rows = x.repeat(len(z), 1)  # (K B, L)
    logits = decoder.head(decoder.hidden(flat, rows[:, :-1], given))  # (K B, L - 1, V)
    nll = F.cross_entropy(logits.transpose(1, 2), rows[:, 1:], ignore_index=PAD, reduction="none")
    return -nll.sum(1).view(z.shape[:2])


class TokenLikelihood(nn.Module):
    """p(x|z,u) of a decoder that writes word by word.

    A decoder has `head` (features to logits), `start(z, u)` and `step(tokens, state)` for decoding, and for teacher forcing
    `log_prob(z, x, u) -> (K, B)`, or else `hidden(z, x_in, u) -> (N, T, H)`.
    """

    family = Tokens

    def __init__(self, decoder: nn.Module) -> None:
        super().__init__()
        for name in ("head", "start", "step"):
            if not hasattr(decoder, name):
                raise Problem(f"a decoder of sentences needs head, start and step; this one has no {name}")
        if not (hasattr(decoder, "log_prob") or hasattr(decoder, "hidden")):
            raise Problem("a decoder of sentences needs log_prob or hidden; this one has neither")
        self.net = decoder

    def forward(self, z: Tensor, batch: Batch) -> Tokens:
        seen, memory = batch.condition, None
        if getattr(self.net, "attends", False) and seen is not None and seen.memory is not None:
            assert seen.mask is not None
            memory = Memory(seen.memory, seen.mask)
        return Tokens(self.net, z, batch.u, memory)
