"""Frames: what sliders show, decoded before, for a page that no server stands behind."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import asdict
from importlib.resources import files
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from elboroom.core.batch import Batch
from elboroom.explorer.answer import plain
from elboroom.explorer.seen import Dimension, Seen
from elboroom.plots.pictures import colour
from elboroom.runs.moves import decoded
from elboroom.runs.run import Run

STARTS, DIMENSIONS, POINTS = 3, 12, 15
BUDGET = 3_000_000  # bytes of a page
MODULES = ("shown.js", "dials.js", "frames.js")  # in the order in which they use one another


def frames(run: Run) -> dict[str, Any] | None:
    """What `mount` of frames.js is given: a few examples, each dimension of them at some values; None for vectors.

    Where this would be larger than its budget, fewer values and then fewer examples are taken.
    """
    if run.spec.about.kind == "vectors":
        return None
    seen = Seen(run)
    for starts, points in ((STARTS, POINTS), (STARTS, 9), (1, 9), (1, 5)):
        kept = _frames(seen, starts, points)
        if sum(map(len, kept["sprites"])) <= BUDGET:
            return kept
    return None


def _frames(seen: Seen, starts: int, points: int) -> dict[str, Any]:
    run, dims = seen.run, [d for d in seen.dimensions if d.active][:DIMENSIONS] or seen.dimensions[:1]
    stops = [np.linspace(d.low, d.high, points, dtype=np.float32) for d in dims]
    batches = [run.examples(1, seed=start) for start in range(starts)]
    text = seen.kind == "tokens"
    moved = [_moved(seen, batch, dims, stops) for batch in batches]
    plain_ones = [run.reconstruct(batch) for batch in batches]
    shape = (1, 1, 1) if text else run.spec.about.shape
    return {
        "kind": seen.kind,
        "width": shape[2],
        "height": shape[1],
        "dimensions": [asdict(d) for d in dims],
        "stops": [plain(values.tolist()) for values in stops],
        "at": [plain(seen.flat(run.encode(batch)[0])) for batch in batches],
        "starts": [made[0] for made in plain_ones] if text else [],
        "sprites": [] if text else [_sheet(_last(m, p), *seen.ends) for m, p in zip(moved, plain_ones, strict=True)],
        "sentences": moved if text else [],
    }


def _moved(seen: Seen, batch: Batch, dims: list[Dimension], stops: list[NDArray[np.float32]]) -> Any:
    """An example with each dimension at each of its stops, decoded: rows of sentences, or images (dims, stops, C, H, W)."""
    z, along = torch.from_numpy(seen.run.encode(batch)[0]), seen.run.space.along
    grid = torch.cat([along(z, [d.index], torch.from_numpy(at)) for d, at in zip(dims, stops, strict=True)])
    return decoded(seen.run, grid, batch, grid[..., 0].numel(), None)


def _last(grid: NDArray[np.float32], made: NDArray[np.float32]) -> NDArray[np.float32]:
    """The same with the reconstruction as it is in a row of its own below."""
    return np.concatenate([grid, np.broadcast_to(made[:1], grid[:1].shape)])


def _sheet(grid: NDArray[np.float32], low: float, high: float) -> str:
    """Images (rows, columns, C, H, W) without gaps, as the address of a PNG."""
    rows, columns, channels, height, width = grid.shape
    shown = colour(grid, low, high).transpose(0, 3, 1, 4, 2).reshape(rows * height, columns * width, 3)
    pixels = np.rint(255 * shown).astype(np.uint8)
    picture = Image.fromarray(pixels if channels == 3 else np.ascontiguousarray(pixels[..., 0]))
    made = io.BytesIO()
    picture.save(made, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(made.getvalue()).decode()}"


def module() -> str:
    """The front end of the sliders as one module: the files of the explorer, without what joins them as files."""
    texts = [(files("elboroom.explorer") / "static" / name).read_text(encoding="utf-8") for name in MODULES]
    return re.sub(r"^import [^\n]*;\n|^export (?=class|function|async)", "", "".join(texts), flags=re.MULTILINE)
