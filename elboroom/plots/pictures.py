"""Pictures from arrays of images: grids, contact sheets with labels, and moving ones."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from elboroom.core.problem import Problem
from elboroom.plots.style import DPI, INK, MUTED, SIGNED, styled

Pixels = NDArray[np.floating[Any]]
SEPARATOR = np.array([221, 226, 232], np.uint8)


def colour(images: Pixels, low: float = 0.0, high: float = 1.0) -> Pixels:
    """Images (..., C, H, W) on [low, high] as red, green and blue on [0, 1], (..., 3, H, W)."""
    if images.shape[-3] not in (1, 3):
        images = images.mean(-3, keepdims=True)
    shade = np.clip((images - low) / max(high - low, 1e-12), 0, 1)
    return np.broadcast_to(shade, (*shade.shape[:-3], 3, *shade.shape[-2:]))


def signed(images: Pixels, reach: float) -> Pixels:
    """Differences (..., C, H, W), averaged over channels, in diverging colours on [-reach, reach], (..., 3, H, W)."""
    shade = SIGNED(0.5 + 0.5 * images.mean(-3) / max(reach, 1e-12))[..., :3]
    return np.moveaxis(np.asarray(shade), -1, -3)


def mosaic(images: Pixels, cell: int = 64, gap: int = 2) -> NDArray[np.uint8]:
    """Images (rows, cols, C, H, W) on [0, 1] side by side, thin lines between them, (height, width, 3).

    Each is enlarged by the whole number that brings its longer side nearest to `cell`, or reduced by averaging blocks.
    """
    if images.ndim != 5 or 0 in images.shape:
        raise Problem(f"a grid of images must have shape (rows, cols, C, H, W), not {images.shape}")
    pixels = _resized(colour(images), cell)
    rows, columns, _, high, wide = pixels.shape
    sheet = np.tile(SEPARATOR, (rows * (high + gap) - gap, columns * (wide + gap) - gap, 1))
    for row in range(rows):
        for column in range(columns):
            top, left = row * (high + gap), column * (wide + gap)
            sheet[top : top + high, left : left + wide] = np.rint(255 * np.moveaxis(pixels[row, column], 0, -1))
    return sheet


def _resized(pixels: Pixels, cell: int) -> Pixels:
    longer = max(pixels.shape[-2:])
    if longer > 1.5 * cell:
        by = round(longer / cell)
        high, wide = (side // by * by for side in pixels.shape[-2:])
        cut = pixels[..., :high, :wide]
        blocks: Pixels = cut.reshape(*cut.shape[:-2], high // by, by, wide // by, by).mean((-3, -1))
        return blocks
    by = max(1, round(cell / longer))
    return pixels.repeat(by, -2).repeat(by, -1)


def save_grid(images: Pixels, path: Path | str, cell: int = 64) -> Path:
    """Writes images (rows, cols, C, H, W) on [0, 1] as one PNG, pixel for pixel."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(mosaic(images, cell)).save(path, format="PNG", optimize=True)
    return path


def save_gif(frames: Pixels, path: Path | str, cell: int = 64, seconds: float = 0.1) -> Path:
    """Writes a GIF that runs forth and back: frames (T, C, H, W), or the columns of a grid (rows, T, C, H, W)."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(animation(frames, cell, seconds))
    return path


def animation(frames: Pixels, cell: int = 64, seconds: float = 0.1) -> bytes:
    """The same GIF as bytes."""
    grid = frames[None] if frames.ndim == 4 else frames
    if grid.ndim != 5 or 0 in grid.shape:
        raise Problem(f"an animation must have shape (T, C, H, W) or (rows, T, C, H, W), not {frames.shape}")
    across = math.ceil(math.sqrt(len(grid)))
    blank = np.ones((-len(grid) % across, *grid.shape[1:]), grid.dtype)
    whole = np.concatenate([grid, blank]).reshape(-1, across, *grid.shape[1:])  # (rows, across, T, C, H, W)
    turned = [*range(grid.shape[1]), *range(grid.shape[1] - 2, 0, -1)]
    shown = [Image.fromarray(mosaic(whole[:, :, t], cell)).quantize(64) for t in turned]
    made = io.BytesIO()
    shown[0].save(made, format="GIF", save_all=True, append_images=shown[1:], duration=round(1000 * seconds), loop=0)
    return made.getvalue()


@styled
def contact_sheet(images: Pixels, rows: Sequence[str] = (), columns: Sequence[str] = (), cell: int = 128) -> Figure:
    """A figure of images (rows, cols, C, H, W) with a label beside each row and above each column."""
    image = mosaic(images, cell, gap=3)
    high, wide = image.shape[:2]
    letter = DPI / 72 * 8
    left = round(0.62 * letter * max((len(line) for row in rows for line in row.split("\n")), default=0)) + 12
    top = round(2 * letter) if columns else 12
    width, height = wide + left + 12, high + top + 12
    figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI)
    axes = figure.add_axes((left / width, 12 / height, wide / width, high / height))
    axes.imshow(image, interpolation="nearest", aspect="auto")
    axes.set_axis_off()
    for at, text in zip(_centres(high, len(rows)), rows, strict=True):
        axes.text(-10, at, text, ha="right", va="center", color=INK, linespacing=1.5)
    for at, text in zip(_centres(wide, len(columns)), columns, strict=True):
        axes.text(at, -10, text, ha="center", va="bottom", color=MUTED)
    return figure


@styled
def beside(images: Pixels, one: Pixels, titles: Sequence[str]) -> Figure:
    """A figure of a grid of images (rows, cols, C, H, W) and one image (C, H, W) as large, a title above each."""
    left = mosaic(images, 64, gap=3)
    right = mosaic(one[None, None], left.shape[0])
    figure = Figure(figsize=(7.6, 4.1), layout="constrained")
    for ax, picture, title in zip(figure.subplots(1, 2), (left, right), titles, strict=True):
        ax.imshow(picture, interpolation="nearest")
        ax.set_title(title, color=MUTED)
        ax.set_axis_off()
    return figure


def _centres(length: int, count: int) -> list[float]:
    step = (length + 3) / max(1, count)
    return [step * i + (step - 3) / 2 for i in range(count)]
