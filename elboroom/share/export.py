"""Exports by name: what a run can be written as for other programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elboroom.core.problem import Problem, unknown
from elboroom.share import onnx, projector

if TYPE_CHECKING:
    from elboroom.runs.run import Run

FORMS: dict[str, tuple[Callable[[Run, Path], dict[str, Any]], str]] = {  # how, and the file that is written last
    "onnx": (onnx.export, onnx.ABOUT),
    "projector": (projector.export, projector.ABOUT),
}


def export(run: Run, to: str, out: str | Path | None = None) -> dict[str, Any]:
    """Writes a run in another form into a folder, by default one of that name in its own; an export of before is replaced."""
    if to not in FORMS:
        raise unknown("form", to, FORMS)
    make, last = FORMS[to]
    folder = run.folder / to if out is None else Path(out)
    if folder.exists() and not (folder.is_dir() and ((folder / last).is_file() or not any(folder.iterdir()))):
        raise Problem(f"{folder} exists and holds something else; choose another --out")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return make(run, folder)
    finally:
        if not any(folder.iterdir()):
            folder.rmdir()
