"""Studies: hundreds of runs on one machine or on a Ray cluster, one table, one report."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elboroom.studies.conduct import run_study as run_study
    from elboroom.studies.page import write_report as write_report
    from elboroom.studies.study import Study as Study
    from elboroom.studies.study import presets as presets
    from elboroom.studies.summary import summary as summarise
    from elboroom.studies.table import query as query
    from elboroom.studies.table import results as results

_FILES = {
    "Study": ("study", "Study"),
    "presets": ("study", "presets"),
    "query": ("table", "query"),
    "results": ("table", "results"),
    "run_study": ("conduct", "run_study"),
    "summarise": ("summary", "summary"),
    "write_report": ("page", "write_report"),
}
__all__ = ["Study", "presets", "query", "results", "run_study", "summarise", "write_report"]


def __getattr__(name: str) -> Any:
    """Loads what is asked for when it is asked for: a worker should not wait for figures and SQL."""
    if name in _FILES:
        file, thing = _FILES[name]
        return getattr(import_module(f"elboroom.studies.{file}"), thing)
    raise AttributeError(f"module 'elboroom.studies' has no attribute '{name}'")
