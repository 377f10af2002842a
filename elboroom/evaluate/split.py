"""Split: a model beside the rows that it is measured on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elboroom.core.draw import Batch, LatentModel
from elboroom.core.pairs import has_density
from elboroom.core.problem import Problem, unknown
from elboroom.data.dataset import DataSet
from elboroom.training.batches import batch_of, reseed


@dataclass(frozen=True)
class Split:
    """A model in evaluation mode and some rows of a named split of a data set."""

    model: LatentModel
    data: DataSet
    name: str
    rows: NDArray[np.int64]
    given: tuple[str, ...] = ()
    seed: int = 0

    @classmethod
    def of(
        cls,
        model: LatentModel,
        data: DataSet,
        name: str,
        given: tuple[str, ...],
        most: int | None = None,
        seed: int = 0,
    ) -> Split:
        """At most `most` rows of a split, drawn once and the same every time."""
        if name not in data.splits:
            raise unknown(f"split of {data.about.name}", name, data.splits)
        rows = data.splits[name]
        if most is not None and most < 1:
            raise Problem(f"at least one example is needed, not {most}")
        if most is not None and most < len(rows):
            rows = np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
        return cls(model, data, name, rows, given, seed)

    @property
    def has_density(self) -> bool:
        """Whether q(z|x) has one."""
        return has_density(self.model.families[0])

    @property
    def settings(self) -> dict[str, Any]:
        """What every number measured here carries."""
        return {"data": self.data.about.name, "split": self.name, "n": len(self.rows), "seed": self.seed}

    def few(self, most: int) -> Split:
        """The same with no more than `most` of its rows."""
        if most >= len(self.rows):
            return self
        return replace(self, rows=np.sort(np.random.default_rng(0).choice(self.rows, most, replace=False)))

    def batches(self, size: int = 256) -> Iterator[Batch]:
        """The rows in order. Noise starts anew, so the same question has the same answer."""
        device = next(self.model.parameters()).device
        reseed(self.seed, 1)
        for start in range(0, len(self.rows), size):
            yield batch_of(self.data, self.rows[start : start + size], self.given, device)

    @cached_property
    def codes(self) -> tuple[Tensor, Tensor | None]:
        """Means and log-variances of q(z|x) for all rows, (n, J) each; no log-variance where q is no Gaussian."""
        loc, logvar = [], []
        with torch.inference_mode():
            for batch in self.batches():
                q = self.model.posterior(batch)
                loc.append(q.mean.float().cpu())
                logvar += [q.logvar.float().cpu()] if hasattr(q, "logvar") else []
        return torch.cat(loc), torch.cat(logvar) if logvar else None
