"""Flags: the command `elbo train METHOD`, with every option of the catalogue as a flag."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand

from elboroom.commands.catalogue import Entry, Flag
from elboroom.commands.data import LABEL_KINDS, LABELS, LEVELS
from elboroom.commands.output import Logger


def _parameter(flag: Flag, panel: str) -> inspect.Parameter:
    """One flag. Its default is None, so that what was not said stays the signature's affair."""
    help = "; ".join(part for part in (flag.text, flag.bounds) if part)
    name = flag.name.replace("_", "-")
    said = f"--{name}/--no-{name}" if flag.type is bool else f"--{name}"
    option = typer.Option(said, help=help, show_default=flag.default, rich_help_panel=panel)
    return _keyword(flag.name, flag.type | None, None, option)


def _keyword(name: str, kind: Any, default: Any, option: Any) -> inspect.Parameter:
    annotation = Annotated[kind, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


class Sectioned(TyperCommand):
    """A command whose help has a section for each kind of option."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections.setdefault(getattr(parameter, "rich_help_panel", None) or "Options", []).append(record)
        for name, records in sections.items():
            with formatter.section(name):
                formatter.write_dl(records)


OWN = (
    ("data", str | None, None,
     typer.Option("--data", help="a name from elbo data list, a folder of images or text, a .npy, .npz, table or text file",
                  show_default="dsprites, or that of the recipe")),
    ("recipe", str | None, None,
     typer.Option("--recipe", help="a setting from elbo recipes, or a .toml file of your own; options said beside it win")),
    ("size", int | None, None, typer.Option("--size", help="resize the images of a folder to SIZE x SIZE")),
    ("levels", int | None, None, LEVELS),
    ("labels", str | None, None, LABELS),
    ("label_kinds", str | None, None, LABEL_KINDS),
    ("out", Path | None, None,
     typer.Option("--out", help="the folder of the run", show_default="runs/METHOD-DATA-SEED")),
    ("overwrite", bool, False, typer.Option("--overwrite", help="take away the run that is at --out")),
    ("warm", Path | None, None, typer.Option("--from", help="start from the weights of another run")),
    ("base", Path | None, None, typer.Option("--base", help="a trained run that stands frozen under this one")),
    ("logger", *get_args(Logger)[:1], "", *get_args(Logger)[1:]),
    ("json", bool, False, typer.Option("--json", help="print the result as JSON")),
)  # fmt: skip


def command(entry: Entry, shared: dict[str, list[Flag]], train: Callable[..., None]) -> Any:
    """The command `elbo train METHOD` for one method; an option of its own stands for a shared one of that name."""

    def run(**given: Any) -> None:
        own = {name: given.pop(name) for name, *_ in OWN}
        train(entry.name, own, {name: value for name, value in given.items() if value is not None})

    flags = {flag.name: _parameter(flag, entry.name) for flag in entry.flags}
    for section, more in shared.items():
        flags |= {flag.name: _parameter(flag, section) for flag in more if flag.name not in flags}
    parameters = [*(_keyword(*own) for own in OWN), *flags.values()]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    notes = [
        f"\b\n{part}" if part.startswith("- ") else part for part in entry.notes.split("\n\n")
    ]  # lists keep their lines
    run.__doc__ = "\n\n".join(part for part in (entry.summary, f"loss = {entry.formula}", *notes, entry.paper) if part)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(entry.name, cls=Sectioned)(run)
    return typer.main.get_command(app)
