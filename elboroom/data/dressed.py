"""dSprites in colour, in noise and before a picture: the same rendered shapes, dressed as they are gathered.

What is drawn for an image, its colour, its noise, its piece of the picture, is a function of its row, so that a row is the
same image in any run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from elboroom.core.problem import Problem
from elboroom.data import dsprites, places
from elboroom.data.dataset import About, DataSet
from elboroom.data.dsprites import COUNT, FACTORS, SIDE, SIZES, VALUES, Progress, Sprites
from elboroom.data.fields import CATEGORICAL, ORDINAL
from elboroom.data.photos import UNREADABLE

Bytes = NDArray[np.uint8]
Rows = NDArray[np.int64]
Dress = Callable[[Tensor, Rows], Tensor]  # shapes (B, 1, 64, 64) of 0 and 1, rows of the data -> (B, 3, 64, 64)

COLOURS: dict[str, tuple[int, int, int]] = {
    "red": (255, 64, 64), "orange": (255, 160, 48), "yellow": (240, 240, 64), "green": (64, 220, 64),
    "cyan": (64, 224, 224), "blue": (80, 112, 255), "violet": (170, 80, 255), "pink": (255, 96, 200),
}  # fmt: skip
PALETTE = np.array(list(COLOURS.values()), np.uint8)  # (8, 3)
PIXELS = 3 * SIDE * SIDE
BANK = 1 << 20  # values of noise, of which an image has a stretch
PICTURE = (350, 274)  # the largest width and height of the picture behind sprites
NAMES = ("scream.jpg", "scream.png")  # of the user's own, in the folder scream


def mixed(rows: Rows, salt: int) -> NDArray[np.uint64]:
    """A 64-bit number for each row that looks drawn at random (splitmix64)."""
    z = (rows.astype(np.uint64) + np.uint64(salt)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def colour_of(rows: Rows) -> Rows:
    """The colour of each row, 0 to 7."""
    return (mixed(rows, 1) >> np.uint64(40)).astype(np.int64) % len(PALETTE)


class Colours:
    """Shapes in one of eight colours, on black."""

    def __init__(self) -> None:
        self.palette = torch.from_numpy(PALETTE).float() / 255

    def __call__(self, shapes: Tensor, rows: Rows) -> Tensor:
        return shapes * self.palette[torch.from_numpy(colour_of(rows))][:, :, None, None]


class Noise:
    """White shapes before noise that is even in [0, 1], as in Noisy-dSprites (Locatello et al. 2019)."""

    def __init__(self) -> None:
        drawn = np.frombuffer(np.random.default_rng(0).bytes(BANK + PIXELS), np.uint8)
        self.stretches = torch.from_numpy(drawn.astype(np.float32) / 255).as_strided((BANK, PIXELS), (1, 1))

    def __call__(self, shapes: Tensor, rows: Rows) -> Tensor:
        starts = torch.from_numpy((mixed(rows, 2) % np.uint64(BANK)).astype(np.int64))
        noise = self.stretches.index_select(0, starts).view(-1, 3, SIDE, SIDE)
        return torch.maximum(noise, shapes, out=noise)


class Behind:
    """A piece of a picture, half of it a tint, inverted where the shape is, as in Scream-dSprites (Locatello et al. 2019)."""

    def __init__(self, picture: Bytes) -> None:
        half = np.ascontiguousarray(np.moveaxis(picture >> 1, -1, 0), np.float32) / 255  # (3, H, W)
        view = np.lib.stride_tricks.sliding_window_view(half, (SIDE, SIDE), axis=(1, 2))  # (3, Y, X, 64, 64)
        self.windows = view.transpose(1, 2, 0, 3, 4)

    def __call__(self, shapes: Tensor, rows: Rows) -> Tensor:
        high, wide = self.windows.shape[:2]
        place = (mixed(rows, 3) % np.uint64(high * wide)).astype(np.int64)
        tint = (mixed(rows, 4).view(np.uint8).reshape(-1, 8)[:, :3] >> 1).astype(np.float32) / 255  # (B, 3)
        behind = torch.from_numpy(self.windows[place // wide, place % wide])  # (B, 3, 64, 64)
        behind += torch.from_numpy(tint)[:, :, None, None]
        return torch.sub(shapes, behind, out=behind).abs_()  # 1 - x where there is a shape, x elsewhere


class Dressed:
    """Sprites in three channels, made as they are gathered."""

    def __init__(self, sprites: Sprites, dress: Dress) -> None:
        self.sprites, self.dress = sprites, dress

    def __len__(self) -> int:
        return len(self.sprites)

    def take(self, index: NDArray[np.int64]) -> Tensor:
        return self.dress(self.sprites.take(index), index)

    def raw(self) -> Iterator[memoryview]:
        return self.sprites.raw()


def picture() -> tuple[Bytes, str]:
    """What stands behind the sprites of dsprites-scream, (H, W, 3), and what it is: the user's own, or one made here."""
    for name in NAMES:
        if (folder := places.find("scream", name)) is not None:
            return _read(folder / name), name
    return painting(), "painting"


