"""Answers: what the server says to one question, facts beside bytes in one message."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from elboroom.plots.pictures import Pixels, colour


@dataclass(frozen=True)
class Answer:
    """Facts, and bytes: a picture, or the numbers of an array as they lie in memory."""

    facts: dict[str, Any] = field(default_factory=dict)
    body: bytes = b""

    def message(self, **more: Any) -> bytes:
        """The length of the facts as four bytes, the facts as JSON, then the bytes, which begin at a multiple of four."""
        told = json.dumps(self.facts | more, allow_nan=False, separators=(",", ":")).encode()
        told += b" " * (-len(told) % 4)
        return struct.pack("<I", len(told)) + told + self.body


def sprite(images: Pixels, low: float = 0.0, high: float = 1.0) -> Answer:
    """Images (n, C, H, W) on [low, high] side by side in one PNG, pixel for pixel."""
    count, channels, height, width = images.shape
    shown = colour(images, low, high)  # (n, 3, H, W)
    pixels = np.rint(255 * shown.transpose(2, 0, 3, 1).reshape(height, count * width, 3)).astype(np.uint8)
    picture = Image.fromarray(pixels if channels == 3 else np.ascontiguousarray(pixels[..., 0]))
    made = io.BytesIO()
    picture.save(made, "PNG", compress_level=1)  # the way is short and the hand does not wait
    return Answer({"count": count, "width": width, "height": height}, made.getvalue())


def plain(values: Sequence[float] | NDArray[Any]) -> list[float]:
    """Numbers as JSON has them: six digits are more than a slider can show."""
    return [float(f"{value:.6g}") for value in values]
