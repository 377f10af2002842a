"""What is measured of every run on text, and what is shown of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from elboroom.runs import measure as measures
from elboroom.runs.run import Run

SHOWN = "sentences.json"


def measure(run: Run) -> None:
    """The likelihood of the whole test split by IW-100, the measures of text, and some sentences."""
    run.evaluate(samples=100, iw_most=None)
    measures.metrics(run, "text")
    write(run)


def write(run: Run) -> None:
    """Keeps some sentences beside what was measured."""
    (run.folder / SHOWN).write_text(json.dumps(sentences(run), indent=1))


def sentences(run: Run) -> dict[str, Any]:
    """Ten samples, ten reconstructions of the test split and one interpolation between two of its sentences."""
    chosen = run.sentences(10)
    shown: dict[str, Any] = {"samples": run.sample(10)}
    if run.latent:
        shown["reconstructions"] = list(zip(chosen, run.reconstruct(chosen), strict=True))
        shown["interpolation"] = run.interpolate(chosen[:1], chosen[1:2], points=7)[0]
    return shown


def shown(folder: Path) -> dict[str, Any]:
    """The sentences kept beside a record."""
    found: dict[str, Any] = json.loads((folder / SHOWN).read_text())
    return found
