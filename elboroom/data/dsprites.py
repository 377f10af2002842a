"""dSprites, rendered: 737,280 binary images of 64 x 64 from five factors, 99.98 % bit-exact to the published ones."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator
from functools import cache as once
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elboroom.core.problem import Problem
from elboroom.data import places
from elboroom.data.dataset import About, DataSet
from elboroom.data.fields import CATEGORICAL, ORDINAL
from elboroom.data.stores import CHUNK, chunks

Progress = Callable[[int, int], None]
Ints = NDArray[np.int64]

FACTORS = ("shape", "scale", "orientation", "posX", "posY")
SIZES = (3, 6, 40, 32, 32)
COUNT = 737_280
VALUES: dict[str, NDArray[np.float64]] = {
    "shape": np.array([1.0, 2.0, 3.0]),  # square, ellipse, heart
    "scale": np.linspace(0.5, 1, 6),
    "orientation": np.linspace(0, 2 * np.pi, 40),  # both ends: the last is the first again
    "posX": np.linspace(0, 1, 32),
    "posY": np.linspace(0, 1, 32),
}
SIDE = 64
ORIGINAL = "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"
TALL = 32  # rows kept of an image: no shape reaches further than 13.6 px from its centre
BLOCKS = 3 * 6 * 40  # of the first three factors; each holds all 32 x 32 positions
UNIT = 256  # vertices lie on a grid of 1/256 of a pixel
TOPS = np.floor(16 + 32 * VALUES["posY"]).astype(np.int64) - TALL // 2  # the first of those rows, by posY
FROM = np.array([(1 << SIDE) - 1 >> k for k in range(SIDE + 1)], np.uint64)  # the bits of columns k, k+1, ..., 63


def index(factors: NDArray[Any]) -> Ints:
    """The rows in the data set of `factors` (..., 5)."""
    columns = np.moveaxis(np.asarray(factors, np.int64), -1, 0)
    if len(columns) != 5 or any(np.any((c < 0) | (c >= s)) for c, s in zip(columns, SIZES, strict=True)):
        raise Problem(f"dSprites factors are {', '.join(FACTORS)}; each must be at least 0 and below {SIZES}")
    return np.asarray(np.ravel_multi_index(tuple(columns), SIZES), np.int64)


def factors(index: NDArray[Any]) -> Ints:
    """The five factors (..., 5) of the rows at `index`."""
    return np.stack(np.unravel_index(np.asarray(index, np.int64), SIZES), axis=-1).astype(np.int64)


@once
def _outline(shape: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The vertices (u, w) of a shape at scale 1, upright, about its centre."""
    if shape == 0:
        return 9.6 * np.array([-1.0, 1.0, 1.0, -1.0]), 9.6 * np.array([-1.0, -1.0, 1.0, 1.0])
    if shape == 1:
        t = 2 * np.pi * np.arange(100) / 100
        return 9.6 * 1.33 * np.cos(t), 9.6 / 1.33 * np.sin(t)
    t = 2 * np.pi * np.arange(150) / 150
    height = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    return 19.2 * 16 * np.sin(t) ** 3 / 32, -19.2 * (height / 29 + 0.075)


