"""The importance-weighted bound: log (1/K) sum_k w_k of every row, gathered batch by batch, and its errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from elboroom.core.batch import Batch
from elboroom.core.problem import Problem
from elboroom.core.progress import stage
from elboroom.evaluate.likelihood.dealt import PARTS, Dealt, Weigh, drawn
from elboroom.evaluate.result import Result, mean
from elboroom.evaluate.split import Split

CHUNK = 1024  # decoded examples at a time
LOOSE = 0.1  # nats that the last doubling of K may add to a bound that goes without a warning
MOST_DRAWS = 100_000  # of a row, where draws go on until they change little


class Weighted:
    """The bounds of the rows of a split, K log-weights each.

    until: draws go on, K doubling, until the last doubling raised the bound by less than so many nats; K is at least 8 and
    at most 100,000 then.
    """

    def __init__(
        self, split: Split, samples: int, weights_of: Callable[[Batch], Weigh], until: float | None = None
    ) -> None:
        self.split = split
        if until is not None:
            if not until > 0:
                raise Problem(f"a bound changes by some nats with every doubling of K: until {until} would never end")
            samples = max(samples, PARTS)
        found, turn = self._gathered(samples, weights_of), 1
        while until is not None and found.gain >= until and 2 * found.count <= MOST_DRAWS:
            turn += 1
            found = found.and_of(self._gathered(found.count, weights_of, turn))
        self.samples = found.count
        self.each = found.bounds()  # (n,)
        self.effective = found.effective.mean().item()
        self.elbo = found.elbo
        self.gain = found.gain
        variance = found.variance if self.samples > 1 else math.nan
        self.noise = math.sqrt(variance) / len(self.each) if math.isfinite(variance) else None

    @torch.no_grad()
    def _gathered(self, samples: int, weights_of: Callable[[Batch], Weigh], turn: int = 1) -> Dealt:
        """So many draws for every row, with noise of their own for each turn."""
        size = max(1, min(64, CHUNK // samples))
        chunk = max(1, min(samples, CHUNK // size))
        with stage(f"{samples:,} draws a row"):
            return Dealt.beside([drawn(weights_of(batch), samples, chunk) for batch in self.split.batches(size, turn)])

    def number(self, name: str, parts: dict[str, Any] | None = None, **settings: Any) -> Result:
        """The mean of the rows. `importance_noise` is what another K draws would change, `sampling` what another test set
        would; `gain_of_doubling` is what the last doubling of K added, of which at least as much is still missing."""
        said = self.split.settings | {"K": self.samples} | settings
        more = {"effective_samples": self.effective}
        if self.noise is None:
            return mean(self.each, name, "nats", said, more | (parts or {}))
        found = mean(self.each, name, "nats", said, more | {"gain_of_doubling": self.gain} | (parts or {}))
        note = f"loose by {self.gain:.2g} nats or more" if self.gain > LOOSE else ""
        return replace(found, errors=found.errors | {"importance_noise": self.noise}, note=note)
