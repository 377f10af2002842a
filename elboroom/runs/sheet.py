"""The sentences of a blind sheet: some of a split, as several runs say them in another style."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from elboroom.core.problem import Problem
from elboroom.evaluate.transfer import sheet
from elboroom.runs.run import Run


def write(
    path: Path, runs: Mapping[str, Run], label: str = "", by: str = "style", split: str | None = None, n: int = 50, seed: int = 0
) -> Path:  # fmt: skip
    """Writes the sheet of these runs, which must share their data; returns where its key is."""
    first = next(iter(runs.values()))
    if first.tokeniser is None:
        raise Problem("--sheet is for sentences")
    for name, run in runs.items():
        if run.spec.about.name != first.spec.about.name:
            raise Problem(f"{name} was trained on {run.spec.about.name}, not on {first.spec.about.name}")
    which = label or next(iter(first.styles(by)), "")  # type: ignore[arg-type]
    if not which:
        raise Problem(f"{first.spec.method} has no style to change; use --by offset")
    rows = first.rows(split)[1]
    chosen = np.sort(np.random.default_rng(seed).choice(rows, min(n, len(rows)), replace=False))
    inputs, outputs = first.data.sentences(chosen), dict[str, list[str]]()
    column = list(first.data.about.labels).index(which)
    values = first.styles(by)[which]  # type: ignore[arg-type]
    wanted = [values[(int(y) + 1) % len(values)] for y in first.data.labels[chosen, column]]
    for name, run in runs.items():
        outputs[name] = [
            run.transfer([text], {which: value}, by=by)[0]  # type: ignore[arg-type]
            for text, value in zip(inputs, wanted, strict=True)
        ]
    return sheet.write(path, inputs, wanted, outputs, seed)
