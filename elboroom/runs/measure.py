"""Metrics of runs, by the names that the registry knows, added to their metrics.json."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from elboroom.core.calls import asked
from elboroom.core.locks import one_process
from elboroom.core.problem import Problem
from elboroom.core.progress import stage
from elboroom.evaluate.registry import ALL, Results, check_mode, chosen, find
from elboroom.evaluate.subject import Subject
from elboroom.runs.run import Run


@asked
def metrics(run: Run, names: str | Sequence[str] = ALL, **options: Any) -> dict[str, Any]:
    """Metrics of a run by name, added to its metrics.json, which is returned; every example is encoded once.

    With "all", a metric that cannot be measured here has no value but a reason. options: those of `elbo eval`, each for the
    metrics that read it; a metric without the mode is measured in its first one.
    """
    asked = [names] if isinstance(names, str) else list(names)
    subject, entries = Subject(run), chosen(asked, has_sentences=run.tokeniser is not None)
    mode, seed, content = options.get("mode", "dlib"), options.get("seed", 0), run.measured
    check_mode(mode, entries)
    for name in (entry.name for entry in entries if entry.needs == "several runs"):
        raise Problem(f"{name} compares several runs and is asked for alone: elbo eval RUN RUN ... --metrics {name}")
    with one_process(run.folder):
        for number, entry in enumerate(entries, 1):
            try:
                with stage(entry.name if len(entries) == 1 else f"{entry.name} ({number} of {len(entries)})"):
                    found = entry.of(subject, options)
            except Problem as problem:
                if ALL not in asked:
                    raise
                found = entry.refused(problem, mode, seed)
            content = run.record(found)
    return content


@asked
def agreement(runs: Sequence[Run], name: str = "udr", **options: Any) -> Results:
    """A metric that compares several runs with one another, by their folders."""
    return find(name).of([Subject(run) for run in runs], options)
