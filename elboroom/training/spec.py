"""Spec: all that a run is made from, as kept in spec.json."""

from __future__ import annotations

import hashlib
import json
import platform
import shlex
import warnings
from collections.abc import Collection, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy
import torch
from pydantic import BaseModel, ConfigDict, Field, field_validator

from elboroom.build.parts import Choices
from elboroom.build.registry import Card, checked
from elboroom.build.suited import suited
from elboroom.core.files import read_json, refuse_links, write_json
from elboroom.core.problem import Problem, nearest
from elboroom.core.tongue import spoken
from elboroom.data.dataset import About, DataSet
from elboroom.data.labels import NONE
from elboroom.data.photos import OldPhotos, Photos
from elboroom.data.text import Reading
from elboroom.methods import card
from elboroom.training.batches import steps_of
from elboroom.training.fit import MANY, Fit
from elboroom.training.recipe import Recipe, find

FORMAT = 1
SIZE = 1 << 14  # the longest side of an image
EARLIER = {"ae-pretrained-free-bits": {"first": "draw"}}  # what runs did that were begun before an option was there


def versions() -> dict[str, str]:
    """What the numbers of a run may depend on."""
    return {
        "elboroom": version("elboroom"),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
    }


def flag(name: str, value: Any) -> str:
    """An option as it is typed."""
    name = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no-{name}"
    return f"--{name} {shlex.quote(str(value))}"


class Ground(BaseModel):
    """The run that stands frozen under another: where it is, its step, and a hash of the weights of its model."""

    model_config = ConfigDict(extra="forbid")

    folder: str
    step: int
    hash: str


class Described(BaseModel):
    """The data of a run as spec.json has it; what is not said was not known to the elboroom that wrote it."""

    model_config = ConfigDict(extra="forbid")

    about: dict[str, Any]
    source: str
    size: int | None = Field(ge=1, le=SIZE)
    labels: str | None = NONE
    label_kinds: dict[str, str] = Field(default_factory=dict)
    levels: int | None = Field(None, ge=2)
    hash: str
    splits: dict[str, int]
    rows: str | None = None
    classes: dict[str, list[str]] = Field(default_factory=dict)
    reading: Reading | None = None
    photos: Photos | None = None

    @field_validator("about")
    @classmethod
    def _about(cls, about: dict[str, Any]) -> dict[str, Any]:
        try:
            About.from_json(about)
        except Problem as problem:
            raise ValueError(str(problem)) from None
        return about


