"""Kept: what metrics.json may hold, so that the numbers of a stranger's run are read as ours are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from elboroom.core.problem import Problem

NAME = 200  # characters of the name of a metric


class _Said(BaseModel):
    """What may say more than the tables read again."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)
    __pydantic_extra__: dict[str, JsonValue]


class Heading(BaseModel):
    """The run that was measured."""

    model_config = ConfigDict(extra="forbid")

    method: str
    step: int = Field(ge=0)
    seed: int = Field(ge=0)
    id: str = ""
    title: str = ""
    parameters: int = Field(0, ge=0)


class Settings(_Said):
    """Those that tables read."""

    data: str = ""
    split: str = ""
    n: int = 0


class Interval(_Said):
    """Two ends, and the rule that made them."""

    low: float
    high: float
    how: str = ""
    n: int = 0
    mean: float = 0.0


class Kept(BaseModel):
    """A number with how it was measured, by its estimator or, of a metric of codes, its mode."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    value: float | None
    unit: str = ""
    metric: str = ""
    estimator: str = ""
    mode: str = ""
    settings: Settings = Field(default_factory=Settings)
    errors: dict[str, float] = Field(default_factory=dict)
    interval: Interval | None = None
    parts: dict[str, JsonValue] = Field(default_factory=dict)
    reason: str = ""
    note: str = ""

    @model_validator(mode="after")
    def _told(self) -> Kept:
        if not (self.estimator or self.mode):
            raise ValueError("a number without its estimator")
        return self


def check_numbers(content: Mapping[str, Any]) -> None:
    """Refuses what is not the content of a metrics.json: a heading, and numbers each with its estimator."""
    for name, entry in content.items():
        try:
            if len(name) > NAME or not isinstance(entry, Mapping):
                raise Problem(f"metrics.json has an unknown entry '{name[:NAME]}'")
            Heading(**entry) if name == "run" else Kept(**entry)
        except (ValidationError, TypeError) as error:
            where, why = tuple[int | str, ...](), str(error)
            if isinstance(error, ValidationError):
                where, why = error.errors()[0]["loc"], error.errors()[0]["msg"]
            raise Problem(f"metrics.json: {'.'.join(map(str, (name, *where)))}: {why.lower()}") from None
    if content and "run" not in content:
        raise Problem("metrics.json does not say which run was measured")
