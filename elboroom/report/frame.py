"""Frames: exhibits as a page holds them, each with its picture and its data inside."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from elboroom.plots.exhibit import Exhibit
from elboroom.plots.style import DPI
from elboroom.report.chart import Panel

HEAVY = 200_000  # bytes above which a picture is kept in 256 colours


@dataclass(frozen=True)
class Framed:
    """An exhibit as a page holds it."""

    exhibit: Exhibit
    panels: Sequence[Panel] = ()  # curves that can be pointed at, in place of the picture
    source: str = ""  # the picture as a data address
    width: int = 0  # in which it is shown
    download: str = ""  # its data as a data address


def framed(exhibit: Exhibit, folder: Path, scale: float, panels: Sequence[Panel] = ()) -> Framed:
    """An exhibit with its picture, as it was saved in a folder, and its data; charts are scaled."""
    if exhibit.figure is None or panels:
        return Framed(exhibit, panels)
    width = exhibit.figure.get_figwidth() * DPI
    data = _address("text/csv", exhibit.data.encode()) if exhibit.data else ""
    if exhibit.chart:
        content = (folder / f"{exhibit.name}.svg").read_bytes()
        return Framed(exhibit, (), _address("image/svg+xml", content), round(scale * width), data)
    content = (folder / f"{exhibit.name}.png").read_bytes()
    if len(content) > HEAVY:
        light = io.BytesIO()
        Image.open(io.BytesIO(content)).convert("RGB").quantize(256).save(light, "PNG", optimize=True)
        content = light.getvalue()
    return Framed(exhibit, (), _address("image/png", content), round(width / 1.5), data)


def _address(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
