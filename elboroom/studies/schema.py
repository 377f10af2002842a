"""The tables of a study file: what every run has, which runs there are, how they are measured, what is searched for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictInt, ValidationError, field_serializer, model_validator

from elboroom.core.problem import Problem, nearest
from elboroom.evaluate.disentanglement.registry import find
from elboroom.evaluate.registry import Goal, goal


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)


class Measure(_Strict):
    """What every run is measured by. ELBO and its parts, IW-K, active units and mutual information always are."""

    metrics: list[str] = Field(default_factory=list)  # names of elbo eval --metrics
    mode: str | dict[str, str] = "dlib"  # of all metrics that have it, the others in their first; or by metric
    representation: Literal["mean", "sampled"] = "mean"
    smaller: bool = False  # whether a protocol may take fewer rows than it asks for
    samples: int = Field(100, ge=1)  # K of the importance-weighted bound
    most: int = Field(10_000, ge=2)  # examples of the split
    labels: list[int] = Field(default_factory=list)  # sizes of the label-efficiency curve
    predictor: Literal["boosting", "logistic"] = "boosting"
    flips: bool = False  # drift and overlap under flipped pixels
    codes: int = Field(10_000, ge=0)  # examples whose codes are kept for UDR; 0 keeps none

    @model_validator(mode="after")
    def _known(self) -> Measure:
        try:
            known = {name: find(name) for name in self.metrics}
            for name, mode in self.mode.items() if isinstance(self.mode, dict) else ():
                find(name).mode(mode)
        except Problem as problem:
            raise ValueError(str(problem)) from None
        modes = {mode for entry in known.values() for mode in entry.modes}
        if isinstance(self.mode, str) and self.mode not in {"dlib", *modes}:
            raise ValueError(f"no metric of this study has the mode '{self.mode}'{nearest(self.mode, modes)}")
        return self


class Search(_Strict):
    """What a search looks for: the settings in which a measured quantity, its median over the seeds, is best."""

    metric: str
    goal: Goal | None = None  # by default as the metric goes
    trials: int = Field(20, ge=1)
    seed: int = Field(0, ge=0)  # of the sampler

    @field_serializer("goal")
    def sought(self, said: Goal | None) -> Goal | None:
        """The goal as it is kept: what was said, or else as the metric goes; None where neither way is better."""
        return said or goal(self.metric)


class Tables(_Strict):
    """The tables of a study file."""

    name: str = ""
    data: str | list[str] = "dsprites"
    size: int | list[int] | None = None
    seeds: StrictInt | list[StrictInt] = 1
    draw_seed: int = Field(0, ge=0)
    every: dict[str, Any] = Field(default_factory=dict)  # options of every run
    runs: list[dict[str, Any]]
    measure: Measure = Field(default_factory=Measure)
    search: Search | None = None


T = TypeVar("T", bound=BaseModel)


def read(model: type[T], given: Mapping[str, Any], where: str) -> T:
    """The tables as a validated model, or one sentence that says what is wrong."""
    try:
        return model(**given)
    except ValidationError as error:
        first = error.errors()[0]
        place = [str(part) for part in first["loc"]]
        if first["type"] == "extra_forbidden":
            inside: dict[str, type[BaseModel]] = {"measure": Measure, "search": Search}
            fields = inside.get(place[0], model) if len(place) > 1 else model
            raise Problem(f"{where} has no '{place[-1]}'{nearest(place[-1], fields.model_fields)}") from None
        if first["type"] == "missing":
            raise Problem(f"{where} needs {'[[runs]]' if place == ['runs'] else '.'.join(place)}") from None
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] == "value_error":  # of our own, which says all there is to say
            raise Problem(f"{where}: {message}") from None
        raise Problem(f"{where}: {'.'.join(place)} {first['input']!r}: {message[0].lower()}{message[1:]}") from None
