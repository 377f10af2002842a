"""elbo methods."""

from __future__ import annotations

from typing import Annotated

import typer

from elboroom.commands import catalogue
from elboroom.commands.output import Json, print_json, print_table


def methods(name: Annotated[str | None, typer.Argument(help="one method")] = None, json: Json = False) -> None:
    """List the methods with formula, citation and options."""
    chosen = [catalogue.entry(known) for known in ([name] if name else catalogue.names())]
    if json:
        shown = ("name", "summary", "formula", "paper", "options")
        return print_json([{key: getattr(entry, key) for key in shown} for entry in chosen])
    print_table(["method", "loss", "paper"], [[entry.name, entry.formula, entry.paper] for entry in chosen])
