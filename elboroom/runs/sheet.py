"""The sentences of a blind sheet: some of a split, as several runs say them in another style."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elboroom.core.problem import Problem
from elboroom.data.sequences import CONTEXT
from elboroom.evaluate.subject import reads_pivot
from elboroom.evaluate.transfer import sheet
from elboroom.evaluate.transfer.measure import Task, changed, outputs_of
from elboroom.runs.run import Run


def write(
    path: Path, runs: Mapping[str, Run], label: str = "", by: str = "style", split: str | None = None, n: int = 50,
    seed: int = 0, to: str = "", through: Path | None = None,
) -> Path:  # fmt: skip
    """Writes the sheet of these runs, which must hold out the same sentences; returns where its key is.

    A run that writes from translations has those of its data, or those that the run of `through` makes.
    """
    for run in runs.values():
        if run.tokeniser is None:
            raise Problem(f"--sheet is for sentences; {run.spec.about.name} is {run.spec.about.kind}")
    if through is not None and not any(map(reads_pivot, runs.values())):
        raise Problem("--through is for a run that reads translations, which none of these does; remove it")
    asked = {name: changed(run, label, by, to) for name, run in runs.items()}
    held = {name: run.rows(split)[1] for name, run in runs.items()}
    (one, first), *others = runs.items()
    which, values, only = asked[one]
    sentences, truth = first.data.sentences(held[one]), _values(first, which, held[one])
    for name, run in others:
        if asked[name] != asked[one]:
            raise Problem(f"{name} changes {_said(*asked[name])}, and {one} {_said(*asked[one])}; say --label and --to")
        if run.data.sentences(held[name]) != sentences or not np.array_equal(_values(run, which, held[name]), truth):
            raise Problem(f"{name} holds out other sentences than {one}, so its transfers cannot stand beside them")
    free = np.flatnonzero(truth != values.index(only)) if only else np.arange(len(truth))
    if not len(free):
        raise Problem(f"all sentences are {only} already, so there are none to change; use another --to or --split")
    chosen = np.sort(np.random.default_rng(seed).choice(free, min(n, len(free)), replace=False))
    inputs, sources = [sentences[place] for place in chosen], truth[chosen]
    targets = np.full_like(sources, values.index(only)) if only else (sources + 1) % len(values)
    outputs = {}
    for name, run in runs.items():
        pivot = reads_pivot(run)
        contexts = run.data.turns(CONTEXT, held[name][chosen]) if pivot and through is None else []
        task = Task(inputs, sources, targets, {}, contexts=contexts)
        outputs[name] = outputs_of(run, task, which, values, by, through if pivot else None)
    return sheet.write(path, inputs, [values[target] for target in targets], outputs, seed)


def _values(run: Run, label: str, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(run.data.labels[rows, list(run.data.about.labels).index(label)])


def _said(label: str, values: list[str], only: str) -> str:
    return f"{label} ({', '.join(values)})" + (f" to {only}" if only else "")
