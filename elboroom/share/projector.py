"""The codes of a run for TensorBoard's embedding projector: vectors, labels, and small pictures of images."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from elboroom.core.files import write

if TYPE_CHECKING:
    from elboroom.runs.run import Run

ABOUT = "projector_config.pbtxt"
POINTS = 2000  # examples, as many as the projector shows without a wait
SIDE = 8192  # pixels of the largest picture that a browser takes


def export(run: Run, out: Path) -> dict[str, Any]:
    """Writes vectors.tsv, metadata.tsv, sprite.png of images, and projector_config.pbtxt, which names them."""
    run.require_codes()
    batch = run.examples(POINTS)
    assert batch.index is not None
    codes, rows = run.encode(batch), batch.index.numpy()
    parts = ['  tensor_name: "codes"', '  tensor_path: "vectors.tsv"']
    write(out / "vectors.tsv", "".join("\t".join(f"{v:.7g}" for v in code) + "\n" for code in codes).encode())
    columns = _columns(run, rows)
    if columns:
        write(out / "metadata.tsv", _table(columns).encode())
        parts.append('  metadata_path: "metadata.tsv"')
    if run.spec.about.kind == "pixels":
        picture = sprite(batch.x.numpy())
        height, width = run.spec.about.shape[1:]
        write(out / "sprite.png", picture)
        dims = f"single_image_dim: {width} single_image_dim: {height}"
        parts.append(f'  sprite {{ image_path: "sprite.png" {dims} }}')
    write(out / ABOUT, "\n".join(["embeddings {", *parts, "}", ""]).encode())
    return {"out": str(out), "points": len(codes), "labels": list(columns)}


def _columns(run: Run, rows: NDArray[np.int64]) -> dict[str, list[str]]:
    """What is known of these examples: of text the sentence, then every label."""
    data = run.data
    found = {"sentence": data.sentences(rows)} if run.tokeniser is not None else {}
    for place, name in enumerate(data.about.labels):
        known = data.classes.get(name, ())
        values = data.labels[rows, place].tolist()
        found[name] = [known[value] if known else str(value) for value in values]
    return found


def _table(columns: dict[str, list[str]]) -> str:
    """Rows with a header, but for a single column, which the projector wants without."""
    lines = [list(columns)] if len(columns) > 1 else []
    lines += [list(row) for row in zip(*columns.values(), strict=True)]
    return "".join("\t".join(" ".join(cell.split()) for cell in line) + "\n" for line in lines)


def sprite(x: NDArray[np.float32]) -> bytes:
    """Images (n, C, H, W) in [0, 1] side by side in a square, as a PNG; made smaller where they would be too large."""
    n, channels, height, width = x.shape
    across = math.ceil(math.sqrt(n))
    tiles = np.zeros((across * across, channels, height, width), np.uint8)
    tiles[:n] = np.rint(x.clip(0, 1) * 255)
    grid = tiles.reshape(across, across, channels, height, width).transpose(0, 3, 1, 4, 2)
    whole = grid.reshape(across * height, across * width, channels)
    image = Image.fromarray(whole[..., 0] if channels == 1 else whole)
    if max(image.size) > SIDE:
        shrink = SIDE // across / max(height, width)
        image = image.resize((across * int(width * shrink), across * int(height * shrink)))
    content = io.BytesIO()
    image.save(content, "PNG")
    return content.getvalue()
