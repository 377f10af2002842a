"""A user's own arrays: what they hold is read off their shape and values, and checked before anything is trained."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from elboroom.core.problem import Problem, unknown
from elboroom.data.dataset import CHUNK, About, Bytes, DataSet, Reals, Store
from elboroom.data.labels import Labels

EXAMPLES = ("x", "X", "images", "imgs", "data")
LABELS = ("y", "Y", "labels", "label")
LABEL_NAMES = ("y_names", "names", "label_names")
HOLDOUT = 0.1


def dataset(
    array: NDArray[Any] | Tensor,
    name: str = "array",
    labels: NDArray[Any] | Mapping[str, NDArray[Any]] | None = None,
) -> DataSet:
    """The data set of an array: (N, D) are real vectors; (N, H, W), (N, H, W, C) and (N, C, H, W) are pixels.

    C is 1 or 3. Where both places fit, a torch tensor is read as (N, C, H, W) and a numpy array as (N, H, W, C). Labels
    are one column, several (N, K), which are called label1 to labelK, or a column for each name.
    """
    first = isinstance(array, Tensor)
    values = array.detach().cpu().numpy() if isinstance(array, Tensor) else array
    if values.dtype.kind not in "buif":
        raise Problem(f"'{name}' has values of type {values.dtype}; it must have numbers")
    if values.ndim not in (2, 3, 4) or 0 in values.shape[1:]:
        raise Problem(
            f"'{name}' has shape {values.shape}; use (N, D) for vectors, (N, H, W), (N, H, W, C) or (N, C, H, W) for images"
        )
    _finite(values, name)
    store: Store
    if values.ndim == 2:
        store, levels, shape = Reals(values.astype(np.float32)), 0, values.shape[1:]
    else:
        images = _channels(values, name, first)
        store, levels = pixels(images, name)
        shape = images.shape[1:]
    classes, columns = _labels(labels, len(values), name)
    names = {label: len(known) for label, known in classes.items()}
    kind = "vectors" if values.ndim == 2 else "pixels"
    about = About(name, kind, tuple(shape), len(values), names, levels)  # type: ignore[arg-type]
    return DataSet(about, store, labels=columns, holdout=HOLDOUT, classes=classes)


def read(path: Path, key: str | None = None) -> DataSet:
    """The data set in a .npy file (mapped, not read) or a .npz file; `key` picks one array of several."""
    name = f"{path}:{key}" if key else str(path)
    if not path.is_file():
        raise Problem(f"{path} does not exist")
    try:
        if path.suffix == ".npy":
            return dataset(np.load(path, mmap_mode="r", allow_pickle=False), name)
        with np.load(path, allow_pickle=False) as archive:
            x = _examples(archive.files, key, path)
            beside = [] if key else [k for k in archive.files if k != x]
            return dataset(archive[x], name, _beside(archive, x, beside, path) if beside else None)
    except (OSError, EOFError, ValueError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
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
        names = np.asarray(archive[named[0]]).ravel() if named else _numbered(values.shape[1])
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


def _numbered(count: int) -> list[str]:
    return ["label"] if count == 1 else [f"label{k}" for k in range(1, count + 1)]


def pixels(images: NDArray[Any], name: str) -> tuple[Store, int]:
    """Images (N, C, H, W) in the smallest form that loses nothing, and their levels: 2, 256, or 0 for real values."""
    low = min((float(part.min()) for part in _parts(images)), default=0.0)
    high = max((float(part.max()) for part in _parts(images)), default=0.0)
    whole = images.dtype.kind in "bui" or all(bool(np.all(part == np.rint(part))) for part in _parts(images))
    if low < 0 or high > (255 if whole else 1):
        raise Problem(
            f"'{name}' has values from {low:g} to {high:g}; pixels must be bytes from 0 to 255 or reals in [0, 1]"
        )
    if whole:
        kept = images if images.dtype == np.uint8 else images.astype(np.uint8)
        two = high <= 1 or (high == 255 and all(bool(np.all((p == 0) | (p == 255))) for p in _parts(kept)))
        return Bytes(kept, 1 if high <= 1 else 255), 2 if two else 256
    if all(bool(np.all((np.rint(part * 255) / 255).astype(part.dtype) == part)) for part in _parts(images)):
        kept = np.empty(images.shape, np.uint8)
        for start, part in zip(_starts(images), _parts(images), strict=True):
            kept[start : start + len(part)] = np.rint(part * 255)
        return Bytes(kept), 256
    return Reals(images.astype(np.float32)), 0


def _channels(values: NDArray[Any], name: str, tensor: bool) -> NDArray[Any]:
    """The same images as (N, C, H, W)."""
    if values.ndim == 3:
        return values[:, None]
    before, after = values.shape[1] in (1, 3), values.shape[3] in (1, 3)
    if not before and not after:
        raise Problem(f"'{name}' has shape {values.shape}; its second or last axis must be the channels, 1 or 3")
    return values if before and (tensor or not after) else np.moveaxis(values, -1, 1)


def _finite(values: NDArray[Any], name: str) -> None:
    if values.dtype.kind != "f":
        return
    bad, row = 0, -1
    for start, part in zip(_starts(values), _parts(values), strict=True):
        wrong = ~np.isfinite(part.reshape(len(part), -1))
        if wrong.any():
            row = start + int(np.flatnonzero(wrong.any(axis=1))[0]) if row < 0 else row
            bad += int(wrong.sum())
    if bad:
        raise Problem(
            f"'{name}' has {bad:,} {'values that are' if bad > 1 else 'value that is'} NaN or infinite, the first in row {row}"
        )


def _labels(labels: NDArray[Any] | Mapping[str, NDArray[Any]] | None, n: int, name: str) -> Labels:
    """The labels with their values in order."""
    if not isinstance(labels, Mapping):
        table = np.zeros((n, 0)) if labels is None else np.asarray(labels)
        table = table[:, None] if table.ndim == 1 else table
        if table.ndim != 2 or len(table) != n:
            raise Problem(
                f"'{name}' has {n} examples but labels of shape {np.asarray(labels).shape}; give one row of labels per example"
            )
        labels = dict(zip(_numbered(table.shape[1]), table.T, strict=True)) if table.shape[1] else {}
    classes, columns = dict[str, tuple[str, ...]](), [np.zeros((n, 0), np.int64)]
    for label, values in labels.items():
        known, column = _column(np.asarray(values), n, "" if label == "label" else f" '{label}'", name)
        classes[label] = known
        columns.append(column)
    return Labels(classes, np.column_stack(columns))


def _column(values: NDArray[Any], n: int, label: str, name: str) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    if values.shape not in ((n,), (n, 1)):
        raise Problem(
            f"'{name}' has {n} examples but labels{label} of shape {values.shape}; give one label per example"
        )
    if values.dtype.kind not in "buifU":
        raise Problem(
            f"the labels{label} of '{name}' are of type {values.dtype}; they must be whole numbers or strings"
        )
    if values.dtype.kind == "f" and not (np.all(np.isfinite(values)) and np.all(values == np.rint(values))):
        raise Problem(f"the labels{label} of '{name}' must be whole numbers")
    known, column = np.unique(values.ravel(), return_inverse=True)
    return tuple(v if isinstance(v, str) else str(int(v)) for v in known.tolist()), column.reshape(n)


def _starts(array: NDArray[Any]) -> range:
    return range(0, len(array), max(1, CHUNK // max(1, array[:1].nbytes)))


def _parts(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    starts = _starts(array)
    return (np.asarray(array[start : start + starts.step]) for start in starts)
