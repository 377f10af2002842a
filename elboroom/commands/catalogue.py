"""The catalogue: what commands show of methods, flags and figures, kept in a file so that none of them waits for torch.

It is derived from the signatures and written by `make docs`. Where the files that it was derived from have changed since,
or methods come from elsewhere, the signatures themselves are read instead: it is never out of date.
"""

from __future__ import annotations

import hashlib
import json
import sys
import types
import typing
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from elboroom.build import plugins

if TYPE_CHECKING:
    from elboroom.build.registry import Card

FILE = Path(__file__).with_suffix(".json")
SOURCES = (
    "methods/*.py",
    "build/*.py",
    "nets/*.py",
    "training/fit.py",
    "data/text.py",
    "data/lines.py",
    "data/photos.py",
    "plots/*.py",
    "commands/catalogue.py",
)
TYPES = {kind.__name__: kind for kind in (int, float, bool, str)}


@dataclass(frozen=True)
class Flag:
    """One option as a command line has it: its type, its default as shown, its meaning and its bounds in words."""

    name: str
    type: Any
    default: str
    text: str
    bounds: str


@dataclass(frozen=True)
class Entry:
    """A method as the commands show it; `options` are its own with their defaults."""

    name: str
    summary: str
    notes: str
    formula: str
    paper: str
    on: list[str]
    options: dict[str, Any]
    flags: list[Flag]
    purpose: str
    example: str


def names() -> list[str]:
    """The names of all methods."""
    if _is_current():
        return list(_kept()["methods"])
    from elboroom.methods import cards

    return list(cards())


def entry(name: str) -> Entry:
    """One method; refuses a name that there is not."""
    if _is_current() and name in _kept()["methods"]:
        told = _kept()["methods"][name]
        return Entry(**told | {"flags": [_flag(flag) for flag in told["flags"]]})
    from elboroom.methods import card

    return _entry(card(name))


def having(option: str) -> list[str]:
    """The methods that have an option of this name of their own, those that are called after it first."""
    found = [name for name in names() if option in entry(name).options]
    return sorted(found, key=lambda name: (not name.startswith(option), len(name)))


def shared() -> dict[str, list[Flag]]:
    """The flags that every method has, by their section of the help."""
    if _is_current():
        return {section: [_flag(flag) for flag in flags] for section, flags in _kept()["shared"].items()}
    return _shared()


def figures() -> dict[str, str]:
    """What each figure shows, by its name."""
    if _is_current():
        return dict(_kept()["figures"])
    return _figures()


def derived() -> str:
    """The text of the catalogue, from the signatures."""
    from elboroom.methods import cards

    content = {
        "fingerprint": fingerprint(),
        "figures": _figures(),
        "shared": {section: [asdict(flag) for flag in flags] for section, flags in _shared().items()},
        "methods": {name: asdict(_entry(card)) for name, card in cards().items()},
    }
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False, default=_word) + "\n"


def fingerprint() -> str:
    """Of all files that the catalogue is derived from."""
    root, whole = FILE.parents[1], hashlib.sha256()
    for path in sorted(path for pattern in SOURCES for path in root.glob(pattern)):
        whole.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n"))
    return whole.hexdigest()


def _is_current() -> bool:
    """Whether the file may be believed; what is imported already is asked itself."""
    return "elboroom.build.registry" not in sys.modules and bool(_kept())


@cache
def _kept() -> dict[str, Any]:
    """The file; nothing if other sources are here than those that it was derived from, or methods from elsewhere."""
    content: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return content if content.get("fingerprint") == fingerprint() and not plugins.present() else {}


def _flag(told: dict[str, Any]) -> Flag:
    kind = told["type"]
    return Flag(**told | {"type": TYPES[kind] if isinstance(kind, str) else typing.Literal[tuple(kind)]})


def _word(kind: Any) -> Any:
    """A type in the file: its name, or the choices that it has."""
    return list(typing.get_args(kind)) or kind.__name__


def _entry(card: Card) -> Entry:
    from elboroom.build import examples
    from elboroom.build.registry import ByData

    options = {}
    for option in card.options:
        default = option.default
        options[option.name] = {"other": default.other, **default.kinds} if isinstance(default, ByData) else default
    flags = [_derived(o.name, o.annotation, o.default, o.help) for o in card.options]
    example, kinds = examples.command(card), [str(kind) for kind in card.on]
    about = (card.name, card.summary, card.notes, card.formula, card.paper)
    return Entry(*about, kinds, options, flags, card.purpose, example)


def _shared() -> dict[str, list[Flag]]:
    from elboroom.build.parts import Choices
    from elboroom.build.suited import NAMES
    from elboroom.data.photos import Photos
    from elboroom.data.text import Reading
    from elboroom.training.fit import Fit

    return {
        section: [
            _derived(
                name,
                Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation,
                None if name in NAMES else field.default,
                field.description or "",
            )
            for name, field in model.model_fields.items()
        ]
        for section, model in (("Model", Choices), ("Training", Fit), ("Text", Reading), ("Folders of images", Photos))
    }


def _figures() -> dict[str, str]:
    from elboroom.plots.figures import listing

    return listing()


def _derived(name: str, annotation: Any, default: Any, text: str) -> Flag:
    kind, bounds = _plain(annotation)
    return Flag(name, kind, _shown(default), text, ", ".join(_in_words(bounds)))


def _plain(annotation: Any) -> tuple[Any, list[Any]]:
    """A type that a command line can parse, and the bounds that stand beside it."""
    if typing.get_origin(annotation) is Annotated:
        base, *extra = typing.get_args(annotation)
        bounds = [bound for item in extra for bound in getattr(item, "metadata", [item])]
        return _plain(base)[0], bounds
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return next(kind for kind in typing.get_args(annotation) if kind is not type(None)), []
    return annotation, []


def _in_words(bounds: list[Any]) -> Iterator[str]:
    for bound in bounds:
        for word, sign in (("at least", "ge"), ("above", "gt"), ("at most", "le"), ("below", "lt")):
            if hasattr(bound, sign):
                yield f"{word} {getattr(bound, sign):g}"


def _shown(default: Any) -> str:
    from elboroom.build.registry import ByData

    if isinstance(default, ByData):
        kinds = ", ".join(f"{value} for {kind}" for kind, value in default.kinds.items())
        return f"{default.other}; {kinds}"
    if default is None:
        return "varies"  # with the data or the net, as its text says
    return f"{default:g}" if isinstance(default, float) else str(default)
