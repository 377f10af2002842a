"""A folder of pictures as a data set."""

from __future__ import annotations

import hashlib
import math
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from elboroom.core.problem import Problem
from elboroom.data import places
from elboroom.data.arrays import BYTE_LIKE, HOLDOUT, pixels
from elboroom.data.dataset import About, DataSet
from elboroom.data.labels import chosen, of_files, warn_of_others
from elboroom.data.lines import UTF8
from elboroom.data.photos import UNREADABLE, OldPhotos, Photos, opened, reason, refuse

SPLITS = {"train": "train", "valid": "valid", "val": "valid", "test": "test"}
LARGEST = 1 << 14  # the longest side that images are resized to
IN_MEMORY = 64 << 20  # bytes; larger sets are decoded once into the cache and mapped

Progress = Callable[[int, int], None]


class Header(NamedTuple):
    """What is known of a picture before it is decoded: width and height, and whether it is grey."""

    size: tuple[int, int]
    grey: bool


def load(
    folder: Path,
    size: int | None = None,
    progress: Progress | None = None,
    labels: str | Path | None = None,
    photos: Photos | None = None,
    encoding: str = UTF8,
    levels: int | None = None,
) -> DataSet:
    """The images under `folder`, grey if all are grey, else RGB; `size` makes them size x size.

    Sub-folders are labels, unless they are called train, valid (or val) and test: then they are splits. `labels` is a
    table of more, looked for in the folder where none is said, in this encoding.
    """
    photos = photos or Photos()
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in photos.suffixes and path.is_file())
    if size is not None and not 1 <= size <= LARGEST:
        raise Problem(f"--size must be 1 to {LARGEST:,}, not {size}")
    headers = _headers(files, photos)
    if len(headers) < 2:
        found = "one image" if headers else "no images"
        raise Problem(f"{folder} has {found}; at least 2 are needed ({', '.join(s[1:] for s in photos.suffixes)})")
    table = chosen(labels, folder)
    if table is None and labels is None:
        warn_of_others(folder)
    more = of_files(table, folder, files, encoding) if table is not None else None
    good = np.array([i for i, path in enumerate(files) if path in headers], np.int64)
    files = list(headers)
    shape = _shape(headers, size)
    images = _decoded(folder, files, shape, progress, photos)
    splits, column, classes = _meaning([path.relative_to(folder).parts[:-1] for path in files])
    store, levels = pixels(images, str(folder), levels or _levels(images, folder))
    names = {name: len(values) for name, values in classes.items()}
    about = About(str(folder), "pixels", shape, len(files), names, levels)
    holdout = 0.0 if splits and "test" in splits else HOLDOUT
    data = DataSet(about, store, splits, column, holdout=holdout, classes=classes)
    return data if more is None else data.with_labels(more.classes, more.columns[good])


def _levels(images: NDArray[np.uint8], folder: Path) -> int | None:
    """256, since a decoded picture has bytes however dark it is; black and white ones are told by their values."""
    high = int(images.max()) if images.size else 0
    if high in (0, 1, 255):
        return None
    if high < BYTE_LIKE:
        warnings.warn(
            f"the brightest pixel in {folder} is {high} of 255: if {high} is white, say --levels {high + 1}",
            stacklevel=4,
        )
    return 256


def _headers(files: list[Path], photos: Photos) -> dict[Path, Header]:
    """What the headers of all files say; those that cannot be read are refused, all at once, or left out."""
    found, bad = _looked(files, photos, whole=photos.skip_bad)
    if bad and not photos.skip_bad:
        raise refuse(_looked(files, photos, whole=True)[1], len(files))
    if bad:
        named = ", ".join(path.name for path in list(bad)[:10]) + (", ..." if len(bad) > 10 else "")
        warnings.warn(f"left out {len(bad):,} of {len(files):,} files, which cannot be read: {named}", stacklevel=4)
    return found


