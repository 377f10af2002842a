"""What the tests of studies share: an engine in this process, and runs that take a moment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elboroom.studies.engines.pool import Told
from elboroom.studies.engines.work import attempt
from elboroom.studies.schema import Measure
from elboroom.studies.space import Cell

TINY: dict[str, Any] = {
    "steps": 12, "batch_size": 16, "latent": 3, "net": "mlp-300", "lr": 2e-3, "log_every": 4, "checkpoint_every": 4,
}  # fmt: skip
MEASURE: dict[str, Any] = {"samples": 2, "most": 40, "smaller": True, "metrics": ["mig", "gaussian-tc"], "codes": 50}


class Here:
    """The engine of this process: a cell after the other."""

    name = "here"

    def __init__(self) -> None:
        self.did: list[str] = []

    def run(self, cells: Iterator[Cell], root: Path, measure: Measure) -> Iterator[tuple[Cell, Told]]:
        for cell in cells:
            yield cell, {"state": "started"}
            self.did.append(cell.name)
            yield cell, attempt(cell, root, measure)

    def close(self) -> None: ...
