"""The record of a run: the numbers that metrics.json holds of its checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from elboroom.core.files import remade
from elboroom.core.locks import one_process
from elboroom.evaluate.kept import check_numbers
from elboroom.evaluate.result import Result
from elboroom.training.checkpoint import write_json

if TYPE_CHECKING:
    from elboroom.runs.run import Run

FILE = "metrics.json"


def kept(run: Run) -> dict[str, Any]:
    """What is there of this checkpoint, under the heading of the run."""
    own = {"method": run.spec.method, "step": run.step, "seed": run.spec.fit.seed, "id": run.spec.id}
    found = remade(run.folder / FILE, check_numbers)
    ours = own.items() <= (own | {"method": ""} | found.get("run", {})).items()  # which had no id once
    return (found if ours else {}) | {"run": own | {"title": run.spec.title, "parameters": run.parameters}}


def add(run: Run, results: Mapping[str, Result], without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Adds results; without: how names begin that are left out first."""
    with one_process(run.folder):
        before = {name: entry for name, entry in kept(run).items() if not name.startswith(without)}
        content = before | {name: result.to_json() for name, result in results.items()}
        write_json(run.folder / FILE, content)
    return content
