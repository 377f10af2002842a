"""elbo data list, get, check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elboroom.commands.output import Json, print_json, print_table, say

data_app = typer.Typer(
    help="Data sets: list, get, check.", add_completion=False, no_args_is_help=True, rich_markup_mode=None
)


@data_app.command("list")
def data_list(json: Json = False) -> None:
    """What can be had, and where it was found."""
    from elboroom.data import registry

    rows = registry.listing()
    if json:
        return print_json(rows)
    shown = [row | {"counts": ", ".join(f"{n:,} {split}" for split, n in row["counts"].items())} for row in rows]
    print_table(list(rows[0]), [list(row.values()) for row in shown])


@data_app.command("get")
def data_get(
    name: str,
    to: Annotated[Path | None, typer.Option("--to", help="the folder to put it in", show_default="the cache")] = None,
    source: Annotated[str | None, typer.Option("--source", help="another web folder with the same files")] = None,
    json: Json = False,
) -> None:
    """Find a data set, or download it: with resume and checksum."""
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
    against: Annotated[Path | None, typer.Option("--against", help="a .npz file of the original")] = None,
    json: Json = False,
) -> None:
    """Compare a data set with its original, or its files with their checksums."""
    from elboroom.data import registry

    found = registry.check(name, against)
    print_json(found) if json else say("  ".join(f"{key} {value}" for key, value in found.items()))
