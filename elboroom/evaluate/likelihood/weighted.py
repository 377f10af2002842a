"""The importance-weighted bound: log (1/K) sum_k w_k of every row, gathered batch by batch, and its errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from elboroom.core.batch import Batch
from elboroom.evaluate.result import Result, mean
from elboroom.evaluate.split import Split

CHUNK = 1024  # decoded examples at a time
Weigh = Callable[[int], Tensor]  # log-weights of so many draws, (k, B)


class Weighted:
    """The bounds of the rows of a split, K log-weights each."""

    def __init__(self, split: Split, samples: int, weights_of: Callable[[Batch], Weigh]) -> None:
        self.split, self.samples = split, samples
        size = max(1, min(64, CHUNK // samples))
        chunk = max(1, min(samples, CHUNK // size))
        found = []
        with torch.no_grad():
            for batch in split.batches(size):
                weigh = weights_of(batch)
                found.append(
                    torch.cat([weigh(min(chunk, samples - at)) for at in range(0, samples, chunk)]).double().cpu()
                )
        log_w = torch.cat(found, 1)  # (K, n)
        w = torch.softmax(log_w, 0)
        self.each = torch.logsumexp(log_w, 0) - math.log(samples)  # (n,)
        self.effective = (1 / w.square().sum(0)).mean().item()
        self.elbo = log_w.mean().item()
        self.noise = (samples * w.var(0)).sum().sqrt().item() / len(self.each) if samples > 1 else None

    def number(self, name: str, parts: dict[str, Any] | None = None, **settings: Any) -> Result:
        """The mean of the rows. `importance_noise` is what another K draws would change (delta method), `sampling` what
        another test set would."""
        said = self.split.settings | {"K": self.samples} | settings
        found = mean(self.each, name, "nats", said, {"effective_samples": self.effective} | (parts or {}))
        return found if self.noise is None else replace(found, errors=found.errors | {"importance_noise": self.noise})
