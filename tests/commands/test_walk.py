"""A walk through ten kinds of data of one's own: two steps on each, and what is said of what was read.

`pytest -s tests/commands/test_walk.py` prints the screens.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image
from shell import elbo

import elboroom

RNG = np.random.default_rng(0)
FRENCH = ["le café est fermé", "la forêt était là", "où est la clé", "il a mangé le gâteau"]


class Kind(NamedTuple):
    """Where data lie, the options that they need, and the lines that are to be said of them."""

    source: Path
    options: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    sentence: str = ""  # one that is to come back as it was


def faces(place: Path) -> Kind:
    np.save(place / "faces.npy", RNG.integers(0, 256, (50, 28, 20), dtype=np.uint8))
    return Kind(
        place / "faces.npy", said=("50 images of 1 x 28 x 20, values from 0 to 255; 45 to train on, 5 to test on",)
    )


def digits(place: Path) -> Kind:
    np.save(place / "digits.npy", RNG.integers(0, 17, (60, 8, 8)).astype(float))
    return Kind(
        place / "digits.npy",
        said=("60 images of 1 x 8 x 8, values from 0 to 16 (if 16 is not white, say --levels); 54 to",),
    )


def floats(place: Path) -> Kind:
    np.save(place / "floats.npy", RNG.uniform(size=(50, 8, 8)).astype(np.float32))
    return Kind(place / "floats.npy", said=("50 images of 1 x 8 x 8, values in [0, 1]; 45 to train on, 5 to test on",))


def photos(place: Path) -> Kind:
    """With transparency, and held sideways."""
    turned = Image.Exif()
    turned[0x0112] = 6
    (place / "photos").mkdir()
    for k in range(30):
        pixels = RNG.integers(0, 256, (12, 16, 4), dtype=np.uint8)
        Image.fromarray(pixels).save(place / "photos" / f"{k}.png")
        lying = Image.fromarray(pixels[..., :3]).rotate(90, expand=True)
        lying.save(place / "photos" / f"turned{k}.jpg", exif=turned)
    return Kind(
        place / "photos", said=("60 images of 3 x 12 x 16, values from 0 to 255; 54 to train on, 6 to test on",)
    )


def table(place: Path) -> Kind:
    rows = RNG.normal(size=(50, 3)) * [1, 10, 300]
    (place / "t.csv").write_text("width,height,weight\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return Kind(place / "t.csv", said=("50 vectors of 3 numbers; 45 to train on, 5 to test on",))


def splits(place: Path) -> Kind:
    x, y = RNG.integers(0, 256, (60, 6, 6), dtype=np.uint8), np.arange(60) % 3
    np.savez(place / "s.npz", x_train=x[:40], y_train=y[:40], x_test=x[40:], y_test=y[40:])
    said = (
        "60 images of 1 x 6 x 6, values from 0 to 255; 40 to train on, 20 to test on",
        "labels: label (3 values: 0, 1, 2)",
    )
    return Kind(place / "s.npz", said=said)


def labelled(place: Path) -> Kind:
    rows = (f"{' '.join(RNG.choice(list('abcd'), 4))}\t{'good' if k % 2 else 'bad'}\n" for k in range(80))
    (place / "said.tsv").write_text("text\tlabel\n" + "".join(rows))
    return Kind(place / "said.tsv", said=("80 sentences of up to 5 tokens", "labels: label (2 values: bad, good)"))


def latin(place: Path) -> Kind:
    (place / "latin.txt").write_text("".join(f"{FRENCH[k % 4]} {k % 5}\n" for k in range(80)), encoding="latin-1")
    return Kind(
        place / "latin.txt",
        ("--encoding", "latin-1"),
        ("80 sentences of up to 7 tokens, 23 different words",),
        FRENCH[0],
    )


def french(place: Path) -> Kind:
    (place / "french.txt").write_text("".join(f"{FRENCH[k % 4]} {k % 5}\n" for k in range(80)), encoding="utf-8")
    return Kind(place / "french.txt", said=("80 sentences of up to 7 tokens, 23 different words",), sentence=FRENCH[0])


def classes(place: Path) -> Kind:
    for k in range(40):
        (place / "pets" / ("cat" if k % 2 else "dog")).mkdir(parents=True, exist_ok=True)
        pixels = RNG.integers(0, 256, (8, 8), dtype=np.uint8)
        Image.fromarray(pixels).save(place / "pets" / ("cat" if k % 2 else "dog") / f"{k}.png")
    return Kind(
        place / "pets",
        ("--given", "label"),
        ("40 images of 1 x 8 x 8", "labels: label (2 values: cat, dog)", "given label"),
    )


KINDS = (faces, digits, floats, photos, table, splits, labelled, latin, french, classes)


@pytest.mark.unhurried
@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_data_of_ones_own_are_read_and_said(make: Callable[[Path], Kind], tmp_path: Path) -> None:
    kind = make(tmp_path)
    options = ("--steps", 2, "--latent", 2, "--threads", 1, *kind.options)
    done = elbo("train", "vae", "--data", kind.source, "--out", tmp_path / "run", *options)
    print(f"\n$ elbo train vae --data {kind.source.name} {' '.join(kind.options)}\n{done.stderr}")
    assert done.returncode == 0
    for line in kind.said:
        assert line in done.stderr
    if kind.sentence:
        assert elboroom.load(tmp_path / "run").seen(kind.sentence) == kind.sentence
