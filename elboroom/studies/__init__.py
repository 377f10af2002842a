"""Studies: hundreds of runs on one machine or on a Ray cluster, one table, one report."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import_module("elboroom.studies.analysis")  # the room binds its name here when it is first loaded
globals().pop("results", None)  # from now on that name is the function

if TYPE_CHECKING:
    from elboroom.studies.analysis.summary import summary as summarise
    from elboroom.studies.analysis.table import query as query
    from elboroom.studies.analysis.table import results as results
    from elboroom.studies.run import run_study as run_study
    from elboroom.studies.study import Study as Study
    from elboroom.studies.study import presets as presets

_FILES = {
    "Study": ("studies.study", "Study"),
    "presets": ("studies.study", "presets"),
    "query": ("studies.analysis.table", "query"),
    "results": ("studies.analysis.table", "results"),
    "run_study": ("studies.run", "run_study"),
    "summarise": ("studies.analysis.summary", "summary"),
    "write_report": ("report.study", "write_report"),  # of a room above: nothing in here uses it
}
__all__ = ["Study", "presets", "query", "results", "run_study", "summarise", "write_report"]


def __getattr__(name: str) -> Any:
    """Loads what is asked for when it is asked for: a worker should not wait for figures and SQL."""
    if name in _FILES:
        file, thing = _FILES[name]
        return getattr(import_module(f"elboroom.{file}"), thing)
    raise AttributeError(f"module 'elboroom.studies' has no attribute '{name}'")
