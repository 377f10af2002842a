"""Binary masks of the rendered chairs of Aubry et al. 2014, as the DIP-VAE paper takes them: white where the chair is.

    python tools/chairs.py rendered_chairs chairs

reads MODEL/renders/*.png of each model and writes chairs/train and chairs/test: the first 80 % of the models to train on.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from PIL import Image

SIZE, PAPER, SHARE = 64, 250, 0.8  # side of a mask; what is darker than paper is chair; share of the models to train on


def mask(path: Path) -> Image.Image:
    """The mask of a render, cut to a square about its middle."""
    with Image.open(path) as image:
        grey = image.convert("L")
        side = min(grey.size)
        left, top = ((length - side) // 2 for length in grey.size)
        cut = grey.crop((left, top, left + side, top + side))
    dark = Image.fromarray(((np.asarray(cut) < PAPER) * 255).astype(np.uint8))
    small = np.asarray(dark.resize((SIZE, SIZE), Image.Resampling.BOX))
    return Image.fromarray(((small >= 128) * 255).astype(np.uint8))


def main() -> None:
    """Writes the masks of a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("source", type=Path, help="the folder rendered_chairs")
    parser.add_argument("out", type=Path, help="a new folder for the masks")
    said = parser.parse_args()
    models = sorted(folder for folder in said.source.iterdir() if (folder / "renders").is_dir())
    if not models:
        sys.exit(f"{said.source} has no folders MODEL/renders")
    for number, model in enumerate(models):
        part = said.out / ("train" if number < SHARE * len(models) else "test")
        part.mkdir(parents=True, exist_ok=True)
        for path in sorted((model / "renders").glob("*.png")):
            mask(path).save(part / f"{model.name}-{path.stem}.png")


if __name__ == "__main__":
    main()
