"""A folder of pictures as a data set."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from elboroom.core.problem import Problem
from elboroom.data import places
from elboroom.data.arrays import HOLDOUT, pixels
from elboroom.data.dataset import About, DataSet
from elboroom.data.labels import chosen, of_files

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")
SPLITS = {"train": "train", "valid": "valid", "val": "valid", "test": "test"}
IN_MEMORY = 64 << 20  # bytes; larger sets are decoded once into the cache and mapped

Progress = Callable[[int, int], None]
UNREADABLE = (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError)


def load(
    folder: Path, size: int | None = None, progress: Progress | None = None, labels: str | Path | None = None
) -> DataSet:
    """The images under `folder`, grey if all are grey, else RGB; `size` makes them size x size.

    Sub-folders are labels, unless they are called train, valid (or val) and test: then they are splits. `labels` is a
    table of more, looked for in the folder where none is said.
    """
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    if len(files) < 2:
        found = "one image" if files else "no images"
        raise Problem(f"{folder} has {found}; at least 2 are needed ({', '.join(s[1:] for s in SUFFIXES)})")
    if size is not None and size < 1:
        raise Problem(f"--size must be at least 1, not {size}")
    table = chosen(labels, folder)
    more = of_files(table, folder, files) if table is not None else None
    shape = _shape(files, size)
    images = _decoded(folder, files, shape, progress)
    splits, column, classes = _meaning([path.relative_to(folder).parts[:-1] for path in files])
    store, levels = pixels(images, str(folder))
    names = {name: len(values) for name, values in classes.items()}
    about = About(str(folder), "pixels", shape, len(files), names, levels)
    holdout = 0.0 if splits and "test" in splits else HOLDOUT
    data = DataSet(about, store, splits, column, holdout=holdout, classes=classes)
    return data if more is None else data.with_labels(*more)


def decode(image: Image.Image, mode: str, size: tuple[int, int]) -> NDArray[np.uint8]:
    """A picture as bytes, (H, W) or (H, W, 3); `size` is (W, H). Shrinking averages areas; transparency is dropped."""
    if image.mode.startswith("I"):  # 16 bits: Pillow would cut them off at 255
        image = Image.fromarray((np.asarray(image) // 256).astype(np.uint8))
    image = image.convert(mode)
    if image.size != size:
        shrinks = size[0] <= image.width and size[1] <= image.height
        image = image.resize(size, Image.Resampling.BOX if shrinks else Image.Resampling.BILINEAR)
    return np.asarray(image, np.uint8)


def _shape(files: list[Path], size: int | None) -> tuple[int, int, int]:
    """(C, H, W) of all images together, from their headers."""
    grey, seen = True, dict[tuple[int, int], Path]()
    for path in files:
        try:
            with Image.open(path) as image:
                seen.setdefault(image.size, path)
                grey = grey and _grey(image)
        except UNREADABLE as error:
            raise Problem(f"{path} cannot be read as an image: {error}") from error
    if size is None and len(seen) > 1:
        (a, one), (b, two) = list(seen.items())[:2]
        raise Problem(
            f"the images differ in size ({one.name} is {a[0]} x {a[1]}, {two.name} is {b[0]} x {b[1]}); "
            "resize them with --size"
        )
    width, height = next(iter(seen)) if size is None else (size, size)
    return (1 if grey else 3, height, width)


def _grey(image: Image.Image) -> bool:
    if image.mode == "P":
        table = np.array(image.getpalette() or [0, 0, 0]).reshape(-1, 3)
        return bool(np.all(table == table[:, :1]))
    return image.mode in ("1", "L", "LA") or image.mode.startswith("I")


def _decoded(
    folder: Path, files: list[Path], shape: tuple[int, int, int], progress: Progress | None
) -> NDArray[np.uint8]:
    """All images as bytes (N, C, H, W), in memory where they are few, else mapped from the cache."""
    whole = (len(files), *shape)
    if int(np.prod(whole)) <= IN_MEMORY:
        return _fill(np.empty(whole, np.uint8), files, progress)
    stats = [(str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    key = hashlib.sha256(repr((str(folder.resolve()), shape, stats)).encode()).hexdigest()[:16]
    kept = places.cache() / "folders" / f"{key}.npy"
    if not kept.is_file():
        with places.writing(kept) as part:
            target = np.lib.format.open_memmap(part, mode="w+", dtype=np.uint8, shape=whole)
            _fill(target, files, progress)
            target.flush()
    mapped: NDArray[np.uint8] = np.load(kept, mmap_mode="r", allow_pickle=False)
    return mapped


def _fill(target: NDArray[np.uint8], files: list[Path], progress: Progress | None) -> NDArray[np.uint8]:
    _, channels, height, width = target.shape
    for row, path in enumerate(files):
        try:
            with Image.open(path) as image:
                picture = decode(image, "L" if channels == 1 else "RGB", (width, height))
        except UNREADABLE as error:
            raise Problem(f"{path} cannot be read as an image: {error}") from error
        target[row] = np.moveaxis(picture.reshape(height, width, channels), -1, 0)
        if progress is not None and ((row + 1) % 256 == 0 or row + 1 == len(files)):
            progress(row + 1, len(files))
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
