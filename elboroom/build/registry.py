"""The registry: a method is a builder whose signature is its flags, its sweep axes and its documentation."""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from elboroom.core.problem import Problem, nearest, unknown
from elboroom.core.stages import Trainable
from elboroom.data.dataset import Kind

if TYPE_CHECKING:
    from elboroom.build.parts import Parts

Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Weighing = Annotated[float | None, Field(ge=0)]  # nats an example; left out, the published one times the mean length
Share = Annotated[float, Field(ge=0, lt=1)]
Count = Annotated[int, Field(ge=1)]
Places = Annotated[int, Field(ge=0)]
Span = Annotated[float, Field(ge=0)]  # up to 1 a fraction of the run, above it a number of steps

# Options that several methods have, with what they mean
Warmup = Annotated[
    float,
    Field(
        ge=0,
        description="how long the weight of the KL rises to 1, from 0 or --start: up to 1 a fraction of the run, "
        "above it steps",
    ),
]
Start = Annotated[float, Field(ge=0, description="initial weight of the KL")]
FreeBits = Annotated[
    float,
    Field(ge=0, description="KL floor in nats, applied to the batch mean; below it the prior gets no gradient"),
]
CriticLR = Annotated[float, Field(gt=0, description="learning rate of the critic")]

KINDS: tuple[Kind, ...] = get_args(Kind)
Built = TypeVar("Built", bound=Trainable)

_CARDS: dict[str, Card] = {}


@dataclass(frozen=True)
class ByData:
    """A default that depends on the kind of data."""

    other: Any
    kinds: Mapping[str, Any]

    def of(self, kind: str) -> Any:
        """The default for this kind."""
        return self.kinds.get(kind, self.other)


def by_data(other: Any, **kinds: Any) -> Any:
    """`by_data(6.0, tokens=1.0)`: 6 for images, 1 for text."""
    return ByData(other, kinds)


@dataclass(frozen=True)
class Option:
    """One option as its signature states it."""

    name: str
    annotation: Any
    default: Any
    help: str = ""

    def default_for(self, kind: str) -> Any:
        """The default on this kind of data."""
        return self.default.of(kind) if isinstance(self.default, ByData) else self.default


def _meaning(annotation: Any) -> str:
    """The description in a type such as Annotated[float, Field(description=...)]."""
    said = (getattr(item, "description", None) for item in getattr(annotation, "__metadata__", ()))
    return next(filter(None, said), "")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", validate_default=True, allow_inf_nan=False)


