"""Arrays in files: .npy, mapped and not read, and .npz with one array, with labels beside it, or with one for each split."""

from __future__ import annotations

import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elboroom.core.memory import require
from elboroom.core.problem import Problem, unknown
from elboroom.data.arrays import dataset, numbered
from elboroom.data.dataset import DataSet

ODD = (
    zipfile.BadZipFile,
    tokenize.TokenError,  # of a header that never ends
    zlib.error,
    NotImplementedError,
    RuntimeError,
    SyntaxError,
    TypeError,
    KeyError,
    OverflowError,
)
UNREADABLE = (OSError, EOFError, ValueError, AttributeError, *ODD)
EXAMPLES = ("x", "X", "images", "imgs", "data")
LABELS = ("y", "Y", "labels", "label")
LABEL_NAMES = ("y_names", "names", "label_names")
SPLITS = {"train": "train", "valid": "valid", "validation": "valid", "val": "valid", "dev": "valid", "test": "test"}


def read(path: Path, key: str | None = None, levels: int | None = None) -> DataSet:
    """The data set in a .npy file (mapped, not read) or a .npz file; `key` picks one array of several."""
    name = f"{path}:{key}" if key else str(path)
    if not path.is_file():
        raise Problem(f"{path} does not exist")
    try:
        if path.suffix == ".npy":
            return dataset(np.load(path, mmap_mode="r", allow_pickle=False), name, levels=levels)
    except UNREADABLE as error:
        raise Problem(f"{path} cannot be read as an array: {error}") from error
    with archive(path) as found:
        if key is None and (parts := _parts_of(found.files)):
            return _joined(found, parts, name, levels)
        x = _examples(found.files, key, path)
        beside = [] if key else [k for k in found.files if k != x]
        return dataset(found[x], name, _beside(found, x, beside, path) if beside else None, levels)


def values(path: Path, key: str | None = None) -> NDArray[Any]:
    """The array in a .npy file (mapped, not read) or a .npz file as it is, whatever its shape and values."""
    if not path.is_file():
        raise Problem(f"{path} does not exist")
    if path.suffix != ".npy":
        with archive(path) as found:
            return np.asarray(found[_examples(found.files, key, path)])
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except UNREADABLE as error:
        raise Problem(f"{path} cannot be read as an array: {error}") from error


def _parts_of(keys: Sequence[str]) -> dict[str, dict[str, str]]:
    """By split, the keys of its examples and of its labels: x_train and y_train, train_images and train_labels, train."""
    parts: dict[str, dict[str, str]] = {}
    for key in keys:
        words = key.replace("-", "_").lower().split("_")
        said = [SPLITS[word] for word in words if word in SPLITS]
        rest = "_".join(word for word in words if word not in SPLITS)
        role = "x" if rest in ("", *map(str.lower, EXAMPLES)) else "y" if rest in map(str.lower, LABELS) else ""
        if len(said) != 1 or not role or role in parts.get(said[0], {}):
            return {}
        parts.setdefault(said[0], {})[role] = key
    return parts if "x" in parts.get("train", {}) and all("x" in part for part in parts.values()) else {}


def _joined(found: Any, parts: Mapping[str, Mapping[str, str]], name: str, levels: int | None) -> DataSet:
    """The data set of an archive that has an array for each split, with labels for all splits or for none."""
    order = [split for split in dict.fromkeys(SPLITS.values()) if split in parts]
    x = [np.asarray(found[parts[split]["x"]]) for split in order]
    if len({(array.shape[1:], array.dtype.kind) for array in x}) > 1:
        shapes = ", ".join(f"{parts[split]['x']} {array.shape}" for split, array in zip(order, x, strict=True))
        raise Problem(f"the splits of '{name}' do not fit together: {shapes}")
    with_y = [split for split in order if "y" in parts[split]]
    if with_y and with_y != order:
        raise Problem(f"'{name}' has labels of {' and '.join(with_y)}, but not of all its splits; give all, or none")
    for split, array in zip(order, x, strict=True):
        if with_y and len(found[parts[split]["y"]]) != len(array):
            raise Problem(f"'{name}': {parts[split]['y']} has not one label for each of {parts[split]['x']}")
    y = np.concatenate([np.asarray(found[parts[split]["y"]]) for split in order]) if with_y else None
    ends = np.cumsum([0, *map(len, x)])
    splits = {split: np.arange(ends[i], ends[i + 1]) for i, split in enumerate(order)}
    return dataset(np.concatenate(x), name, y, levels, splits)


@contextmanager
def archive(path: Path) -> Iterator[Any]:
    """A .npz file whose arrays fit into memory and are what their headers say; nothing is unpickled."""
    try:
        with np.load(path, allow_pickle=False) as found:
            for key in found.files:
                _honest(found, key, path)
            yield found
    except UNREADABLE as error:
        raise Problem(f"{path} cannot be read as an array: {error}") from error


def _examples(keys: list[str], key: str | None, path: Path) -> str:
    """The array that holds the examples."""
    if key is not None:
        if key not in keys:
            raise unknown("array", key, keys, path.name)
        return key
    likely = [k for k in keys if k in EXAMPLES] if len(keys) > 1 else keys
    if len(likely) != 1:
        raise _unclear(keys, path)
    return likely[0]


def _beside(archive: Any, x: str, keys: list[str], path: Path) -> NDArray[Any] | dict[str, NDArray[Any]]:
    """The labels among the arrays beside x: columns of its length, and one table of columns with their names or none."""
    n, shapes = _header(archive, x)[0], {key: _header(archive, key) for key in keys}
    tables = [key for key in keys if key in LABELS and len(shapes[key]) == 2 and shapes[key][0] == n]
    named = [key for key in keys if key in LABEL_NAMES] if tables else []
    columns = [key for key in keys if key not in (*tables, *named)]
    if any(shapes[key] != (n,) for key in columns if key not in LABELS) or len(tables) > 1 or len(named) > 1:
        raise _unclear(archive.files, path)
    if not tables and len(columns) == 1 and columns[0] in LABELS:
        return np.asarray(archive[columns[0]])  # called label, whatever its key
    found = {key: np.asarray(archive[key]) for key in columns}
    for key in tables:
        values = np.asarray(archive[key])
        names = np.asarray(archive[named[0]]).ravel() if named else numbered(values.shape[1])
        if len(names) != values.shape[1]:
            raise Problem(f"{path} has {values.shape[1]} label columns in {key}, but {len(names)} label names")
        more = dict(zip(map(str, names), values.T, strict=True))
        if len(more) < len(names) or more.keys() & found:
            raise Problem(f"{path} has two labels with the same name")
        found = more | found
    return found


def _unclear(keys: Sequence[str], path: Path) -> Problem:
    return Problem(f"{path} has {', '.join(sorted(keys)) or 'no arrays'}; choose one with {path}:KEY")


def _header(archive: Any, key: str) -> tuple[int, ...]:
    """The shape of an array in an archive, read without the array; nothing is unpickled."""
    with archive.zip.open(f"{key}.npy") as member:
        version = np.lib.format.read_magic(member)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape: tuple[int, ...] = read(member)[0]
        return shape


def _honest(archive: Any, key: str, path: Path) -> None:
    """Refuses an array that is larger than memory, or whose header promises more than the archive has of it."""
    member = next(name for name in (f"{key}.npy", key) if name in archive.zip.namelist())
    require(archive.zip.getinfo(member).file_size, f"{key} of {path}")
    if member.endswith(".npy") and math.prod(_header(archive, key)) > archive.zip.getinfo(member).file_size:
        raise Problem(f"{path} cannot be read as an array: {key} has fewer values than its header says")
