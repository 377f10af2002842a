"""Data that was handed in, kept in the folder of its run where it is small, so that the run can be measured by itself."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from elboroom.core.files import write
from elboroom.core.problem import Problem
from elboroom.data.archives import archive
from elboroom.data.dataset import About, DataSet
from elboroom.data.stores import Bytes, Reals, Store
from elboroom.data.text import Reading, gather

FILE = "data.npz"
MOST = 32 << 20  # bytes of data that a run keeps a copy of


class Said(BaseModel):
    """What is beside the arrays of the file."""

    model_config = ConfigDict(extra="forbid")

    name: str
    kind: str
    shape: tuple[int, ...]
    levels: int
    top: int  # the byte that stands for 1; 0 of reals and text
    labels: dict[str, int]
    kinds: dict[str, str]
    classes: dict[str, list[str]]
    holdout: float
    splits: list[str]


def keep(data: DataSet, folder: Path) -> bool:
    """Writes a copy into a folder; nothing where it is large, or more than arrays and sentences with labels."""
    data = data.plain
    x, top = _raw(data)
    if x is None or x.nbytes > MOST or data.label_values or data.draft.sequences:
        return False
    about = data.draft
    shape, levels = ((1,), 0) if about.kind == "tokens" else (about.shape, about.levels)
    said = Said(
        name=about.name, kind=about.kind, shape=shape, levels=levels, top=top, labels=about.labels, kinds=dict(about.kinds),
        classes={name: list(values) for name, values in data.classes.items()}, holdout=data.holdout, splits=list(data.splits),
    )  # fmt: skip
    splits = {f"split-{number}": rows for number, rows in enumerate(data.splits.values())}
    told = np.frombuffer(said.model_dump_json().encode(), np.uint8)
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, x=x, labels=data.labels, said=told, **splits)
    write(folder / FILE, content.getvalue())
    return True


def _raw(data: DataSet) -> tuple[NDArray[np.generic] | None, int]:
    """The examples as they are kept, and what stands for 1; of text its sentences, which are all for training then."""
    if data.draft.kind == "tokens":
        rows = data.splits["train"]
        if [*data.splits] != ["train"] or not data.is_read or not np.array_equal(rows, np.arange(len(data))):
            return None, 0
        return np.frombuffer("\n".join(data.sentences(rows)).encode(), np.uint8), 0
    store = data.store
    if isinstance(store, Bytes):
        return store.array, store.top
    return (store.array, 0) if isinstance(store, Reals) else (None, 0)


def read(folder: Path, reading: Reading) -> DataSet | None:
    """The data that a run keeps, or None."""
    path = folder / FILE
    if not path.is_file():
        return None
    with archive(path) as found:
        try:
            said = Said.model_validate_json(bytes(np.asarray(found["said"], np.uint8)))
        except ValidationError as error:
            raise Problem(f"{path} is damaged: {error.errors()[0]['msg']}") from None
        x, labels = np.asarray(found["x"]), np.asarray(found["labels"])
        splits = {name: np.asarray(found[f"split-{number}"]) for number, name in enumerate(said.splits)}
    if said.kind == "tokens":
        values = [
            tuple(said.classes[name][i] for name, i in zip(said.labels, row, strict=True)) for row in labels.tolist()
        ]
        sentences = zip(bytes(x).decode().split("\n"), values, strict=True)
        return gather(said.name, {"train": sentences}, {n: said.classes[n] for n in said.labels}, reading, said.holdout)
    about = About.from_json(
        {**said.model_dump(include={"name", "kind", "shape", "labels", "kinds", "levels"}), "n": len(x)}
    )
    store: Store = Bytes(x, said.top) if said.top else Reals(x)
    return DataSet(about, store, splits, labels, holdout=said.holdout, classes=said.classes)
