"""elbo recipes."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from elboroom.commands.output import Json, print_json, print_table
from elboroom.training import recipe
from elboroom.training.recipe import WORDS, Recipe


def recipes(
    name: Annotated[str | None, typer.Argument(help="one recipe, with all that it sets; or a .toml file")] = None,
    json: Json = False,
) -> None:
    """List the recipes: published settings, for elbo train METHOD --recipe NAME."""
    chosen = [recipe.find(name)] if name else list(recipe.recipes().values())
    if json:
        return print_json([one.model_dump() for one in chosen])
    if name:
        return _show(chosen[0])
    rows: list[list[Any]] = [[one.name, one.summary, ", ".join(one.methods) or "any", one.source] for one in chosen]
    print_table(["recipe", "what it is for", "methods", "source"], rows)


def _show(one: Recipe) -> None:
    """A recipe as it is read: where it is from, then its options as they would be typed."""
    kinds = ", ".join(WORDS[kind] for kind in one.on)
    told = {
        "source": one.source,
        "for": kinds,
        "methods": ", ".join(one.methods) or "any",
        "published on": one.published,
        "data": one.data or "to be said with --data",
        "note": one.note,
    }
    print(f"{one.name}: {one.summary}\n")
    print("\n".join(f"{key}: {' '.join(text.split())}" for key, text in told.items() if text))
    places = {WORDS[kind]: getattr(one, kind) for kind in one.on} | one.method
    for place, options in {"all": one.options, **places}.items():
        if options:
            print(f"\n{place}:\n" + "\n".join(f"  --{key.replace('_', '-')} {_typed(v)}" for key, v in options.items()))


def _typed(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
