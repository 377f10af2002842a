"""Subject: a run as metrics see it; what several of them read off it is made once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from elboroom.core.batch import Batch
from elboroom.data.tokens import Tokeniser
from elboroom.evaluate.codes import CodeTable, Encoded, code_table
from elboroom.evaluate.disentanglement.source import Source
from elboroom.evaluate.split import Split


class Trained(Encoded, Protocol):
    """What a run offers to metrics."""

    tokeniser: Tokeniser | None

    @property
    def latent(self) -> int: ...
    def rows(self, split: str | None = None) -> tuple[str, NDArray[np.int64]]: ...
    def split(self, split: str | None = None, most: int | None = 10_000, seed: int = 0) -> Split: ...
    def examples(self, n: int, split: str | None = None, seed: int = 0) -> Batch: ...
    def kl_per_dim(self, split: str | None = None) -> list[float]: ...
    def seen(self, sentence: str) -> str: ...
    def sample(self, n: int = 25, seed: int = 0) -> Any: ...
    def reconstruct(self, x: Any) -> Any: ...


@dataclass(frozen=True)
class Subject:
    """A run, and the sources that metrics of codes draw from."""

    run: Trained
    _sources: dict[tuple[str, bool], Source] = field(default_factory=dict, repr=False)

    @cached_property
    def table(self) -> CodeTable:
        """Every example encoded once."""
        return code_table(self.run)

    def source(self, representation: str = "mean", smaller: bool = False) -> Source:
        """Codes as means or samples; smaller: whether a protocol may take fewer rows than it asks for."""
        key = representation, smaller
        if key not in self._sources:
            found = replace(self.table, allow_smaller=smaller).source
            self._sources[key] = found if found.representation == representation else found.represented(representation)
        return self._sources[key]
