"""Spec: all that a run is made from, as kept in spec.json."""

from __future__ import annotations

import hashlib
import json
import platform
import shlex
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy
import torch
from pydantic import BaseModel, ConfigDict, Field

from elboroom.build.parts import Choices
from elboroom.build.registry import Card, checked
from elboroom.core.files import refuse_links, write_json
from elboroom.core.problem import Problem, nearest
from elboroom.data.dataset import About, DataSet
from elboroom.data.labels import NONE
from elboroom.data.text import Reading
from elboroom.methods import card
from elboroom.training.batches import steps_of
from elboroom.training.fit import Fit

FORMAT = 1


def versions() -> dict[str, str]:
    """What the numbers of a run may depend on."""
    return {
        "elboroom": version("elboroom"),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
    }


def _flag(name: str, value: Any) -> str:
    """An option as it is typed."""
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no-{name}"
    return f"--{name} {shlex.quote(str(value))}"


class Ground(BaseModel):
    """The run that stands frozen under another: where it is, its step, and a hash of the weights of its model."""

    model_config = ConfigDict(extra="forbid")

    folder: str
    step: int
    hash: str


class Spec(BaseModel):
    """Method, options, data with hash and split, seed, threads and versions."""

    model_config = ConfigDict(extra="forbid")

    format: int = FORMAT
    method: str
    options: dict[str, Any]
    model: Choices
    fit: Fit
    data: dict[str, Any]  # about, source, size, labels, label_kinds, hash, splits
    until: int  # the step at which the run ends; more than fit.steps if it was prolonged
    own: list[str] = Field(default_factory=list)  # what the user handed in: data, encoder, decoder
    warm: str = ""  # the run whose weights it started from
    base: Ground | None = None  # the run that stands frozen under it
    versions: dict[str, str] = Field(default_factory=versions)
    id: str = ""  # a hash of what the run was begun with, which its checkpoints carry too

    @property
    def about(self) -> About:
        """What the model needs to know of the data."""
        return About.from_json(self.data["about"])

    @property
    def reading(self) -> Reading:
        """How its text became tokens."""
        return Reading(**self.data.get("reading", {}))

    @property
    def labelling(self) -> dict[str, Any]:
        """The table and the kinds of labels that were said, as the data is loaded with; old runs looked for no table."""
        return {"labels": self.data.get("labels", NONE), "label_kinds": self.data.get("label_kinds")}

    @property
    def card(self) -> Card:
        """The registered method."""
        return card(self.method)

    @property
    def axes(self) -> dict[str, str]:
        """The posterior and prior that the user chose, by axis."""
        return {axis: name for axis in ("posterior", "prior") if (name := getattr(self.model, axis)) != "auto"}

    @property
    def title(self) -> str:
        """The method, and what was chosen beside it: `vae --posterior nsf`."""
        return " ".join([self.method, *(f"--{axis} {name}" for axis, name in self.axes.items())])

    @property
    def command(self) -> str:
        """The command that makes this run again."""
        flags = {name: self.data.get(key) for name, key in (("data", "source"), ("size", "size"), ("labels", "labels"))}
        flags["label_kinds"] = ",".join(f"{name}={kind}" for name, kind in self.data.get("label_kinds", {}).items())
        flags |= self.reading.model_dump(exclude_defaults=True)
        flags |= {k: v for k, v in self.options.items() if v != self._default(k)}
        flags |= self.model.model_dump(exclude_defaults=True) | self.fit.model_dump(exclude_defaults=True)
        flags["steps"] = self.fit.steps
        flags |= {"from": self.warm, "base": self.base.folder if self.base else ""}
        told = {k: v for k, v in flags.items() if v not in (None, "") and k != "epochs"}
        return " ".join(["elbo train", self.method, *(_flag(k.replace("_", "-"), v) for k, v in told.items())])

    def _default(self, name: str) -> Any:
        return next(o.default_for(self.about.kind) for o in self.card.options if o.name == name)

    def write(self, folder: Path) -> None:
        """Keeps it in the run's folder."""
        write_json(folder / "spec.json", self.model_dump())

    @classmethod
    def read(cls, folder: Path) -> Spec:
        """The spec of a run's folder."""
        path = folder / "spec.json"
        if not folder.exists():
            raise Problem(f"{folder} does not exist")
        if not path.exists():
            raise Problem(f"{folder} is not a run: it has no spec.json")
        refuse_links(folder)
        try:
            content = json.loads(path.read_text())
            kept = int(content["format"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Problem(f"{path} cannot be read ({error})") from error
        if kept > FORMAT:
            raise Problem(
                f"{folder} has format {kept}, newer than the {FORMAT} that this elboroom reads: update elboroom"
            )
        return checked(cls, content)


def specify(
    method: str,
    data: DataSet,
    source: str,
    size: int | None,
    given: dict[str, Any],
    reading: Reading | None = None,
    labels: str | None = None,
    base: Ground | None = None,
) -> Spec:
    """The spec for options named as in the signatures of the builder, Choices and Fit; refuses what none of them has."""
    kind = data.draft.kind  # text is tokenised when it is split, and not before
    if kind != "tokens" and reading not in (None, Reading()):
        told = next(iter(reading.model_dump(exclude_defaults=True)))
        raise Problem(f"--{told.replace('_', '-')} is for text, but {data.draft.name} is {kind}")
    entry = card(method)
    rooms = dict.fromkeys(Choices.model_fields, Choices) | dict.fromkeys(Fit.model_fields, Fit)
    own = {o.name for o in entry.options}
    for name in given:
        if name not in own and name not in rooms:
            flag, hint = name.replace("_", "-"), nearest(name, [*own, *rooms]).replace("_", "-")
            raise Problem(f"{method} has no option --{flag}{hint}")
    options = entry.validate({k: v for k, v in given.items() if k in own}, kind)
    choices = checked(Choices, {k: v for k, v in given.items() if rooms.get(k) is Choices and k not in own})
    choices = choices.for_kind(kind)
    fit = checked(Fit, {k: v for k, v in given.items() if rooms.get(k) is Fit and k not in own}).for_kind(kind)
    data = split(data, fit, entry.looks)
    if fit.batch_size > data.about.n:
        raise Problem(
            f"--batch-size {fit.batch_size} is more than the {data.about.n} training examples; "
            f"use --batch-size {data.about.n} or less"
        )
    if fit.look_every and not fit.looks:
        raise Problem("--look-every has no effect without --patience or --decay plateau; remove it")
    if fit.epochs:
        steps = steps_of(data, "train", fit.batch_size, fit.order(kind), fit.epochs)
        fit = fit.model_copy(update={"steps": steps})
    spec = Spec(
        method=method,
        options=options,
        model=choices,
        fit=fit.model_copy(update={"threads": fit.threads or torch.get_num_threads()}),
        data={
            "about": data.about.to_json(),
            "source": source,
            "size": size,
            "labels": labels,
            "label_kinds": data.said_kinds,
            "hash": data.hash,
            "splits": {name: len(rows) for name, rows in data.splits.items()},
            "rows": data.split_hash,
            "classes": data.classes,
        }
        | ({"reading": (reading or Reading()).model_dump()} if kind == "tokens" else {}),
        until=fit.steps,
        base=base,
    )
    content = json.dumps(
        spec.model_dump(exclude={"id", "versions", *(["base"] if base is None else [])}), sort_keys=True
    )
    return spec.model_copy(update={"id": hashlib.sha256(content.encode()).hexdigest()[:16]})


def split(data: DataSet, fit: Fit, looks: bool = False) -> DataSet:
    """The data with a test split where it has none, and a validation split where a watch needs one."""
    share = data.holdout if fit.holdout is None else fit.holdout
    if "test" not in data.splits and share:
        data = data.hold_out(share)
    if "valid" not in data.splits and (fit.looks or looks):
        data = data.hold_out(0.05, "valid")
    return data