@dataclass(frozen=True)
class Card:
    """A registered method: its name, formula, paper, options and builder."""

    name: str
    formula: str
    paper: str
    builder: Callable[..., Trainable]
    on: tuple[Kind, ...] = KINDS  # the kinds of data that it is for
    looks: bool = False  # whether it looks at a validation split as it trains
    needs_base: bool = False  # whether a trained run stands frozen under it
    needs_given: bool = False  # whether its decoder is given a label: the only one of the data, where none is said
    needs_context: bool = False  # whether it reads a context without being told to
    takes_base: bool = False  # whether a trained run may stand under it
    autoencoder: bool = False  # whether its code is to hold all of x, and no KL says otherwise

    @property
    def base_reads(self) -> str:
        """What the run under it reads: x, or the context of a method that needs both."""
        return "context" if self.needs_context and self.needs_base else "x"

    @property
    def purpose(self) -> str:
        """What it is for, as its file says."""
        return str(getattr(sys.modules.get(self.builder.__module__), "PURPOSE", ""))

    @property
    def shown_on(self) -> str:
        """The data of its examples, where its file says one."""
        return str(getattr(sys.modules.get(self.builder.__module__), "SHOWN_ON", ""))

    @property
    def summary(self) -> str:
        """The first line of the builder's docstring."""
        return (inspect.getdoc(self.builder) or "").split("\n")[0]

    @property
    def notes(self) -> str:
        """The rest of the docstring, without its lines on the options."""
        lines = (inspect.getdoc(self.builder) or "").split("\n")[1:]
        return "\n".join(line for line in lines if not self._on_option(line)).strip()

    @property
    def options(self) -> list[Option]:
        """The options of the builder: types and defaults from its signature, their meaning from lines `name: ...`.

        One that has no such line means what its type says.
        """
        hints = typing.get_type_hints(self.builder, include_extras=True)
        said = dict(filter(None, map(self._on_option, (inspect.getdoc(self.builder) or "").split("\n"))))
        return [
            Option(p.name, hints[p.name], p.default, said.get(p.name) or _meaning(hints[p.name]))
            for p in self._parameters()
        ]

    def _parameters(self) -> list[inspect.Parameter]:
        return list(inspect.signature(self.builder).parameters.values())[1:]

    def _on_option(self, line: str) -> tuple[str, str] | None:
        """(name, meaning) if a line of the docstring is about an option."""
        name, colon, text = line.partition(": ")
        return (name, text.strip()) if colon and name in {p.name for p in self._parameters()} else None

    def validate(self, given: Mapping[str, Any], kind: str) -> dict[str, Any]:
        """All options with their values; refuses unknown names and values out of range."""
        fields: dict[str, Any] = {o.name: (o.annotation, o.default_for(kind)) for o in self.options}
        return checked(create_model(self.name, __base__=_Strict, **fields), given).model_dump()

    def build(self, parts: Parts, given: Mapping[str, Any]) -> Trainable:
        """The method on these parts."""
        if parts.about.kind not in self.on:
            raise Problem(f"{self.name} works on {' and '.join(self.on)}; {parts.about.name} is {parts.about.kind}")
        if parts.base is not None and not (self.needs_base or self.takes_base):
            raise Problem(f"--base has no effect with {self.name}; remove it")
        if self.needs_context:
            parts.require_context()
        return self.builder(parts, **self.validate(given, parts.about.kind))


def method(
    name: str,
    formula: str,
    paper: str,
    on: tuple[Kind, ...] = KINDS,
    looks: bool = False,
    needs_base: bool = False,
    needs_given: bool = False,
    needs_context: bool = False,
    takes_base: bool = False,
    autoencoder: bool = False,
) -> Callable[[Callable[..., Built]], Callable[..., Built]]:
    """Registers a builder."""

    def register(builder: Callable[..., Built]) -> Callable[..., Built]:
        if name in _CARDS and _CARDS[name].builder.__module__ != builder.__module__:
            raise Problem(f"a method '{name}' exists already; choose another name for yours")
        _CARDS[name] = Card(
            name, formula, paper, builder, on, looks, needs_base, needs_given, needs_context, takes_base, autoencoder
        )
        return builder

    return register


def refuse_idle(why: str, **options: tuple[object, object]) -> None:
    """Refuses options of a method that were set, each beside its default, where nothing reads them."""
    for name, (value, default) in options.items():
        if value != default:
            raise Problem(f"--{name.replace('_', '-')} has no effect {why}")


def cards() -> dict[str, Card]:
    """Every registered method by name."""
    return dict(sorted(_CARDS.items()))


def card(name: str) -> Card:
    """One registered method."""
    if name not in _CARDS:
        raise Problem(f"{unknown('method', name, _CARDS)} (to use your own: elbo --with FILE, or import it first)")
    return _CARDS[name]


M = TypeVar("M", bound=BaseModel)


def checked(model: type[M], given: Mapping[str, Any], where: str = "") -> M:
    """The options as a validated model, or one sentence that says what is wrong; where: the file that they are from."""
    try:
        return model(**given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        if where:
            place = ".".join(str(part) for part in first["loc"])
            said = first["msg"].removeprefix("Value error, ")
            raise Problem(f"{where} is damaged: {place or 'it'}: {said[0].lower()}{said[1:]}") from None
        flag = "--" + ".".join(str(part) for part in first["loc"]).replace("_", "-")
        if first["type"] == "extra_forbidden":
            hint = nearest(str(first["loc"][0]), model.model_fields)
            raise Problem(f"unknown option {flag}{hint.replace('_', '-')}") from None
        message = first["msg"].removeprefix("Value error, ")
        raise Problem(f"{flag} {first['input']!r}: {message[0].lower()}{message[1:]}") from None
