"""A user's own arrays: what they hold is read off their shape and values, and checked before anything is trained."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from elboroom.core.problem import Problem, unknown
from elboroom.data.dataset import CHUNK, About, Bytes, DataSet, Reals, Store

EXAMPLES = ("x", "X", "images", "imgs", "data")
LABELS = ("y", "Y", "labels", "label")
HOLDOUT = 0.1


def dataset(array: NDArray[Any] | Tensor, name: str = "array", labels: NDArray[Any] | None = None) -> DataSet:
    """The data set of an array: (N, D) are real vectors; (N, H, W), (N, H, W, C) and (N, C, H, W) are pixels.

    C is 1 or 3. Where both places fit, a torch tensor is read as (N, C, H, W) and a numpy array as (N, H, W, C).
    """
    first = isinstance(array, Tensor)
    values = array.detach().cpu().numpy() if isinstance(array, Tensor) else array
    if values.dtype.kind not in "buif":
        raise Problem(f"'{name}' holds values of type {values.dtype}; numbers are needed")
    if values.ndim not in (2, 3, 4) or 0 in values.shape[1:]:
        raise Problem(
            f"'{name}' has shape {values.shape}; vectors are (N, D), images (N, H, W), (N, H, W, C) or (N, C, H, W)"
        )
    _finite(values, name)
    store: Store
    if values.ndim == 2:
        store, levels, shape = Reals(values.astype(np.float32)), 0, values.shape[1:]
    else:
        images = _channels(values, name, first)
        store, levels = pixels(images, name)
        shape = images.shape[1:]
    classes, column = _labels(labels, len(values), name)
    names = {label: len(known) for label, known in classes.items()}
    kind = "vectors" if values.ndim == 2 else "pixels"
    about = About(name, kind, tuple(shape), len(values), names, levels)  # type: ignore[arg-type]
    return DataSet(about, store, labels=column, holdout=HOLDOUT, classes=classes)


def read(path: Path, key: str | None = None) -> DataSet:
    """The data set in a .npy file (mapped, not read) or a .npz file; `key` picks one array of several."""
    name = f"{path}:{key}" if key else str(path)
    if not path.is_file():
        raise Problem(f"there is no file {path}")
    try:
        if path.suffix == ".npy":
            return dataset(np.load(path, mmap_mode="r", allow_pickle=False), name)
        with np.load(path, allow_pickle=False) as archive:
            keys = list(archive.files)
            x, y = _keys(keys, key, path)
            return dataset(archive[x], name, archive[y] if y else None)
    except (OSError, EOFError, ValueError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        raise Problem(f"{path} cannot be read as an array: {error}") from error


def _keys(keys: list[str], key: str | None, path: Path) -> tuple[str, str | None]:
    if key is not None:
        if key not in keys:
            raise unknown(f"array in {path.name}", key, keys)
        return key, None
    if len(keys) == 1:
        return keys[0], None
    x, y = [k for k in keys if k in EXAMPLES], [k for k in keys if k in LABELS]
    if len(keys) == 2 and len(x) == len(y) == 1:
        return x[0], y[0]
    raise Problem(f"{path} holds {', '.join(sorted(keys)) or 'nothing'}; name one array of it as {path}:KEY")


def pixels(images: NDArray[Any], name: str) -> tuple[Store, int]:
    """Images (N, C, H, W) in the smallest form that loses nothing, and their levels: 2, 256, or 0 for real values."""
    low = min((float(part.min()) for part in _parts(images)), default=0.0)
    high = max((float(part.max()) for part in _parts(images)), default=0.0)
    whole = images.dtype.kind in "bui" or all(bool(np.all(part == np.rint(part))) for part in _parts(images))
    if low < 0 or high > (255 if whole else 1):
        raise Problem(
            f"'{name}' has values from {low:g} to {high:g}; pixels are bytes from 0 to 255 or reals in [0, 1]"
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
        raise Problem(
            f"'{name}' has shape {values.shape}, with 1 or 3 channels neither in the second nor the last place"
        )
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
            f"'{name}' has {bad:,} {'values that are' if bad > 1 else 'value that is'} not finite, the first in row {row}"
        )


def _labels(labels: NDArray[Any] | None, n: int, name: str) -> tuple[dict[str, list[str]], NDArray[np.int64] | None]:
    if labels is None:
        return {}, None
    if labels.shape not in ((n,), (n, 1)):
        raise Problem(f"'{name}' has {n} examples but labels of shape {labels.shape}; one label each is needed")
    if labels.dtype.kind == "f" and not np.all(labels == np.rint(labels)):
        raise Problem(f"the labels of '{name}' are not whole numbers")
    values, column = np.unique(labels.ravel(), return_inverse=True)
    names = [value if isinstance(value, str) else f"{value:g}" for value in values.tolist()]
    return {"label": names}, column.reshape(n, 1)


def _starts(array: NDArray[Any]) -> range:
    return range(0, len(array), max(1, CHUNK // max(1, array[:1].nbytes)))


def _parts(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    starts = _starts(array)
    return (np.asarray(array[start : start + starts.step]) for start in starts)
