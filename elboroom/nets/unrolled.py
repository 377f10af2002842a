"""States of a recurrent decoder, word by word and without dropout: as it reads a sentence, and as it writes one of its own."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from elboroom.core import distributed
from elboroom.core.vocabulary import END, PAD, START
from elboroom.nets.autoregressive import State
from elboroom.nets.dropout import longest
from elboroom.nets.recurrent import RecurrentDecoder

LEAST = 1e-10  # of a uniform draw, whose logarithm is taken


class States(NamedTuple):
    """The first state, and those after every word until a sentence ends, with where there is one."""

    h: Tensor  # (N, T, H)
    there: Tensor  # (N, T)

    def detached(self) -> States:
        """The same as constants."""
        return States(self.h.detach(), self.there)

    def of(self, rows: Tensor) -> States:
        """Those of these rows."""
        return States(self.h[rows], self.there[rows])


def teacher_forced(decoder: RecurrentDecoder, z: Tensor, u: Tensor | None, x: Tensor) -> States:
    """The states in which real sentences are read: (N, latent), (N, L) -> L states."""
    first, state = _begun(decoder, z, u)
    states = [first]
    for at in range(x.shape[1] - 1):
        h, state = decoder.advance(decoder.embedding(x[:, at]), state)
        states.append(h)
    return States(torch.stack(states, 1), x != PAD)


def free_running(decoder: RecurrentDecoder, z: Tensor, u: Tensor | None, steps: int, temperature: float) -> States:
    """The states in which sentences of its own are written, by soft words: (N, latent) -> steps + 1 states.

    A soft word is the mean of embeddings by softmax((logits + g) / temperature), g Gumbel noise, so that gradients reach z; a
    sentence ends where </s> is the likeliest.
    """
    first, state = _begun(decoder, z, u)
    words = decoder.embedding(torch.full((len(z),), START, device=z.device))
    states, going = [first], [torch.ones(len(z), dtype=torch.bool, device=z.device)] * 2
    for _ in range(steps):
        h, state = decoder.advance(words, state)
        states.append(h)
        logits = decoder.head(h)  # (N, V)
        noise = distributed.uniform(tuple(logits.shape), logits, 0).clamp_min(LEAST)
        soft = torch.softmax((logits - torch.log(-torch.log(noise))) / temperature, 1)
        words = soft @ decoder.embedding.weight
        going.append(going[-1] & (soft.argmax(1) != END))
    return States(torch.stack(states, 1), torch.stack(going[: len(states)], 1))


def steps_of(x: Tensor, like: Tensor) -> int:
    """How many words a batch of sentences asks for: as many in every process, so that all draw the same noise."""
    return longest(x.shape[1] - 1, like)


def _begun(decoder: RecurrentDecoder, z: Tensor, u: Tensor | None) -> tuple[Tensor, State]:
    """The last layer's state before the first word, (N, H), and all that decoding remembers."""
    state = decoder.start(z, u)
    return decoder.first(state[0])[-1][0], state
