"""Recipes: published settings by name, or of your own file, that stand in for options nobody has said.

Neither torch nor any method is imported for them: `elbo recipes` starts at once.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from elboroom.core.problem import Problem, nearest, unknown

Value = bool | int | float | str
Options = dict[str, Value]
WORDS = {"pixels": "images", "vectors": "vectors", "tokens": "text"}
NOT_OPTIONS = ("data", "size", "labels", "label_kinds", "out", "warm", "from", "base", "logger", "recipe", "method")
# What goes when you say another: the rate of an optimiser is not that of the next one.
TOGETHER = {
    "steps": ("epochs",),
    "epochs": ("steps",),
    "optimiser": ("lr", "momentum", "weight_decay"),
    "decay": ("lr_end", "decay_patience", "decay_times", "decay_from"),
}


class Recipe(BaseModel):
    """A setting with its source. Options are of all its runs, of those on one kind of data, and of those of one method."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str  # as it was asked for: a name, or the path of a file
    summary: str = ""  # what it is for
    source: str = ""  # paper and section
    published: str = ""  # the data that it was published on
    data: str = ""  # those that it is run on where none are said
    on: list[Literal["pixels", "vectors", "tokens"]] = ["pixels", "vectors", "tokens"]
    methods: list[str] = Field(default_factory=list)  # those it was published for, the usual one first; none is any
    note: str = ""  # what differs here, and what is not certain
    options: Options = Field(default_factory=dict)
    pixels: Options = Field(default_factory=dict)
    vectors: Options = Field(default_factory=dict)
    tokens: Options = Field(default_factory=dict)
    method: dict[str, Options] = Field(default_factory=dict)

    @field_validator("options", "pixels", "vectors", "tokens")
    @classmethod
    def _of_a_run(cls, options: Options) -> Options:
        for name in options:
            if name in NOT_OPTIONS:
                raise ValueError(f"'{name}' is not an option of training")
        return options

    def sets(self, method: str, kind: str) -> Options:
        """What it says for a method on a kind of data; the narrower word wins."""
        return {**self.options, **getattr(self, kind), **self.method.get(method, {})}

    def beside(self, said: Mapping[str, Any], method: str, kind: str) -> dict[str, Any]:
        """All options: what was said, and what it says of the others; an optimiser, say, brings its own rate."""
        gone = {name for other in said for name in TOGETHER.get(other, ())}
        if said.get("patience") == 0:
            gone.add("look_every")
        return {name: value for name, value in self.sets(method, kind).items() if name not in gone} | dict(said)

    def refuse(self, kind: str, data: str) -> None:
        """Refuses data of a kind that it is not for."""
        if kind not in self.on:
            good = " and ".join(WORDS[one] for one in self.on)
            raise Problem(f"the recipe {self.name} is for {good}, and {Path(data).name or data} is {WORDS[kind]}")

    def usual_method(self) -> str:
        """The method that it was published for first; refuses where it is for any."""
        if not self.methods:
            raise Problem(
                f"the recipe {self.name} names no method: say which, as in elbo train vae --recipe {self.name}"
            )
        return self.methods[0]

    def usual_data(self) -> str:
        """The data that it is run on where none are said; refuses where it names none."""
        if not self.data:
            raise Problem(f"the recipe {self.name} names no data that elbo has: say which with --data")
        return self.data

    @contextmanager
    def named(self, said: Mapping[str, Any]) -> Iterator[None]:
        """Problems with an option that it has set, and nobody else, say so."""
        try:
            yield
        except Problem as problem:
            tables = (self.options, self.pixels, self.vectors, self.tokens, *self.method.values())
            own = {name for table in tables for name in table} - set(said)
            words = str(problem).replace(",", " ").replace(";", " ").replace(":", " ").split()
            if any(f"--{name.replace('_', '-')}" in words for name in own) and self.name not in str(problem):
                raise Problem(f"{problem} (the recipe {self.name} sets it)") from None
            raise


def recipes() -> dict[str, Recipe]:
    """The recipes that come along, by name."""
    return dict(_along())


@cache
def _along() -> dict[str, Recipe]:
    found = (entry for entry in (files("elboroom.training") / "recipes").iterdir() if entry.name.endswith(".toml"))
    texts = {entry.name.removesuffix(".toml"): entry.read_text(encoding="utf-8") for entry in found}
    return {name: _read(name, text) for name, text in sorted(texts.items())}


def find(place: str | Path) -> Recipe:
    """A recipe by its name, or of a file."""
    if str(place) in recipes():
        return recipes()[str(place)]
    path = Path(place).expanduser()
    if path.suffix == ".toml" or len(path.parts) > 1:
        if not path.is_file():
            raise Problem(f"--recipe {place}: there is no such file")
        try:
            return _read(str(path.resolve()), path.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            raise Problem(f"--recipe {place} is not a text file in UTF-8") from None
    raise unknown("recipe", str(place), recipes())


def lasting(place: str | Path) -> str:
    """A recipe as it can be asked for from any folder."""
    return find(place).name


def _read(name: str, text: str) -> Recipe:
    try:
        return Recipe(**{"name": name} | tomllib.loads(text) | {"name": name})
    except tomllib.TOMLDecodeError as error:
        raise Problem(f"{name} is not valid TOML: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part not in ("bool", "int", "float", "str"))
        if first["type"] == "extra_forbidden":
            hint = nearest(place, Recipe.model_fields) or "; options stand under [options]"
            raise Problem(f"{name}: a recipe has no '{place}'{hint}") from None
        said = first["msg"].removeprefix("Value error, ")
        raise Problem(f"{name}: {place}: {said[0].lower()}{said[1:]}") from None
