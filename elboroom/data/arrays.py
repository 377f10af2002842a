"""A user's own arrays: what they hold is read off their shape and values, and checked before anything is trained."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from elboroom.core.memory import require
from elboroom.core.problem import Problem
from elboroom.data.dataset import About, DataSet
from elboroom.data.labels import Labels
from elboroom.data.stores import CHUNK, Bytes, Reals, Store

HOLDOUT = 0.1
BYTE_LIKE = 128  # whole numbers that reach this are bytes
LARGEST = float(np.finfo(np.float32).max)


def dataset(
    array: NDArray[Any] | Tensor,
    name: str = "array",
    labels: NDArray[Any] | Mapping[str, NDArray[Any]] | None = None,
    levels: int | None = None,
    splits: Mapping[str, NDArray[np.int64]] | None = None,
) -> DataSet:
    """The data set of an array: (N, D) are real vectors; (N, H, W), (N, H, W, C) and (N, C, H, W) are pixels.

    C is 1 or 3. Where both places fit, a torch tensor is read as (N, C, H, W) and a numpy array as (N, H, W, C). Labels
    are one column, several (N, K), which are called label1 to labelK, or a column for each name. `levels` is how many
    values a pixel may have, from 0 for black; read off the values where it is not said.
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
        if levels is not None:
            raise Problem(f"--levels is for images, and '{name}' has vectors; remove it")
        require(4 * values.size, f"'{name}'")
        store, levels, shape = Reals(values.astype(np.float32)), 0, values.shape[1:]
    else:
        images = _channels(values, name, first)
        store, levels = pixels(images, name, levels)
        shape = images.shape[1:]
    classes, columns = label_columns(labels, len(values), name)
    names = {label: len(known) for label, known in classes.items()}
    kind = "vectors" if values.ndim == 2 else "pixels"
    about = About(name, kind, tuple(shape), len(values), names, levels)  # type: ignore[arg-type]
    holdout = 0.0 if splits and "test" in splits else HOLDOUT
    return DataSet(about, store, splits, columns, holdout=holdout, classes=classes)


def numbered(count: int) -> list[str]:
    """What columns of labels are called that have no names."""
    return ["label"] if count == 1 else [f"label{k}" for k in range(1, count + 1)]


def pixels(images: NDArray[Any], name: str, levels: int | None = None) -> tuple[Store, int]:
    """Images (N, C, H, W) in the smallest form that loses nothing, and how many values a pixel may have.

    That is 2 for black and white, 256 for bytes, 0 for reals, in [0, 1] or from 0 to 255, or as many as the whole numbers
    say: 17 for those from 0 to 16. Where they do not say it, `levels` has to.
    """
    low = min((float(part.min()) for part in _parts(images)), default=0.0)
    high = max((float(part.max()) for part in _parts(images)), default=0.0)
    whole = images.dtype.kind in "bui" or all(bool(np.all(part == np.rint(part))) for part in _parts(images))
    fits = whole or (levels == 256 and high <= 1)  # bytes may come divided by 255
    if levels is not None and (levels < 2 or not fits or high >= (256 if levels == 2 else levels)):
        values = "" if whole else ", which are not all whole numbers"
        raise Problem(f"--levels {levels}: '{name}' has values from {low:g} to {high:g}{values}")
    if low < 0 or high > 255 or not (whole or high <= 1 or high >= BYTE_LIKE):
        raise Problem(
            f"'{name}' has values from {low:g} to {high:g}; pixels must be whole numbers from 0 to at most 255, or reals in "
            "[0, 1] or from 0 to 255; divide them by the value that white has"
        )
    if not whole and high > 1:
        warnings.warn(f"'{name}' has reals from {low:g} to {high:g}, which are divided by 255", stacklevel=2)
        images = np.asarray(images, np.float32) / np.float32(255)
    if whole:
        kept = images if images.dtype == np.uint8 else images.astype(np.uint8)
        two = high <= 1 or (high == 255 and all(bool(np.all((p == 0) | (p == 255))) for p in _parts(kept)))
        if two and levels in (None, 2):
            return Bytes(kept, 1 if high <= 1 else 255), 2
        count = levels or _levels(int(high), images.dtype, name)
        return Bytes(kept, count - 1), count
    if all(bool(np.all((np.rint(part * 255) / 255).astype(part.dtype) == part)) for part in _parts(images)):
        kept = np.empty(images.shape, np.uint8)
        for start, part in zip(_starts(images), _parts(images), strict=True):
            kept[start : start + len(part)] = np.rint(part * 255)
        return Bytes(kept), 256
    return Reals(images.astype(np.float32)), 0


def _levels(high: int, dtype: np.dtype[Any], name: str) -> int:
    """How many values whole numbers up to this one stand for.

    From the upper half of the bytes on, they are bytes. Below, the largest is white, unless the numbers came as bytes
    and it is no power of two, nor one less: then they may be dark photos as well.
    """
    if high >= BYTE_LIKE:
        return 256
    if dtype == np.uint8 and high & (high - 1) and high & (high + 1):
        raise Problem(
            f"'{name}' has bytes from 0 to {high}: use --levels 256 if 255 would be white, --levels {high + 1} if "
            f"{high} is"
        )
    return high + 1


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
        wrong = ~(np.abs(part.reshape(len(part), -1)) <= LARGEST)  # which is what is kept: 32 bits
        if wrong.any():
            row = start + int(np.flatnonzero(wrong.any(axis=1))[0]) if row < 0 else row
            bad += int(wrong.sum())
    if bad:
        raise Problem(
            f"'{name}' has {bad:,} {'values that are' if bad > 1 else 'value that is'} NaN or infinite, the first in row {row}"
        )


def label_columns(labels: NDArray[Any] | Mapping[str, NDArray[Any]] | None, n: int, name: str) -> Labels:
    """The labels with their values in order."""
    if not isinstance(labels, Mapping):
        table = np.zeros((n, 0)) if labels is None else np.asarray(labels)
        table = table[:, None] if table.ndim == 1 else table
        if table.ndim != 2 or len(table) != n:
            raise Problem(
                f"'{name}' has {n} examples but labels of shape {np.asarray(labels).shape}; give one row of labels per example"
            )
        labels = dict(zip(numbered(table.shape[1]), table.T, strict=True)) if table.shape[1] else {}
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
    if values.dtype.kind == "O" and all(isinstance(value, str) for value in values.flat):  # strings, as pandas has them
        values = values.astype(str)
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
