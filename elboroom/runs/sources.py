"""A sample by what a user calls it: a file of numbers, a data set or a run, its values as they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elboroom.core.memory import require
from elboroom.core.problem import Problem, unknown
from elboroom.data import archives, registry
from elboroom.data.dataset import DataSet
from elboroom.data.sources import SOURCES
from elboroom.runs.lifecycle import load

CHANNELS = (1, 3)


@dataclass(frozen=True)
class Sample:
    """Rows of numbers with a name; `shape` is (C, H, W) where they are images."""

    name: str
    rows: NDArray[Any]  # (n, d)
    total: int  # of which they were drawn
    shape: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return len(self.rows)


def sample(source: str, most: int = 10_000, seed: int = 0, paired: bool = False) -> Sample:
    """At most so many rows of a source, drawn at random.

    A .npy or .npz (file.npz:key) is taken as it is, whatever its values are; of a data set by name (mnist, mnist:train) and of
    a folder of images pixels are in [0, 1], of the test split where there is one and none is said; a run is sampled from
    its prior. Rows that are `paired` with those of another sample are all taken, in their order.
    """
    path = Path(source).expanduser()
    file, colon, key = source.rpartition(":")
    if path.suffix in (".npy", ".npz") or (colon and file.endswith(".npz")):
        values = archives.values(*((Path(file).expanduser(), key) if file.endswith(".npz") else (path, None)))
        if not values.ndim:
            raise Problem(f"{source} has shape {values.shape}; give one row per example")
        chosen = slice(None) if paired else _drawn(np.arange(len(values)), most, seed)
        return _of(source, np.asarray(values[chosen]), len(values))
    if (path / "spec.json").is_file():
        run = load(path)
        if run.tokeniser is not None:
            raise Problem(f"{source} is a model of text, whose samples are no numbers; use elbo eval --metrics text")
        return _of(f"samples of {path.name}", np.asarray(run.sample(most, seed)), most)
    name, colon, split = source.partition(":")
    named = name in SOURCES and bool(colon)
    data = registry.load(name if named else source)
    if data.draft.kind == "tokens":
        raise Problem(f"{source} is text; elbo compare takes arrays, as elbo encode writes them")
    rows = _split(data, split) if named else data.splits.get("test", data.splits["train"])
    require(8 * (len(rows) if paired else min(most, len(rows))) * math.prod(data.about.shape), f"the rows of {source}")
    return _of(source, data.x(rows if paired else _drawn(rows, most, seed)).numpy(), len(rows))


def _split(data: DataSet, name: str) -> NDArray[np.int64]:
    if name not in data.splits:
        raise unknown("split", name, data.splits, data.draft.name)
    return data.splits[name]


def _drawn(rows: NDArray[np.int64], most: int, seed: int) -> NDArray[np.int64]:
    """At most so many of these rows, in their order."""
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))


def _of(name: str, values: NDArray[Any], total: int) -> Sample:
    """The sample of an array of any shape; images are told by theirs, and flattened channel by channel."""
    if not values.size:
        raise Problem(f"{name} has no rows")
    if values.ndim == 4 and values.shape[3] in CHANNELS and values.shape[1] not in CHANNELS:
        values = np.moveaxis(values, -1, 1)
    image = values[:, None].shape[1:] if values.ndim == 3 else values.shape[1:]
    shape = tuple(image) if len(image) == 3 and image[0] in CHANNELS else None
    return Sample(name, values.reshape(len(values), -1), total, shape)
