"""Decoding: how a sentence is written, word by word, from a code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from elboroom.core.problem import Problem
from elboroom.core.vocabulary import END, PAD, START, UNK

State = tuple[Tensor, ...]  # what a decoder remembers, one row a sentence


class Writer(Protocol):
    """What decoding asks of a decoder."""

    @property
    def head(self) -> Callable[[Tensor], Tensor]: ...  # features (N, H) -> logits (N, V)

    def start(self, z: Tensor, u: Tensor | None = None) -> State: ...

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]: ...  # (N,) -> features (N, H)


@dataclass(frozen=True)
class Decoding(ABC):
    """A way to write sentences. <pad> and <s> are never said, <unk> only if `unknown`."""

    unknown: bool = field(default=False, kw_only=True)

    @abstractmethod
    def write(self, writer: Writer, z: Tensor, u: Tensor | None, longest: int) -> Tensor:
        """Sentences for codes (N, d) as rows <s> w_1 .. w_T </s> <pad> ..; after `longest` words one is cut off, (N, L)."""

    def logits(self, writer: Writer, features: Tensor) -> Tensor:
        """What may be said next, (N, V)."""
        logits = writer.head(features)
        logits[:, self.unsaid] = -torch.inf
        return logits

    @property
    def unsaid(self) -> list[int]:
        """Ids that are never written."""
        return [PAD, START] if self.unknown else [PAD, START, UNK]


class OneByOne(Decoding, ABC):
    """The next word depends on nothing but its probabilities."""

    @abstractmethod
    def choose(self, logits: Tensor) -> Tensor:
        """(N, V) -> (N,)."""

    def write(self, writer: Writer, z: Tensor, u: Tensor | None, longest: int) -> Tensor:
        written = torch.full((len(z), longest + 1), PAD, device=z.device)
        written[:, 0] = START
        rows, state, at = torch.arange(len(z), device=z.device), writer.start(z, u), 0
        while len(rows) and at < longest:
            features, state = writer.step(written[rows, at], state)
            words, at = self.choose(self.logits(writer, features)), at + 1
            written[rows, at] = words
            going = words != END
            if not going.all():  # who has ended is no longer asked
                rows, state = rows[going], tuple(t[going] for t in state)
        return written[:, : at + 1]


@dataclass(frozen=True)
class Greedy(OneByOne):
    """The most probable next word."""

    def choose(self, logits: Tensor) -> Tensor:
        return logits.argmax(1)


@dataclass(frozen=True)
class Sampling(OneByOne):
    """The next word drawn from softmax(logits / temperature), of the `top_k` most probable words (0: of all),
    and of these from the fewest that have probability `top_p` together."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not 1e-3 <= self.temperature <= 1e3:
            raise Problem(
                f"the temperature must be 0.001 to 1000, not {self.temperature:g}; for its limit use greedy decoding"
            )
        if self.top_k < 0 or not 0 < self.top_p <= 1:
            raise Problem(f"top_k must be at least 0 and top_p in (0, 1], not {self.top_k} and {self.top_p:g}")

    def choose(self, logits: Tensor) -> Tensor:
        return torch.multinomial(self.probabilities(logits), 1).squeeze(1)

    def probabilities(self, logits: Tensor) -> Tensor:
        """What is drawn from, (N, V)."""
        logits = logits / self.temperature
        if self.top_k and self.top_k < logits.shape[1]:
            best = logits.topk(self.top_k)
            logits = torch.full_like(logits, -torch.inf).scatter(1, best.indices, best.values)
        p = torch.softmax(logits, 1)
        if self.top_p < 1:
            ranked, words = p.sort(dim=1, descending=True, stable=True)
            ranked = ranked.masked_fill(ranked.cumsum(1) - ranked >= self.top_p, 0)  # what is before has it already
            p = torch.zeros_like(p).scatter(1, words, ranked)
        return p / p.sum(1, keepdim=True)


@dataclass(frozen=True)
class Beam(Decoding):
    """The most probable sentence that a search finds which goes on with the `width` most probable beginnings."""

    width: int = 5

    def __post_init__(self) -> None:
        if not 1 <= self.width <= 1000:
            raise Problem(f"the width of a beam must be 1 to 1000, not {self.width}")

    def write(self, writer: Writer, z: Tensor, u: Tensor | None, longest: int) -> Tensor:
        n, width, at = len(z), self.width, 0
        first = (torch.arange(n, device=z.device) * width).unsqueeze(1)  # the first beam of each sentence, (N, 1)
        state = tuple(t.repeat_interleave(width, 0) for t in writer.start(z, u))
        written = torch.full((n * width, longest + 1), PAD, device=z.device)
        written[:, 0] = START
        score = z.new_full((n, width), -torch.inf)
        score[:, 0] = 0  # all beams are the same at first: only one counts
        while at < longest and not (written[first.squeeze(1)] == END).any(1).all():  # scores only fall
            features, state = writer.step(written[:, at], state)
            ended, at = (written == END).any(1), at + 1
            words = torch.log_softmax(writer.head(features), 1)  # (N width, V)
            words[:, self.unsaid] = -torch.inf
            words[ended] = -torch.inf
            words[ended, PAD] = 0  # a sentence that has ended stays as it is
            score, best = (score.unsqueeze(2) + words.view(n, width, -1)).flatten(1).topk(width)
            beam = (first + best // words.shape[1]).flatten()
            written, state = written[beam], tuple(t[beam] for t in state)
            written[:, at] = (best % words.shape[1]).flatten()
        ended = (written == END).any(1).view(n, width)
        best = score.masked_fill(~ended & ended.any(1, keepdim=True), -torch.inf).argmax(1)
        sentences = written[first.squeeze(1) + best]
        return sentences[:, : int((sentences != PAD).sum(1).max())]
