"""A picture of the user's own, read as the data was: in memory, within limits, and as nothing but a picture."""

from __future__ import annotations

import io
import warnings

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from elboroom.core.problem import Problem
from elboroom.data.dataset import About
from elboroom.data.photos import UNREADABLE, Photos

BYTES = 10 << 20  # of an upload
PIXELS = 25_000_000
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF")


def read(content: bytes, about: About, invert: bool = False) -> NDArray[np.float32]:
    """One image (1, C, H, W) on [0, 1], scaled as a folder of images is; black and white where the data is."""
    channels, height, width = about.shape
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(io.BytesIO(content), formats=FORMATS) as image:
            if image.width * image.height > PIXELS:
                raise Problem(
                    f"the image has {image.width:,} x {image.height:,} pixels; at most {PIXELS:,} are read"
                )  # its header alone was looked at
            pixels = Photos().pixels(image, "L" if channels == 1 else "RGB", (width, height))
    except UNREADABLE as error:
        raise Problem(f"this is not an image of {', '.join(FORMATS)} that can be read") from error
    x = np.moveaxis(pixels.reshape(height, width, -1), -1, 0)[None].astype(np.float32) / 255
    x = np.broadcast_to(x, (1, channels, height, width)) if x.shape[1] == 1 else x
    x = 1 - x if invert else x
    return np.ascontiguousarray(np.rint(x) if about.levels == 2 else x, np.float32)
