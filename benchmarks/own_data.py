"""Own data with no option but --data: is a reconstruction by the default VAE better than by principal components?

    python -m benchmarks.own_data                        # all sets, with the defaults
    python -m benchmarks.own_data digits cancer          # some of them
    python -m benchmarks.own_data --before --steps 2000  # with the defaults that there were before

Each row: the mean squared error of an example of the test split, decoded from the mean of q(z|x), and the same by as many
principal components of the same training split as z has dimensions. Images count in [0, 1]. Of the table both are given in
the units of its columns and, so that the largest column does not decide alone, in widths of each. A sheet of samples from
the prior lies beside each run as samples.png.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib import cbook
from numpy.typing import NDArray
from PIL import Image, ImageEnhance
from sklearn.datasets import load_breast_cancer, load_digits, load_sample_images

import elboroom

SIDE = 64  # pixels of a photo
MIDDLE = 0.95  # of the light on portraits
BEFORE = {
    "likelihood": "auto",
    "net": "auto",
    "init": "kaiming",
    "standardise": False,
    "lr": 5e-4,
    "decay": "none",
    "batch_size": 64,
}
Rows = NDArray[np.float64]


def photos(folder: Path) -> Path:
    """300 photos of 64 x 64: overlapping pieces of scikit-learn's two."""
    made = folder / "photos"
    made.mkdir(parents=True, exist_ok=True)
    for name, picture in zip(("china", "flower"), load_sample_images().images, strict=True):
        tops = np.linspace(0, picture.shape[0] - SIDE, 10).astype(int)
        lefts = np.linspace(0, picture.shape[1] - SIDE, 15).astype(int)
        for top, left in ((top, left) for top in tops for left in lefts):
            piece = picture[top : top + SIDE, left : left + SIDE]
            Image.fromarray(piece).save(made / f"{name}-{top:03}-{left:03}.png")
    return made


def portraits(folder: Path) -> Path:
    """300 photos of 64 x 64 of one person: matplotlib's sample picture, each time held a little differently.

    Beside them labels.csv: whether a photo is light or dark, and to which side the head leans.
    """
    made = folder / "portraits"
    made.mkdir(parents=True, exist_ok=True)
    with cbook.get_sample_data("grace_hopper.jpg") as file:
        picture = Image.open(file).convert("RGB").crop((40, 0, 472, 432))
    rng = np.random.default_rng(0)
    labels = ["file,light,lean"]
    for number in range(300):
        angle, zoom, light = rng.uniform(-10, 10), rng.uniform(0.6, 0.9), rng.uniform(0.7, 1.2)
        side = zoom * picture.width
        left, top = rng.uniform(0, picture.width - side, 2)
        turned = picture.rotate(angle, Image.Resampling.BICUBIC)
        piece = turned.crop((int(left), int(top), int(left + side), int(top + side))).resize((SIDE, SIDE))
        ImageEnhance.Brightness(piece).enhance(light).save(made / f"{number:03}.png")
        labels.append(f"{number:03}.png,{'light' if light > MIDDLE else 'dark'},{'left' if angle > 0 else 'right'}")
    (made / "labels.csv").write_text("\n".join(labels) + "\n")
    return made


def digits(folder: Path) -> Path:
    """scikit-learn's digits as they come: 8 x 8, whole numbers from 0 to 16, as float64."""
    np.save(folder / "digits.npy", load_digits().images)
    return folder / "digits.npy"


def cancer(folder: Path) -> Path:
    """scikit-learn's table of 569 tumours, 30 numbers and whether it was benign, as a CSV with a header."""
    found = load_breast_cancer()
    header = [*(name.replace(" ", "_") for name in found.feature_names), "benign"]
    rows = np.column_stack([found.data, found.target])
    lines = [",".join(header), *(",".join(f"{value:g}" for value in row) for row in rows)]
    (folder / "cancer.csv").write_text("\n".join(lines) + "\n")
    return folder / "cancer.csv"


