"""Split: a model beside the rows that it is measured on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elboroom.core.batch import Batch
from elboroom.core.kl import has_density, has_many_priors
from elboroom.core.law import capabilities
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem, unknown
from elboroom.core.progress import tell
from elboroom.data.dataset import DataSet
from elboroom.families.gaussian import NoPrior
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
            raise unknown("split", name, data.splits, data.about.name)
        rows = data.splits[name]
        if most is not None and most < 1:
            raise Problem(f"at least one example is needed, not {most}")
        return cls(model, data, name, in_order(data, rows), given, seed).few(most)

    @property
    def has_density(self) -> bool:
        """Whether there is a log q(z|x) and a log p(z)."""
        return not self.lacking

    @property
    def lacking(self) -> str:
        """Why there is no rate, if there is none."""
        q, p = self.model.families
        if not has_density(q):
            return "q(z|x) has no density"
        if has_density(p):
            return ""
        return "the model has no prior" if isinstance(self.model.prior, NoPrior) else "p(z) has no density"

    @property
    def has_many_priors(self) -> bool:
        """Whether p(z|u) is another for other labels."""
        return has_many_priors(self.model)

    @property
    def is_text(self) -> bool:
        """Whether its examples are sentences."""
        return self.data.about.kind == "tokens"

    @property
    def words(self) -> int:
        """How many words its sentences have, the end of each counted as one."""
        return int(self.data.words[self.rows].sum())

    @property
    def unknown_words(self) -> float:
        """The share of its words that the model does not know."""
        return self.data.unknown(self.rows)

    @property
    def settings(self) -> dict[str, Any]:
        """What every number measured here carries."""
        settings = {"data": self.data.about.name, "split": self.name, "n": len(self.rows), "seed": self.seed}
        settings["rows"] = hashlib.sha256(np.sort(self.rows).tobytes()).hexdigest()[:12]
        if self.is_text and self.data.tokeniser is not None:
            tokens = int(self.data.lengths(self.rows).sum())
            settings |= {"hash": self.data.hash[:12], "tokeniser": self.data.tokeniser.name, "tokens": tokens}
        return settings

    @property
    def tuning(self) -> Split | None:
        """A few rows to tune a proposal on: of the validation split where there is one, else of the training split."""
        name = next((name for name in ("valid", "train") if name in self.data.splits and name != self.name), None)
        return None if name is None else Split.of(self.model, self.data, name, self.given, 256, self.seed)

    def few(self, most: int | None) -> Split:
        """The same with no more than `most` of its rows."""
        if most is None or most >= len(self.rows):
            return self
        rows = np.random.default_rng(0).choice(np.sort(self.rows), most, replace=False)
        return replace(self, rows=in_order(self.data, rows))

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    def batches(self, size: int = 256, turn: int = 1) -> Iterator[Batch]:
        """The rows in order. Noise starts anew, so the same question has the same answer; another turn has other noise."""
        reseed(self.seed, turn)
        for start in range(0, len(self.rows), size):
            yield batch_of(self.data, self.rows[start : start + size], self.given, self.device)
            tell(min(start + size, len(self.rows)), len(self.rows))

    @cached_property
    def codes(self) -> tuple[Tensor, Tensor | None]:
        """Means and log-variances of q(z|x) for all rows, (n, J) each; no log-variance where q is no Gaussian."""
        loc, logvar = [], []
        with torch.no_grad():
            for batch in self.batches():
                q = self.model.q(batch)
                loc.append(q.mean.float().cpu())
                logvar += [q.logvar.float().cpu()] if capabilities(q).diagonal else []
        return torch.cat(loc), torch.cat(logvar) if logvar else None


def in_order(data: DataSet, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows as they are looked at: sorted, sentences by length so that little is padded."""
    rows = np.sort(rows)
    return rows[np.argsort(data.lengths(rows).numpy(), kind="stable")] if data.about.kind == "tokens" else rows
