"""What the commands share: arguments that many have, and how results are shown."""

from __future__ import annotations

import json as json_
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from elboroom.core.problem import Problem

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="the folder of a run")]
Folders = Annotated[list[Path], typer.Argument(metavar="DIR...", help="the folders of runs")]
Json = Annotated[bool, typer.Option("--json", help="print as JSON")]
Logger = Annotated[
    str, typer.Option("--logger", help="tensorboard, mlflow or wandb; several comma-separated", show_default="none")
]
SplitName = Annotated[
    str | None, typer.Option("--split", help="train, valid or test", show_default="test if there is one")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="seed of the noise and of the choice of examples")]


def say(text: str) -> None:
    """A line for the person at the terminal."""
    print(text, file=sys.stderr)


def print_json(content: Any) -> None:
    """The result for a program."""
    print(json_.dumps(content, indent=1, allow_nan=False, default=str))


def print_table(columns: list[str], rows: list[list[object]], title: str = "") -> None:
    """The result for a person."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(*columns, box=box.SIMPLE_HEAD, title=title or None)
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    console = Console()
    if not console.is_terminal:
        console.width = 140
    console.print(table)


def figure_file(path: Path) -> Path:
    """Where a figure goes; refuses what it cannot be written as."""
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise Problem(f"--out {path}: must be a .png, .svg or .pdf file")
    return path