MAKE = {"photos": photos, "portraits": portraits, "digits": digits, "cancer": cancer}
NAMES = ("freyfaces", "fashion-mnist", "omniglot", *MAKE)


def principal(train: Rows, test: Rows, latent: int) -> Rows:
    """The test rows by so many principal components of the training rows."""
    centre = train.mean(0)
    axes = np.linalg.svd(train - centre, full_matrices=False)[2][:latent]
    projected: Rows = (test - centre) @ axes.T @ axes + centre
    return projected


def error(rows: Rows, made: Rows) -> float:
    """Squared error of a row, averaged over rows."""
    return float(np.square(rows - made).sum(1).mean())


def measure(run: Any, most: int = 10_000) -> dict[str, float]:
    """The errors of a run and of principal components on its test split."""
    data = run.data
    train, test = (data.x(data.splits[split][:most]).double().flatten(1).numpy() for split in ("train", "test"))
    made = run.reconstruct(data.x(data.splits["test"][:most]).numpy()).reshape(len(test), -1).astype(np.float64)
    found = {"error": error(test, made), "pca": error(test, principal(train, test, run.latent))}
    if data.about.kind == "vectors":
        width = np.maximum(train.std(0), 1e-12)
        found["error, in widths"] = error(test / width, made / width)
        found["pca, in widths"] = error(test / width, principal(train / width, test / width, run.latent))
    return found


def sheet(images: NDArray[np.float32], columns: int = 12, zoom: int = 2) -> Image.Image:
    """Images (n, C, H, W) side by side."""
    n, c, high, wide = images.shape
    grid = images.clip(0, 1).reshape(n // columns, columns, c, high, wide).transpose(0, 3, 1, 4, 2)
    flat = (255 * grid.reshape(n // columns * high, columns * wide, c)).astype(np.uint8)
    picture = Image.fromarray(flat if c == 3 else flat[..., 0])
    return picture.resize((zoom * picture.width, zoom * picture.height), Image.Resampling.NEAREST)


def row(name: str, folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Trains on one set and measures it."""
    source = str(MAKE[name](folder)) if name in MAKE else name
    before = time.process_time()
    run = elboroom.train("vae", source, folder / f"run-{name}", **options)
    seconds = time.process_time() - before
    found = {"data": name, "steps": run.step, "CPU seconds": round(seconds), **measure(run)}
    found |= {"elbo": run.elbo().value, "rate": sum(run.kl_per_dim())}
    codes = run.encode(run.data.x(run.data.splits["test"][:2000]).numpy())
    found |= {"largest mean of a code": float(np.abs(codes.mean(0)).max())}
    if run.data.about.kind == "pixels":
        shown = run.data.x(run.data.splits["test"][:12]).numpy()
        sheet(np.concatenate([shown, run.reconstruct(shown), run.sample(24)])).save(folder / f"run-{name}/samples.png")
    (folder / f"run-{name}/own.json").write_text(json.dumps(found, indent=1))
    return found


def main() -> None:
    """Reads the command line, and prints a row as each is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(NAMES)}; all of them if none is said")
    parser.add_argument("--out", type=Path, default=Path("runs/own"))
    parser.add_argument("--steps", type=int, help="instead of what suits the data")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--before", action="store_true", help="with the defaults that there were before")
    told = parser.parse_args()
    options: dict[str, Any] = {"threads": told.threads or torch.get_num_threads()} | (BEFORE if told.before else {})
    options |= {"steps": told.steps} if told.steps else {}
    told.out.mkdir(parents=True, exist_ok=True)
    for name in told.names or NAMES:
        bytes_ = {"levels": 256} if told.before and name == "digits" else {}  # all whole numbers were
        try:
            print(json.dumps(row(name, told.out, options | bytes_)), flush=True)
        except elboroom.Problem as problem:
            print(json.dumps({"data": name, "problem": str(problem)}), flush=True)


if __name__ == "__main__":
    main()
