"""What the commands share: arguments that many have, and how results are shown."""

from __future__ import annotations

import json as json_
import math
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from elboroom.core.problem import Problem, unknown

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="the folder of a run")]
Folders = Annotated[list[Path], typer.Argument(metavar="DIR...", help="the folders of runs")]
Json = Annotated[bool, typer.Option("--json", help="print as JSON")]
Logger = Annotated[
    str, typer.Option("--logger", help="tensorboard, mlflow or wandb; several comma-separated", show_default="none")
]
SplitName = Annotated[
    str | None, typer.Option("--split", help="train, valid or test", show_default="test if there is one")
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, max=2**63 - 1, help="seed of the noise and of the choice of examples")
]


Handed = Annotated[
    str | None,
    typer.Option(
        "--data", help="the data of the run, if it was an array or has moved", show_default="as it was trained on"
    ),
]


SAMPLERS = ("prior", "gmm", "flow", "kmeans")
SamplerName = Annotated[
    str,
    typer.Option(
        "--sampler", help="where z is drawn: prior, or gmm, flow or kmeans, fitted to the codes of training examples"
    ),
]
Components = Annotated[
    int | None, typer.Option("--components", min=1, help="of --sampler gmm and kmeans", show_default="10")
]


def sampler_of(name: str) -> Any:
    """A sampler that there is."""
    if name not in SAMPLERS:
        raise unknown("sampler", name, SAMPLERS)
    return name


def say(text: str) -> None:
    """A line for the person at the terminal."""
    print(harmless(text), file=sys.stderr)


def warn(text: str) -> None:
    """A line on what may not be as the person thinks."""
    say(f"elbo: warning: {text}")


def harmless(text: str) -> str:
    """The same without what a terminal would obey: a name in a stranger's folder is text and nothing else."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def print_json(content: Any) -> None:
    """The result for a program."""
    try:
        print(json_.dumps(content, indent=1, allow_nan=False, default=str))
    except ValueError:  # JSON has no NaN and no infinity
        print(json_.dumps(_finite(content), indent=1, allow_nan=False, default=str))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(columns: list[str], rows: list[list[object]], title: str = "") -> None:
    """The result for a person."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    def plain(cell: object, style: str = "") -> Text:  # no name or number is read as markup
        return Text(harmless(str(cell)), style)

    table = Table(box=box.SIMPLE_HEAD, title=plain(title, "table.title") if title else None)
    for column in columns:
        table.add_column(plain(column), overflow="fold")  # nothing is cut off
    for row in rows:
        table.add_row(*map(plain, row))
    console = Console()
    if not console.is_terminal:
        console.width = 140
    console.print(table)


def figure_file(path: Path) -> Path:
    """Where a figure goes; refuses what it cannot be written as."""
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise Problem(f"--out {path}: must be a .png, .svg or .pdf file")
    return path
