"""elbo report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elboroom.commands.output import Folder, Handed, Json, print_json, say


def report(
    folder: Folder,
    out: Annotated[Path | None, typer.Option("--out", show_default="DIR/report.html")] = None,
    data: Handed = None,
    json: Json = False,
) -> None:
    """Write report.html: one file, with every figure and number of a run."""
    from elboroom.commands.progress import Measuring
    from elboroom.report import write_report
    from elboroom.runs.lifecycle import load

    run = load(folder, data=data)
    with Measuring():
        path = write_report(run, out)
    print_json({"out": str(path)}) if json else say(str(path))
