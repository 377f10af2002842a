"""Importance weights dealt into parts: how far bounds of a half and of a quarter of the draws differ tells the error of all.

The delta method, K Var(w) / (sum w)^2, cannot exceed one nat^2 a row, and the variance of log (1/K) sum_k w_k is several
where one weight is as large as all others together. Differences between halves of the draws have no such limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import torch
from torch import Tensor

PARTS = 8  # that draws are dealt into, where there are so many
Weigh = Callable[[int], Tensor]  # log-weights of so many draws, (k, B)


@dataclass(frozen=True)
class Dealt:
    """Sums of the weights of n rows over K draws, and over each of eight, four or two parts of them."""

    counts: tuple[int, ...]  # draws of each part
    parts: Tensor  # log of the sum of the weights of each part, (P, n)
    total: Tensor  # the same of all, (n,)
    squares: Tensor  # log of the sum of the squared weights, (n,)
    logs: Tensor  # sum of the log-weights, (n,)

    @classmethod
    def of(cls, log_w: Tensor) -> Dealt:
        """Of log-weights (K, n): the draws are dealt like cards, so that every part has some of each stratum."""
        parts = max(p for p in (PARTS, 4, 2, 1) if p <= len(log_w))
        hands = [log_w[p::parts] for p in range(parts)]
        sums = torch.stack([torch.logsumexp(hand, 0) for hand in hands])
        counts = tuple(len(hand) for hand in hands)
        return cls(counts, sums, torch.logsumexp(log_w, 0), torch.logsumexp(2 * log_w, 0), log_w.sum(0))

    @classmethod
    def beside(cls, batches: Sequence[Dealt]) -> Dealt:
        """The rows of several batches, of which each had as many draws."""
        names = ("parts", "total", "squares", "logs")
        joined = {name: torch.cat([getattr(batch, name) for batch in batches], -1) for name in names}
        return cls(batches[0].counts, **joined)

    def and_of(self, more: Dealt) -> Dealt:
        """More draws for the same rows."""
        counts = tuple(a + b for a, b in zip(self.counts, more.counts, strict=True))
        parts, total, squares = (
            torch.logaddexp(getattr(self, name), getattr(more, name)) for name in ("parts", "total", "squares")
        )
        return Dealt(counts, parts, total, squares, self.logs + more.logs)

    @property
    def count(self) -> int:
        """K."""
        return sum(self.counts)

    def bounds(self) -> Tensor:
        """log (1/K) sum_k w_k, (n,)."""
        return self.total - math.log(self.count)

    @property
    def elbo(self) -> float:
        """The mean log-weight."""
        return self.logs.mean().item() / self.count

    @property
    def effective(self) -> Tensor:
        """(sum w)^2 / sum w^2, the effective number of draws, (n,)."""
        return (2 * self.total - self.squares).exp()

    @cached_property
    def gain(self) -> float:
        """By how much the mean bound of K draws is above that of halves of them; never below 0.

        Gains fall by half with every doubling where no weight dominates, and more slowly where some do. What is missing from
        log p(x), the sum of all gains to come, is therefore about this or more.
        """
        half = len(self.counts) // 2
        if not half:
            return math.nan
        below = torch.stack([self._bound(some) for some in combinations(range(len(self.counts)), half)])
        return max(0.0, (self.bounds() - below.mean(0)).mean().item())

    @property
    def variance(self) -> float:
        """Of the sum of the bounds over the rows, by the draws: v(K) = v(K/2) v(K/2) / v(K/4).

        v(m) is half the mean squared difference of the bounds of two disjoint sets of m draws, which is unbiased. From m to 2 m
        it falls by half where no weight dominates and hardly at all where one does, and as from K/4 to K/2, so to K.
        """
        halves = self._variance(len(self.counts) // 2)
        if len(self.counts) < 4:
            return halves  # no more than that is known, and it is no less
        quarters = self._variance(len(self.counts) // 4)
        return halves * min(1.0, max(0.5, halves / quarters)) if quarters > 0 else halves

    def _variance(self, take: int) -> float:
        sets = list(combinations(range(len(self.counts)), take))
        bounds = {some: self._bound(some) for some in sets}
        pairs = [(a, b) for a, b in combinations(sets, 2) if not set(a) & set(b)]
        return sum((bounds[a] - bounds[b]).square().sum().item() for a, b in pairs) / (2 * len(pairs))

    def _bound(self, some: tuple[int, ...]) -> Tensor:
        """The bound of the draws of some parts, (n,)."""
        return torch.logsumexp(self.parts[list(some)], 0) - math.log(sum(self.counts[p] for p in some))


def drawn(weigh: Weigh, samples: int, chunk: int) -> Dealt:
    """So many draws for the rows of a batch, `chunk` at a time."""
    found = [weigh(min(chunk, samples - at)) for at in range(0, samples, chunk)]
    return Dealt.of(torch.cat(found).double().cpu())