def _looked(files: list[Path], photos: Photos, whole: bool) -> tuple[dict[Path, Header], dict[Path, str]]:
    """Headers, and the files that are no images with the reason; `whole` reads beyond the header too."""
    found, bad = dict[Path, Header](), dict[Path, str]()
    for path in files:
        try:
            with Image.open(path) as image:
                found[path] = Header(photos.size(image), photos.is_grey(image))
                if whole:
                    photos.check(image)
        except UNREADABLE as error:
            found.pop(path, None)
            bad[path] = reason(error, path)
    return found, bad


def _shape(headers: dict[Path, Header], size: int | None) -> tuple[int, int, int]:
    """(C, H, W) of all images together."""
    seen = dict[tuple[int, int], Path]()
    for path, header in headers.items():
        seen.setdefault(header.size, path)
    grey = all(header.grey for header in headers.values())
    if size is None and len(seen) > 1:
        (a, one), (b, two) = list(seen.items())[:2]
        raise Problem(
            f"the images differ in size ({one.name} is {a[0]} x {a[1]}, {two.name} is {b[0]} x {b[1]}); resize them with "
            "--size 64, and --crop centre to keep their proportions"
        )
    width, height = next(iter(seen)) if size is None else (size, size)
    return (1 if grey else 3, height, width)


def _decoded(
    folder: Path, files: list[Path], shape: tuple[int, int, int], progress: Progress | None, photos: Photos
) -> NDArray[np.uint8]:
    """All images as bytes (N, C, H, W), in memory where they are few, else mapped from the cache."""
    whole = (len(files), *shape)
    if int(np.prod(whole)) <= IN_MEMORY:
        return _fill(np.empty(whole, np.uint8), files, progress, photos)
    stats = [(str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    said = () if isinstance(photos, OldPhotos) else (photos.background, photos.crop)
    key = hashlib.sha256(repr((str(folder.resolve()), shape, stats, *said)).encode()).hexdigest()[:16]
    kept = places.cache() / "folders" / f"{key}.npy"
    if not kept.is_file():
        _room(kept, math.prod(whole))
        with places.writing(kept) as part:
            target = np.lib.format.open_memmap(part, mode="w+", dtype=np.uint8, shape=whole)
            _fill(target, files, progress, photos)
            target.flush()
    mapped: NDArray[np.uint8] = np.load(kept, mmap_mode="r", allow_pickle=False)
    return mapped


def _room(path: Path, needed: int) -> None:
    """Refuses images that the disk of the cache has no room for."""
    there = next(parent for parent in path.parents if parent.exists())
    if (left := shutil.disk_usage(there).free) < needed:
        raise Problem(
            f"the images take {needed / 1e9:,.1f} GB, and {there} has {left / 1e9:,.1f} GB left; use a smaller --size, or set "
            "ELBOROOM_CACHE to a larger disk"
        )


def _fill(target: NDArray[np.uint8], files: list[Path], progress: Progress | None, photos: Photos) -> NDArray[np.uint8]:
    bad: dict[Path, str] = {}
    for row, path in enumerate(files):
        try:
            target[row] = opened(path, target.shape[1:], photos)
        except UNREADABLE as error:
            bad[path] = reason(error, path)
        if progress is not None and ((row + 1) % 256 == 0 or row + 1 == len(files)):
            progress(row + 1, len(files))
    if bad:
        raise refuse(bad, len(files))
    return target


def _meaning(
    parents: list[tuple[str, ...]],
) -> tuple[dict[str, NDArray[np.int64]] | None, NDArray[np.int64] | None, dict[str, list[str]]]:
    """Splits and labels that the names of sub-folders give, and what the values of a label are called."""
    splits = None
    tops = {parts[0] if parts else "" for parts in parents}
    if "train" in tops and tops <= SPLITS.keys():
        which = np.array([SPLITS[parts[0]] for parts in parents])
        splits = {name: np.flatnonzero(which == name) for name in dict.fromkeys(SPLITS.values()) if name in which}
        parents = [parts[1:] for parts in parents]
    if all(parents) and len({parts[0] for parts in parents}) > 1:
        values, column = np.unique([parts[0] for parts in parents], return_inverse=True)
        return splits, column.reshape(-1, 1), {"label": values.tolist()}
    return splits, None, {}
