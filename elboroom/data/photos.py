"""Photos: how the picture in a file becomes bytes: the right way up, on a background, cropped, resized."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageColor, ImageOps
from pydantic import BaseModel, ConfigDict, Field, field_validator

from elboroom.core.problem import Problem

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")
OF_OLD = SUFFIXES[:-2]  # those that runs of before have read
UNREADABLE = (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError)
ORIENTATION = 0x0112  # in EXIF
WHITE, TWELVE_BITS = 65_535, 4_096  # of 16 bits; what stays below this are the values of a camera of 12
LYING = (5, 6, 7, 8)  # of its values, those that swap width and height


class Photos(BaseModel):
    """How pictures are read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    background: str = Field(
        "white",
        description="colour behind transparent pixels of pictures, by name or as #rrggbb; '' drops transparency",
    )
    crop: Literal["none", "centre"] = Field(
        "none", description="none squashes pictures to --size; centre keeps their square in the middle"
    )
    skip_bad: bool = Field(False, description="leave out files that cannot be read, with a warning")

    @field_validator("background")
    @classmethod
    def _colour(cls, name: str) -> str:
        if name:
            try:
                ImageColor.getrgb(name)
            except ValueError:
                raise ValueError(f"is no colour ('{name}'); use a name such as white, or #rrggbb") from None
        return name

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The kinds of files that are pictures."""
        return SUFFIXES

    def upright(self, image: Image.Image) -> Image.Image:
        """The picture as its camera was held."""
        return ImageOps.exif_transpose(image)

    def size(self, image: Image.Image) -> tuple[int, int]:
        """Width and height once it is upright and cropped, from its header."""
        width, height = image.size
        if image.getexif().get(ORIENTATION) in LYING:
            width, height = height, width
        return (min(width, height),) * 2 if self.crop == "centre" else (width, height)

    def is_grey(self, image: Image.Image) -> bool:
        """Whether it has no colour, by its header."""
        if image.mode == "P":
            table = np.array(image.getpalette() or [0, 0, 0]).reshape(-1, 3)
            plain = bool(np.all(table == table[:, :1]))
        else:
            plain = image.mode in ("1", "L", "LA") or is_deep(image)
        return plain and not (
            self.background and has_holes(image) and len({*ImageColor.getrgb(self.background)[:3]}) > 1
        )

    def shallow(self, image: Image.Image) -> Image.Image:
        """A picture of 16 bits or of real numbers in 8 bits; refuses values of which nobody can tell what white is."""
        values = np.asarray(image)
        low, high = values.min(), values.max()
        if image.mode == "F":
            if not (low >= 0 and high <= 1):
                raise ValueError(f"its values are real numbers from {low:g} to {high:g}; bring them to 0 to 1")
            return Image.fromarray(np.rint(255 * values).astype(np.uint8))
        if low < 0 or high > WHITE or 0 < high < TWELVE_BITS:
            raise ValueError(
                f"its values are from {low:,} to {high:,}; bring them to 0 to {WHITE:,}, or write it in 8 bits"
            )
        return Image.fromarray((values // 256).astype(np.uint8))

    def check(self, image: Image.Image) -> None:
        """Reads all of a picture; raises what keeps it from being read."""
        image.load()
        if is_deep(image):
            self.shallow(image)

    def pixels(self, image: Image.Image, mode: str, size: tuple[int, int]) -> NDArray[np.uint8]:
        """A picture as bytes, (H, W) or (H, W, 3); `size` is (W, H). Shrinking averages areas."""
        image = self.upright(image)
        if is_deep(image):  # Pillow would cut them off at 255
            image = self.shallow(image)
        if self.background and has_holes(image):
            behind = Image.new("RGBA", image.size, self.background)
            image = Image.alpha_composite(behind, image.convert("RGBA"))
        image = image.convert(mode)
        if self.crop == "centre":
            side = min(image.size)
            left, top = (image.width - side) // 2, (image.height - side) // 2
            image = image.crop((left, top, left + side, top + side))
        if image.size != size:
            shrinks = size[0] <= image.width and size[1] <= image.height
            image = image.resize(size, Image.Resampling.BOX if shrinks else Image.Resampling.BILINEAR)
        return np.asarray(image, np.uint8)


class OldPhotos(Photos):
    """As runs of before have read them: the way that a camera was held and transparency were ignored, and so was TIFF."""

    background: str = ""

    @property
    def suffixes(self) -> tuple[str, ...]:
        return OF_OLD

    def upright(self, image: Image.Image) -> Image.Image:
        return image

    def size(self, image: Image.Image) -> tuple[int, int]:
        return image.size

    def is_grey(self, image: Image.Image) -> bool:
        return image.mode != "F" and super().is_grey(image)

    def shallow(self, image: Image.Image) -> Image.Image:
        return image if image.mode == "F" else Image.fromarray((np.asarray(image) // 256).astype(np.uint8))


def is_deep(image: Image.Image) -> bool:
    """Whether its values may have more than 8 bits."""
    return image.mode == "F" or image.mode.startswith("I")


def has_holes(image: Image.Image) -> bool:
    """Whether some of it may be transparent."""
    return image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info


def opened(path: Path, shape: tuple[int, ...], photos: Photos) -> NDArray[np.uint8]:
    """The picture of a file as bytes of this shape, (C, H, W)."""
    channels, height, width = shape
    with Image.open(path) as image:
        found = photos.pixels(image, "L" if channels == 1 else "RGB", (width, height))
    return np.moveaxis(found.reshape(height, width, -1), -1, 0)


def reason(error: BaseException, path: Path) -> str:
    """Why a file cannot be read, in a few words."""
    told = getattr(error, "strerror", None) or " ".join(
        str(error).replace(str(path), "it").replace("'it'", "it").split()
    )
    return "it is no picture" if told.startswith("cannot identify") else str(told)


def refuse(bad: dict[Path, str], of: int) -> Problem:
    """The Problem of files that cannot be read: all of them, so that they can be mended at once."""
    named = "; ".join(f"{path} ({why})" for path, why in bad.items())
    many = "1 file" if len(bad) == 1 else f"{len(bad):,} of {of:,} files"
    return Problem(f"{many} cannot be read as an image: {named}; mend them, or leave them out with --skip-bad")
