"""Flags: `elbo train METHOD` reads its options off the signatures of the builder, of Choices and of Fit."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from annotated_types import Ge, Gt, Le, Lt
from typer.core import TyperCommand

from elboroom.build.parts import Choices
from elboroom.build.registry import ByData, Card
from elboroom.commands.data import LABEL_KINDS, LABELS
from elboroom.data.text import Reading
from elboroom.training.fit import Fit

OWN = ("data", "size", "labels", "label_kinds", "out", "warm", "json")  # flags that every method has


def _plain(annotation: Any) -> tuple[Any, list[Any]]:
    """A type that a command line can parse, and the bounds that stand beside it."""
    if typing.get_origin(annotation) is Annotated:
        base, *extra = typing.get_args(annotation)
        bounds = [bound for item in extra for bound in getattr(item, "metadata", [item])]
        return _plain(base)[0], bounds
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return next(kind for kind in typing.get_args(annotation) if kind is not type(None)), []
    return annotation, []


def _range(bounds: list[Any]) -> str:
    """The bounds in words."""
    words = {Ge: ("at least", "ge"), Gt: ("above", "gt"), Le: ("at most", "le"), Lt: ("below", "lt")}
    return ", ".join(f"{words[type(b)][0]} {getattr(b, words[type(b)][1]):g}" for b in bounds if type(b) in words)


def _shown(default: Any) -> str:
    if isinstance(default, ByData):
        kinds = ", ".join(f"{value} for {kind}" for kind, value in default.kinds.items())
        return f"{default.other}; {kinds}"
    if default is None:
        return "varies"  # with the data or the net, as its text says
    return f"{default:g}" if isinstance(default, float) else str(default)


def _parameter(name: str, annotation: Any, default: Any, text: str, panel: str) -> inspect.Parameter:
    """One flag. Its default is None, so that what was not said stays the signature's affair."""
    kind, bounds = _plain(annotation)
    help = "; ".join(part for part in (text, _range(bounds)) if part)
    flag = name.replace("_", "-")
    flags = f"--{flag}/--no-{flag}" if kind is bool else f"--{flag}"
    option = typer.Option(flags, help=help, show_default=_shown(default), rich_help_panel=panel)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
    )


def parameters(card: Card) -> list[inspect.Parameter]:
    """Every option of a method as a flag."""
    found = {o.name: _parameter(o.name, o.annotation, o.default, o.help, card.name) for o in card.options}
    for model, panel in ((Choices, "Model"), (Fit, "Training"), (Reading, "Text")):
        for name, field in model.model_fields.items():
            if name not in found:
                annotated = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
                found[name] = _parameter(name, annotated, field.default, field.description or "", panel)
    return list(found.values())


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


def command(card: Card, train: Callable[..., None]) -> Any:
    """The command `elbo train METHOD` for one method."""

    def run(**given: Any) -> None:
        own = {name: given.pop(name) for name in OWN}
        train(card.name, own, {name: value for name, value in given.items() if value is not None})

    fixed = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])
        for name, kind, default, option in (
            (
                "data",
                str,
                "dsprites",
                typer.Option(
                    "--data", help="a name of elbo data list, a folder of images or text, an .npy, .npz or text file"
                ),
            ),
            ("size", int | None, None, typer.Option("--size", help="resize the images of a folder to SIZE x SIZE")),
            ("labels", str | None, None, LABELS),
            ("label_kinds", str | None, None, LABEL_KINDS),
            (
                "out",
                Path | None,
                None,
                typer.Option("--out", help="the folder of the run", show_default="runs/METHOD-DATA-SEED"),
            ),
            ("warm", Path | None, None, typer.Option("--from", help="start from the weights of another run")),
            ("json", bool, False, typer.Option("--json", help="print the result as JSON")),
        )
    ]
    run.__signature__ = inspect.Signature([*fixed, *parameters(card)])  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in [*fixed, *parameters(card)]}
    notes = [
        f"\b\n{part}" if part.startswith("- ") else part for part in card.notes.split("\n\n")
    ]  # lists keep their lines
    run.__doc__ = "\n\n".join(part for part in (card.summary, f"loss = {card.formula}", *notes, card.paper) if part)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(card.name, cls=Sectioned)(run)
    return typer.main.get_command(app)