class Spec(BaseModel):
    """Method, options, data with hash and split, seed, threads and versions."""

    model_config = ConfigDict(extra="forbid")

    format: int = FORMAT
    method: str
    options: dict[str, Any]
    model: Choices
    fit: Fit
    data: dict[str, Any]  # as Described has it
    # The step at which the run ends: fewer than fit.steps if a watch has ended it, more if it was prolonged.
    until: int = Field(ge=1, le=2 * MANY)
    own: list[str] = Field(default_factory=list)  # what the user handed in: data, encoder, decoder
    suited: list[str] = Field(default_factory=list)  # the options that nobody said, chosen for the data
    warm: str = ""  # the run whose weights it started from
    base: Ground | None = None  # the run that stands frozen under it
    recipe: str = ""  # whose options stood in for what was not said; they are all kept above, so this is for the reader
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
        """The table and kinds of labels and the levels that were said, as the data is loaded with.

        Old runs looked for no table, and took all whole numbers but black and white ones for bytes.
        """
        of_old = 256 if self.about.kind == "pixels" and self.about.levels == 256 else None
        return {
            "labels": self.data.get("labels", NONE),
            "label_kinds": self.data.get("label_kinds"),
            "levels": self.data.get("levels", of_old),
            "photos": self.photos,
        }

    @property
    def photos(self) -> Photos:
        """How the pictures of its folder were read, in old runs as they were then."""
        said = self.data.get("photos")
        return OldPhotos() if said is None else Photos(**said)

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
        named = {"data": "source", "size": "size", "labels": "labels", "levels": "levels"}
        flags = {name: self.data.get(key) for name, key in named.items()}
        flags["label_kinds"] = ",".join(f"{name}={kind}" for name, kind in self.data.get("label_kinds", {}).items())
        flags |= self.reading.model_dump(exclude_defaults=True)
        flags |= Photos(**self.data["photos"]).model_dump(exclude_defaults=True) if self.data.get("photos") else {}
        defaults = {o.name: o.default_for(self.about.kind) for o in self.card.options}
        flags |= {k: v for k, v in self.options.items() if k in defaults and v != defaults[k]}  # not what went since
        flags |= self.model.model_dump(exclude_defaults=True) | self.fit.model_dump(exclude_defaults=True)
        chosen = suited(self.about, {}, card(self.method).autoencoder)  # where it is not said
        flags |= {k: v for k, v in (*self.model, *self.fit) if k in chosen}
        flags |= self._against_recipe()
        flags["steps"] = self.fit.steps
        flags |= {"from": self.warm, "base": self.base.folder if self.base else ""}
        told = {k: v for k, v in flags.items() if v not in (None, "") and k != "epochs"}
        return " ".join(["elbo train", self.method, *(flag(k, v) for k, v in told.items())])

    def _against_recipe(self) -> dict[str, Any]:
        """The recipe, and the value of all that it sets: what was said instead is said again, were it the default.

        A recipe of one's own that is gone, or says something else by now, is left out: the other flags are enough.
        """
        try:
            sets = find(self.recipe).sets(self.method, self.about.kind) if self.recipe else {}
        except Problem:
            return {}
        mine = self.reading.model_dump() | self.model.model_dump() | self.fit.model_dump() | self.options
        return {name: mine[name] for name in sets if name in mine} | {"recipe": self.recipe}

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
        content = read_json(path)
        kept = content.get("format")
        if not isinstance(kept, int):
            raise Problem(f"{path} is damaged: it has no format")
        if kept > FORMAT:
            raise Problem(
                f"{folder} has format {kept}, newer than the {FORMAT} that this elboroom reads: update elboroom"
            )
        if isinstance(options := content.get("options"), dict):
            content["options"] = EARLIER.get(str(content.get("method")), {}) | options
        spec = checked(cls, content, str(path))
        checked(Described, spec.data, f"{path}: data")
        if spec.fit.lr is None:  # which was chosen when it was written
            raise Problem(f"{path} is damaged: its fit has no lr")
        return spec


def refuse_unknown(method: str, names: Iterable[str], besides: Iterable[str] = ()) -> None:
    """Refuses names that are no option of this method, of the model or of training, nor any of those besides."""
    known = {*(o.name for o in card(method).options), *Choices.model_fields, *Fit.model_fields, *besides}
    for name in names:
        if name not in known:
            flag, hint = name.replace("_", "-"), nearest(name, known).replace("_", "-")
            raise Problem(f"{method} has no option --{flag}{hint}")