def _block(shape: int, scale: int, orientation: int, xs: Ints, ys: Ints) -> NDArray[np.uint64]:
    """One shape at every position of xs x ys: a 64-bit word for each row of pixels, column 0 highest, (X, Y, 64).

    Scan conversion by even-odd in whole numbers of 1/256 px. A crossing at x flips all pixels whose centre is at x
    or to its right, so a centre on an edge is inside iff the edge is on the left of the shape; a vertex on the line of
    centres counts as below it, so a centre on a horizontal edge is inside iff the shape is above.
    """
    u, w = _outline(shape)
    size, angle = VALUES["scale"][scale], VALUES["orientation"][orientation]
    c, s = np.cos(angle), np.sin(angle)
    x = c * (u * size) + s * (w * size)
    y = -s * (u * size) + c * (w * size)
    vx = np.rint(UNIT * (x[:, None] + (16 + 32 * VALUES["posX"][xs]))).astype(np.int64)  # (V, X)
    vy = np.rint(UNIT * (y[:, None] + (16 + 32 * VALUES["posY"][ys]))).astype(np.int64)  # (V, Y)
    line = (vy + UNIT // 2) // UNIT  # the first row whose centres lie below the vertex, (V, Y)
    low, high = np.minimum(line, np.roll(line, -1, 0)), np.maximum(line, np.roll(line, -1, 0))
    count = (high - low).ravel()  # rows that an edge crosses, (V * Y,)
    which = np.repeat(np.arange(len(count)), count)  # (C,) crossings of all edges at all heights
    edge, place = np.divmod(which, len(ys))
    row = low.ravel()[which] + np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    order = np.lexsort((row, place))
    edge, place, row = edge[order], place[order], row[order]
    after = (edge + 1) % len(u)
    dy = vy[after, place] - vy[edge, place]  # never 0
    down = row * UNIT + UNIT // 2 - vy[edge, place]
    run = (vx[after] - vx[edge]) * (np.sign(dy) * down)[:, None]  # (C, X)
    rise = np.abs(dy)[:, None]
    first = -((UNIT // 2 * rise - vx[edge] * rise - run) // (UNIT * rise))  # ceil((x - 1/2 px) / 1 px), (C, X)
    line_of = place * SIDE + row
    starts = np.flatnonzero(np.diff(line_of, prepend=-1))
    words = np.bitwise_xor.reduceat(FROM[first], starts, axis=0)  # (lines that are crossed, X)
    image = np.zeros((len(xs), len(ys) * SIDE), np.uint64)
    image[:, line_of[starts]] = words.T
    return image.reshape(len(xs), len(ys), SIDE)


def _bytes(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    return words.astype(">u8").view(np.uint8)  # (..., rows) -> (..., rows * 8)


class Sprites:
    """The images as packed bits of the 32 rows about the centre, (N, 256): half of what whole images need."""

    def __init__(self, packed: NDArray[np.uint8]) -> None:
        self.packed = np.asarray(packed)

    def __len__(self) -> int:
        return len(self.packed)

    def take(self, index: NDArray[np.int64]) -> Tensor:
        lines = np.zeros((len(index) * SIDE, SIDE), np.float32)
        first = np.arange(0, len(lines), SIDE) + TOPS[index % 32]  # (B,)
        rows = (first[:, None] + np.arange(TALL)).ravel()  # (B * 32,)
        lines[rows] = np.unpackbits(self.packed[index]).reshape(-1, SIDE)
        return torch.from_numpy(lines).view(-1, 1, SIDE, SIDE)

    def raw(self) -> Iterator[memoryview]:
        return chunks(self.packed)


def render(factors: NDArray[Any]) -> NDArray[np.uint8]:
    """The images of `factors` (n, 5), drawn now: (n, 64, 64) of 0 and 1."""
    table = np.asarray(factors, np.int64).reshape(-1, 5)
    rows = index(table)
    packed = np.zeros((len(table), SIDE * 8), np.uint8)
    block, position = np.divmod(rows, 1024)
    for each in np.unique(block):
        here = np.flatnonzero(block == each)
        xs, ix = np.unique(position[here] // 32, return_inverse=True)
        ys, iy = np.unique(position[here] % 32, return_inverse=True)
        packed[here] = _bytes(_block(*_triple(int(each)), xs, ys))[ix, iy]
    return np.unpackbits(packed, axis=1).reshape(-1, SIDE, SIDE)


def _triple(block: int) -> tuple[int, int, int]:
    shape, rest = divmod(block, 240)
    return shape, *divmod(rest, 40)


def _write(path: Path, blocks: int, progress: Progress | None) -> str:
    """Renders the first `blocks` blocks into the array file `path`; gives the SHA-256 of that file."""
    digest, every = hashlib.sha256(), np.arange(32)
    rows = TOPS[None, :, None] + np.arange(TALL)  # (1, posY, 32)
    with places.writing(path) as part, open(part, "wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": (blocks * 1024, TALL * 8)}
        np.lib.format.write_array_header_1_0(file, header)
        file.flush()
        digest.update(part.read_bytes())
        for block in range(blocks):
            words = _block(*_triple(block), every, every)  # (32, 32, 64)
            data = _bytes(np.take_along_axis(words, rows, axis=2)).tobytes()
            digest.update(data)
            file.write(data)
            if progress is not None and (block + 1) % 8 == 0:
                progress((block + 1) * 1024, blocks * 1024)
    return digest.hexdigest()


def _sum(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(CHUNK):
            digest.update(part)
    return digest.hexdigest()


def _sound(path: Path, seal: Path) -> str | None:
    """The checksum of a cache that is whole, or None. Its bytes are read again only where its time has changed."""
    try:
        entry, stat = json.loads(seal.read_text()), path.stat()
        if stat.st_size != entry["size"]:
            return None
        if stat.st_mtime_ns != entry["time"] and _sum(path) != entry["sha256"]:
            return None
        return str(entry["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def packed(progress: Progress | None = None, blocks: int = BLOCKS) -> tuple[NDArray[np.uint8], str]:
    """The images as `Sprites` keeps them, mapped from the cache, and their checksum; rendered at first use."""
    name = "packed" if blocks == BLOCKS else f"packed-{blocks}"
    path = places.cache() / "dsprites" / f"{name}.npy"
    seal = path.with_suffix(".json")
    checksum = _sound(path, seal)
    if checksum is None:
        checksum = _write(path, blocks, progress)
        stat = path.stat()
        with places.writing(seal) as part:
            part.write_text(json.dumps({"size": stat.st_size, "time": stat.st_mtime_ns, "sha256": checksum}))
    return np.load(path, mmap_mode="r", allow_pickle=False), checksum


def load(progress: Progress | None = None) -> DataSet:
    """All of dSprites, which the literature trains on whole; its factors are its labels."""
    images, checksum = packed(progress)
    sizes = dict(zip(FACTORS, SIZES, strict=True))
    kinds = dict.fromkeys(FACTORS, ORDINAL) | {"shape": CATEGORICAL}
    about = About("dsprites", "pixels", (1, SIDE, SIDE), COUNT, sizes, levels=2, kinds=kinds)
    return DataSet(about, Sprites(images), None, factors(np.arange(COUNT)), VALUES, hash=checksum)


def check(against: Path | None = None) -> dict[str, float]:
    """How many of the published images in `against` (npz files or their folder) the rendering meets bit for bit."""
    folder = against or places.find("dsprites", ORIGINAL) or (places.own() or places.cache()) / "dsprites"
    files = sorted(folder.glob("*.npz")) if folder.is_dir() else [folder]
    if not files or not files[0].is_file():
        raise Problem(
            f"{folder} has no published dSprites images (*.npz); download them with `elbo data get dsprites-original`"
        )
    seen = np.zeros(COUNT, bool)
    compared = exact = most = 0
    for file in files:
        for rows, images in _published(file):
            rows, first = np.unique(rows, return_index=True)
            fresh = ~seen[rows]
            seen[rows] = True
            off = np.sum(render(factors(rows[fresh])) != images[first[fresh]], axis=(1, 2))  # (n,) pixels that differ
            compared, exact, most = compared + len(off), exact + int(np.sum(off == 0)), max(most, off.max(initial=0))
    return {"compared": compared, "exact": exact, "max_pixels": int(most), "share": exact / compared}


def _published(file: Path) -> Iterator[tuple[Ints, NDArray[np.uint8]]]:
    """The images of one npz file with their rows in the data set, a few thousand at a time; nothing is unpickled."""
    try:
        with zipfile.ZipFile(file) as archive:
            rows: Ints | None = None
            if "original_dataset_indices.npy" in archive.namelist():
                with archive.open("original_dataset_indices.npy") as member:
                    rows = np.lib.format.read_array(member, allow_pickle=False)
            with archive.open("imgs.npy") as member:
                n, height, width = _shape(member)
                rows = np.arange(n) if rows is None else rows
                for start in range(0, n, 4096):
                    part = rows[start : start + 4096]
                    images = np.frombuffer(member.read(len(part) * height * width), np.uint8)
                    yield part, images.reshape(len(part), height, width)
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise Problem(f"{file} cannot be read as published dSprites images: {error}") from error


def _shape(member: IO[bytes]) -> tuple[int, int, int]:
    version = np.lib.format.read_magic(member)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(member)
    if shape[1:] != (SIDE, SIDE) or dtype != np.uint8:
        raise ValueError(f"imgs are {dtype} {shape}")
    return shape[0], SIDE, SIDE
