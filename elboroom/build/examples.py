"""Examples: a command worth a try for each method, on data of the kind that it is for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from elboroom.build.choices import Choices
from elboroom.build.registry import Card, checked
from elboroom.core.problem import Problem

LINE = 110  # characters


def data(card: Card) -> str:
    """The data set of the example."""
    return card.shown_on or ("dsprites" if "pixels" in card.on else "sentences")


def options(card: Card) -> dict[str, Any]:
    """All that the example says."""
    return option(card) | labelled(card) | (under(card) if card.needs_base else {})


def base(card: Card) -> str:
    """The method of a run that it can stand on: one that reads contexts, where it needs them."""
    return "seq2seq" if card.needs_context else "vae"


def under(card: Card) -> dict[str, Any]:
    """The run that it stands on, and where the context is that this reads."""
    if card.needs_context:
        return {"label_column": "style", "context_column": "french", "base": "runs/seq2seq-multi30k-fr-en-0"}
    return {"base": "runs/vae-dsprites-0" if data(card) == "dsprites" else f"runs/ae-{data(card)}-0"}


def command(card: Card) -> str:
    """The example as a command."""
    flags = "".join(f" --{name.replace('_', '-')} {_value(value)}" for name, value in options(card).items())
    return f"elbo train {card.name} --data {data(card)}{flags}"


def call(card: Card) -> str:
    """The example in Python, an argument a line where that would be a long one."""
    said = {"data": data(card)} | options(card)
    words = [f'"{card.name}"', *(f"{name}={json.dumps(value)}" for name, value in said.items())]
    one = f"elboroom.train({', '.join(words)})"
    return one if len(one) <= LINE else "elboroom.train(\n" + "".join(f"    {word},\n" for word in words) + ")"


def option(card: Card) -> dict[str, Any]:
    """An option that is worth a try, with a value that is not its default.

    It is one of the model that the first line of the method names, else a number of its own: the one that gave the method
    its name, or the first.
    """
    kind = "pixels" if data(card) == "dsprites" else "tokens"
    for flag in re.findall(r"--([\w-]+)", card.summary):
        name = flag.replace("-", "_")
        field = Choices.model_fields[name]
        for value in [*(field.examples or ()), *_around(field.default)]:
            if _is_legal(partial(checked, Choices, {name: value})):
                return {name: value}
    for option in sorted(card.options, key=lambda option: option.name not in card.name.split("-")):
        for value in _around(option.default_for(kind)):
            if _is_legal(partial(card.validate, {option.name: value}, kind)):
                return {option.name: value}
    return {}


def labelled(card: Card) -> dict[str, Any]:
    """The label that a method needs to be told of data that has several."""
    label = {"dsprites": "shape", "sentences": "polarity"}.get(data(card), "style")
    names = {option.name for option in card.options}
    own = {"label": label} if "label" in names else {}
    own |= {"to": "positive"} if "to" in names else {}
    return own | ({"given": label} if card.needs_given else {})


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _around(value: Any) -> tuple[Any, ...]:
    """Twice a number and half of it; nothing for what is none, or 0."""
    return (2 * value, type(value)(value / 2)) if type(value) in (int, float) and value else ()


def _is_legal(make: Callable[[], Any]) -> bool:
    try:
        make()
    except Problem:
        return False
    return True