def _read(path: Path) -> Bytes:
    try:
        with Image.open(path) as image:
            small = image.convert("RGB")
            small.thumbnail(PICTURE)
            found = np.asarray(small, np.uint8)
    except UNREADABLE as error:
        raise Problem(f"{path} cannot be read as an image: {error}") from error
    wide, high = PICTURE
    if min(found.shape[:2]) < SIDE:
        raise Problem(
            f"{path}, made to fit {wide} x {high}, is {found.shape[1]} x {found.shape[0]} pixels; each side must have {SIDE}"
        )
    return found


def painting() -> Bytes:
    """A picture of our own: waves of a red sky over a dark blue shore, with brush strokes."""
    wide, high = PICTURE
    y, x = np.mgrid[0:high, 0:wide] / high
    bend = 0.06 * np.sin(5 * x + 3 * y) + 0.04 * np.sin(11 * x - 7 * y)
    sky = 0.5 + 0.5 * np.sin(34 * (y + bend))
    shore = 0.5 + 0.5 * np.sin(26 * (x + 1.7 * y + 2 * bend) + 2 * np.sin(6 * y))
    low = 1 / (1 + np.exp(-30 * (y + bend - 0.55)))  # 0 above the horizon, 1 below it
    warm = np.stack([0.85 + 0.13 * sky, 0.32 + 0.4 * sky, 0.12 + 0.12 * sky], -1)
    cold = np.stack([0.1 + 0.25 * shore, 0.17 + 0.3 * shore, 0.3 + 0.32 * shore], -1)
    strokes = np.random.default_rng(0).normal(size=(high, wide + 24))
    strokes = np.cumsum(strokes, 1)
    strokes = 0.012 * (strokes[:, 24:] - strokes[:, :-24])
    mix = (1 - low)[..., None] * warm + low[..., None] * cold + strokes[..., None]
    return np.asarray(np.rint(255 * np.clip(mix, 0, 1)), np.uint8)


def _load(name: str, dress: Dress, seal: bytes, progress: Progress | None, coloured: bool = False) -> DataSet:
    images, checksum = dsprites.packed(progress)
    rows = np.arange(COUNT)
    sizes, labels = dict(zip(FACTORS, SIZES, strict=True)), dsprites.factors(rows)
    kinds = dict.fromkeys(FACTORS, ORDINAL) | {"shape": CATEGORICAL}
    if coloured:
        sizes, kinds = sizes | {"colour": len(COLOURS)}, kinds | {"colour": CATEGORICAL}
        labels = np.column_stack([labels, colour_of(rows)])
    about = About(name, "pixels", (3, SIDE, SIDE), COUNT, sizes, levels=256, kinds=kinds)
    whole = hashlib.sha256(f"{checksum} {name} 1 ".encode() + seal).hexdigest()
    classes = {"colour": tuple(COLOURS)} if coloured else None
    return DataSet(about, Dressed(Sprites(images), dress), None, labels, VALUES, hash=whole, classes=classes)


def colour(progress: Progress | None = None) -> DataSet:
    """dSprites each in one of eight colours, the sixth label."""
    return _load("dsprites-colour", Colours(), PALETTE.tobytes(), progress, coloured=True)


def noisy(progress: Progress | None = None) -> DataSet:
    """dSprites before noise."""
    return _load("dsprites-noisy", Noise(), b"", progress)


def scream(progress: Progress | None = None) -> DataSet:
    """dSprites before a picture."""
    behind, _ = picture()
    return _load("dsprites-scream", Behind(behind), behind.tobytes(), progress)
