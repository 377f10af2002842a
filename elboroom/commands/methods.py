"""elbo methods."""

from __future__ import annotations

from typing import Annotated

import typer

from elboroom.commands import catalogue
from elboroom.commands.catalogue import Entry
from elboroom.commands.output import Json, harmless, print_json, print_table

KINDS = {"pixels": "images", "vectors": "vectors", "tokens": "text"}


def methods(name: Annotated[str | None, typer.Argument(help="one method")] = None, json: Json = False) -> None:
    """List the methods with what they are for, or show the page of one: formula, paper, options, an example."""
    chosen = [catalogue.entry(known) for known in ([name] if name else catalogue.names())]
    if json:
        shown = ("name", "purpose", "summary", "formula", "paper", "on", "options", "example")
        return print_json([{key: getattr(entry, key) for key in shown} for entry in chosen])
    if name:
        return _page(chosen[0])
    rows: list[list[object]] = [[entry.name, entry.purpose, entry.formula, entry.paper] for entry in chosen]
    print_table(["method", "what it is for", "loss", "paper"], rows)


def _page(entry: Entry) -> None:
    """All that is known of a method."""
    facts = {
        "what it is for": entry.purpose,
        "data": ", ".join(KINDS.get(kind, kind) for kind in entry.on),
        "loss": entry.formula,
        "paper": entry.paper,
    }
    lines = [f"{entry.name}: {entry.summary}", "", *(f"{key}: {said}" for key, said in facts.items() if said)]
    print(harmless("\n".join([*lines, *(["", entry.notes] if entry.notes else []), ""])))
    if entry.flags:
        rows: list[list[object]] = [
            [f"--{flag.name.replace('_', '-')}", flag.default, "; ".join(filter(None, (flag.text, flag.bounds)))]
            for flag in entry.flags
        ]
        print_table(["option", "default", "meaning"], rows)
    print(harmless(f"example: {entry.example}"))
    print(f"all options: elbo train {entry.name} --help")