def specify(
    method: str,
    data: DataSet,
    source: str,
    size: int | None,
    given: dict[str, Any],
    reading: Reading | None = None,
    labels: str | None = None,
    base: Ground | None = None,
    levels: int | None = None,
    own: Collection[str] = (),
    recipe: Recipe | None = None,
    photos: Photos | None = None,
) -> Spec:
    """The spec for options named as in the signatures of the builder, Choices and Fit; refuses what none of them has.

    A recipe stands in for the options that are not given. What neither says is chosen for the data, unless the user's own
    nets or a trained run stand in the model.
    """
    kind = data.draft.kind  # text is tokenised when it is split, and not before
    if recipe is not None:
        recipe.refuse(kind, data.draft.name)
        for name in (*recipe.methods, *recipe.method):
            card(name)  # which refuses one that there is not
        of_text = Reading.model_fields if recipe.on == ["tokens"] else {}  # which is in `reading` by now
        mixed = {k: v for k, v in recipe.beside(given, method, kind).items() if k not in of_text}
        with recipe.named(given):
            made = specify(method, data, source, size, mixed, reading, labels, base, levels, own, photos=photos)
        return made.model_copy(update={"recipe": recipe.name})
    given = {
        name: value for name, value in given.items() if (name, value) != ("decay", "auto")
    }  # as if it was not said
    read = reading or Reading()
    tables = {"encoding": "utf-8"} | ({"label_column": ""} if kind == "vectors" else {})  # labels lie in tables too
    plain = read.model_copy(update=tables)
    if kind != "tokens" and plain != Reading():
        told = next(iter(plain.model_dump(exclude_defaults=True)))
        raise Problem(f"--{told.replace('_', '-')} is for text, but {data.draft.name} is {kind}")
    entry = card(method)
    rooms = dict.fromkeys(Choices.model_fields, Choices) | dict.fromkeys(Fit.model_fields, Fit)
    mine = {o.name for o in entry.options}
    refuse_unknown(method, given)
    if given.get("epochs") and given.get("steps") is not None:
        raise Problem("--steps and --epochs both say how long to train; give one of them")
    options = entry.validate({k: v for k, v in given.items() if k in mine}, kind)
    free = {k: v for k, v in given.items() if k not in mine}
    held = checked(Fit, {k: v for k, v in free.items() if rooms[k] is Fit})
    data = split(data, held, entry.looks)
    chosen = {} if {"encoder", "decoder"} & {*own} or base else suited(data.draft, options | given, entry.autoencoder)
    free = {k: v for k, v in chosen.items() if k not in mine} | free
    fit = checked(Fit, {k: v for k, v in free.items() if rooms[k] is Fit}).for_kind(kind)
    choices = checked(Choices, {k: v for k, v in free.items() if rooms[k] is Choices}).for_kind(kind, fit.optimiser)
    if entry.needs_given and not choices.given_names:
        choices = choices.model_copy(update={"given": only_label(method, data)})
    if fit.batch_size > data.about.n:
        if "batch_size" in given:
            few = (
                f"--batch-size {fit.batch_size} is more than the {data.about.n} training examples; it is {data.about.n}"
            )
            warnings.warn(spoken(few), stacklevel=3)
        fit = fit.model_copy(update={"batch_size": data.about.n})
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
            "levels": levels,
            "hash": data.hash,
            "splits": {name: len(rows) for name, rows in data.splits.items()},
            "rows": data.split_hash,
            "classes": data.classes,
        }
        | ({"reading": read.model_dump()} if kind == "tokens" or read != Reading() else {})
        | ({"photos": (photos or Photos()).model_dump()} if kind == "pixels" and Path(source).is_dir() else {}),
        until=fit.steps,
        base=base,
        own=list(own),
        suited=[name for name in chosen if name in free and name not in given],
    )
    content = json.dumps(
        spec.model_dump(exclude={"id", "versions", "recipe", *(["base"] if base is None else [])}), sort_keys=True
    )
    return spec.model_copy(update={"id": hashlib.sha256(content.encode()).hexdigest()[:16]})


def only_label(method: str, data: DataSet) -> str:
    """The label of a data set that has one; of several, the user says which."""
    labels = data.draft.labels
    if not labels:
        raise Problem(f"{method} gives its decoder a label, and {data.draft.name} has none")
    if len(labels) > 1:
        raise Problem(f"{method} gives its decoder a label; say which with --given: {', '.join(labels)}")
    return next(iter(labels))


def read_as(said: dict[str, Any], method: str, recipe: Recipe | None = None) -> Reading:
    """How text is read: as said, else as a recipe for text says."""
    sets = recipe.sets(method, "tokens") if recipe is not None and recipe.on == ["tokens"] else {}
    return checked(Reading, {name: value for name, value in sets.items() if name in Reading.model_fields} | said)


def split(data: DataSet, fit: Fit, looks: bool = False) -> DataSet:
    """The data with a test split where it has none, and a validation split where a watch needs one."""
    share = data.holdout if fit.holdout is None else fit.holdout
    if "test" not in data.splits and share:
        data = data.hold_out(share)
    if "valid" not in data.splits and (fit.looks or looks):
        data = data.hold_out(0.05, "valid")
    return data
