"""Subject: a run as metrics see it; what several of them read off it is made once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from elboroom.core.batch import Batch
from elboroom.core.progress import stage, tell
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
    def sample(
        self, n: int = 25, seed: int = 0, u: Any = None, decoding: Any = None, sampler: Any = "prior",
        components: int | None = None,
    ) -> Any: ...  # fmt: skip
    def encode(self, x: Any, u: Any = None) -> NDArray[np.float32]: ...
    def require_codes(self) -> None: ...
    def reconstruct(self, x: Any, u: None = None, decoding: Any = None) -> Any: ...
    def styles(self, by: Any = "style") -> dict[str, list[str]]: ...
    def changes(self, by: Any = "style") -> dict[str, str]: ...
    def edit(self, x: Any, *, by: Any = None, strength: float = 1.0) -> Any: ...
    def labelled(self, n: int = 1, **labels: str | int) -> Any: ...
    def transfer(
        self, x: Any, to: Any = None, *, by: Any = "style", u: Any = None, context: Any = None, through: Any = None
    ) -> Any: ...
    def generate(
        self, context: Any, n: int | None = None, decoding: Any = None, seed: int = 0, u: Any = None
    ) -> Any: ...


def reads_pivot(run: Trained) -> bool:
    """Whether a run has no code of x and writes from a context alone, which then stands for x: its translation."""
    return run.model.conditioner is not None and not run.latent


@dataclass(frozen=True)
class Subject:
    """A run, and the sources that metrics of codes draw from."""

    run: Trained
    _sources: dict[tuple[str, bool], Source] = field(default_factory=dict, repr=False)

    @cached_property
    def table(self) -> CodeTable:
        """Every example encoded once."""
        with stage("codes"):
            return code_table(self.run, progress=tell)

    def source(self, representation: str = "mean", smaller: bool = False) -> Source:
        """Codes as means or samples; smaller: whether a protocol may take fewer rows than it asks for."""
        key = representation, smaller
        if key not in self._sources:
            found = replace(self.table, allow_smaller=smaller).source
            self._sources[key] = found if found.representation == representation else found.represented(representation)
        return self._sources[key]
