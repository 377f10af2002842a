"""elbo plot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elboroom.commands import catalogue
from elboroom.commands.output import Handed, Json, figure_file, print_json, print_table, say
from elboroom.core.problem import unknown

OLD = {"activity": "collapse"}  # names that figures had


def plot(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="the figure; elbo plot list shows all")],
    folders: Annotated[list[Path] | None, typer.Argument(metavar="DIR...", help="the folders of runs")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="a .png, .svg or .pdf file", show_default="KIND.png")
    ] = None,
    label: Annotated[str, typer.Option("--label", help="of attributes: the label", show_default="the first")] = "",
    data: Handed = None,
    json: Json = False,
) -> None:
    """Draw one figure of a run, or of several."""
    figures = catalogue.figures()
    if kind == "list":
        return (
            print_json(figures) if json else print_table(["kind", "what it shows"], [[*row] for row in figures.items()])
        )
    kind = OLD.get(kind, kind)
    if kind not in figures:
        raise unknown("figure", kind, figures)
    path = figure_file(out or Path(f"{kind}.png"))
    from elboroom.plots.figures import named
    from elboroom.plots.style import save
    from elboroom.runs.lifecycle import load

    save(named(kind).figure([load(folder, data=data) for folder in folders or []], label), path)
    print_json({"out": str(path)}) if json else say(str(path))
