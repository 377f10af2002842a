"""elbo data list, show, get, check."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from elboroom.commands.output import Json, print_json, print_table, say

LABELS = typer.Option(
    "--labels",
    help="a table of labels: .csv, .tsv or list_attr_celeba.txt, with one row per image of a folder or per example of an "
    "array; none: ignore a table in the folder",
)
LABEL_KINDS = typer.Option(
    "--label-kinds", help="kinds of labels: categorical, ordinal or binary, as in male=binary,age=ordinal"
)
SHOWN = 8  # classes of a label

data_app = typer.Typer(
    help="Data sets: list, show, get, check.", add_completion=False, no_args_is_help=True, rich_markup_mode=None
)


@data_app.command("list")
def data_list(json: Json = False) -> None:
    """List the data sets, and where each was found."""
    from elboroom.data import registry

    rows = registry.listing()
    if json:
        return print_json(rows)
    shown = [row | {"counts": ", ".join(f"{n:,} {split}" for split, n in row["counts"].items())} for row in rows]
    print_table(list(rows[0]), [list(row.values()) for row in shown])


@data_app.command("show")
def data_show(
    data: Annotated[str, typer.Argument(help="as in --data of elbo train")],
    size: Annotated[int | None, typer.Option("--size", help="resize the images of a folder to SIZE x SIZE")] = None,
    labels: Annotated[str | None, LABELS] = None,
    label_kinds: Annotated[str | None, LABEL_KINDS] = None,
    text_column: Annotated[str, typer.Option("--text-column", help="the column of a table that holds the text")] = "",
    label_column: Annotated[str, typer.Option("--label-column", help="its label columns, comma-separated")] = "",
    json: Json = False,
) -> None:
    """Read data as elbo train does, and show what it has."""
    from elboroom.data import registry
    from elboroom.data.text import Reading

    reading = Reading(text_column=text_column, label_column=label_column)
    found = registry.load(data, size=size, reading=reading, labels=labels, label_kinds=label_kinds)
    about = found.about
    values = {0: "real", 2: "black and white", 256: "bytes"}.get(about.levels, f"{about.levels:,} levels")
    told: dict[str, Any] = {
        "name": about.name,
        "kind": about.kind,
        "examples": len(found),
        "shape": list(about.shape),
        "values": f"vocabulary of {about.levels:,}" if about.kind == "tokens" else values,
        "splits": {name: len(rows) for name, rows in found.splits.items()},
        "hash": found.hash,
    }
    fields = [vars(field) for field in found.fields.values()]
    if json:
        return print_json(told | {"labels": fields})
    splits = ", ".join(f"{count:,} {name}" for name, count in told["splits"].items())
    shape = " x ".join(map(str, about.shape)) if about.kind != "tokens" else f"up to {about.shape[0]} tokens"
    shown = told | {"examples": f"{len(found):,}", "shape": shape, "splits": splits}
    print_table(["data", ""], [[name, value] for name, value in shown.items()])
    if fields:
        rows = [[f.name, f.kind, f.size, _few(f.classes or range(f.size))] for f in found.fields.values()]
        print_table(["label", "kind", "values", "classes"], rows)


def _few(classes: Sequence[object]) -> str:
    return ", ".join(map(str, classes[:SHOWN])) + (", ..." if len(classes) > SHOWN else "")


@data_app.command("get")
def data_get(
    name: str,
    to: Annotated[
        Path | None, typer.Option("--to", help="the folder to download it to", show_default="the cache")
    ] = None,
    source: Annotated[str | None, typer.Option("--source", help="another web address of the same files")] = None,
    json: Json = False,
) -> None:
    """Find a data set, or download it, with resume and checksum."""
    from rich.console import Console
    from rich.progress import Progress

    from elboroom.data import registry

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        found = registry.get(name, to, lambda done, total: bar.update(task, completed=done, total=total), source)
    print_json(found) if json else say(f"{name}: {found['state']}, {found['folder']}")


@data_app.command("check")
def data_check(
    name: str,
    against: Annotated[Path | None, typer.Option("--against", help="the original .npz file")] = None,
    json: Json = False,
) -> None:
    """Compare a data set with its original, or its files with their checksums."""
    from elboroom.data import registry

    found = registry.check(name, against)
    print_json(found) if json else say("  ".join(f"{key} {value}" for key, value in found.items()))
