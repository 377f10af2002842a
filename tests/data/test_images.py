from __future__ import annotations

import gzip
import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from scipy.io import savemat

from elboroom.core.problem import Problem
from elboroom.data import images, registry

rng = np.random.default_rng(0)


def idx(path: Path, array: NDArray[np.uint8]) -> None:
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(header + array.tobytes()))


def write_digits(folder: Path) -> NDArray[np.uint8]:
    pictures = rng.integers(0, 256, (9, 28, 28), dtype=np.uint8)
    idx(folder / images.IDX[0], pictures[:6])
    idx(folder / images.IDX[1], np.arange(6, dtype=np.uint8))
    idx(folder / images.IDX[2], pictures[6:])
    idx(folder / images.IDX[3], np.arange(6, 9, dtype=np.uint8))
    return pictures


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_digits(cache: Path, name: str) -> None:
    pictures = write_digits(cache / name.replace("-", "_"))
    data = registry.load(name)
    assert (data.about.name, data.about.n, data.about.labels) == (name, 6, {"label": 10})
    assert data.splits["test"].tolist() == [6, 7, 8]
    assert np.array_equal(data.x(np.arange(9)).numpy()[:, 0], pictures.astype(np.float32) / 255)
    assert data.labels[:, 0].tolist() == list(range(9))


def test_digits_that_are_cut(cache: Path) -> None:
    write_digits(cache / "mnist")
    path = cache / "mnist" / images.IDX[2]
    whole = path.read_bytes()
    for broken in (whole[:-50], gzip.compress(gzip.decompress(whole)[:-50]), gzip.compress(b"text"), b""):
        path.write_bytes(broken)
        with pytest.raises(Problem, match=r"t10k-images-idx3-ubyte\.gz cannot be read"):
            registry.load("mnist")


def test_binarized_from_bits_and_from_text(cache: Path) -> None:
    folder = cache / "binarized_mnist"
    folder.mkdir(parents=True)
    bits = [rng.integers(0, 2, (n, 784), dtype=np.uint8) for n in (4, 3, 2)]
    for file, part in zip(images.AMAT, bits, strict=True):
        (folder / file).write_text("".join(" ".join(map(str, row)) + " \n" for row in part))
    data = registry.load("binarized-mnist")
    assert (folder / images.STATIC).is_file()
    assert {name: len(rows) for name, rows in data.splits.items()} == {"train": 4, "valid": 3, "test": 2}
    assert np.array_equal(data.x(np.arange(9)).numpy().reshape(9, 784), np.concatenate(bits))
    assert (data.about.levels, data.about.shape) == (2, (1, 28, 28))
    for file in images.AMAT:
        (folder / file).unlink()
    assert registry.load("binarized-mnist").hash == data.hash


def test_binarized_that_is_broken(cache: Path) -> None:
    folder = cache / "binarized_mnist"
    folder.mkdir(parents=True)
    for file in images.AMAT:
        (folder / file).write_text("0 1 2")
    with pytest.raises(Problem, match=r"binarized_mnist_train\.amat cannot be read"):
        registry.load("binarized-mnist")
    np.savez(folder / images.STATIC, train=np.zeros((3, 784), np.uint8))
    with pytest.raises(Problem, match=r"binarized_mnist_static\.npz cannot be read"):
        registry.load("binarized-mnist")


def test_freyfaces_from_npz_and_from_matlab(cache: Path) -> None:
    folder = cache / "freyfaces"
    folder.mkdir(parents=True)
    faces = rng.integers(0, 256, (5, 28, 20), dtype=np.uint8)
    savemat(folder / images.FREY_MAT, {"ff": faces.reshape(5, 560).T})
    one = registry.load("freyfaces")
    np.savez(folder / images.FREY, images=faces)
    assert registry.load("freyfaces").hash == one.hash
    assert (one.about.shape, one.holdout) == ((1, 28, 20), 0.1)
    np.savez(folder / images.FREY, images=faces[:, 1:])
    with pytest.raises(Problem, match=r"shape \(N, 28, 20\)"):
        registry.load("freyfaces")


def write_omniglot(folder: Path) -> None:
    folder.mkdir(parents=True)
    for file, alphabets in zip(images.OMNIGLOT, (("Greek", "Korean"), ("Greek", "Latin")), strict=True):
        with zipfile.ZipFile(folder / file, "w") as archive:
            for alphabet in alphabets:
                for character in ("character01", "character02"):
                    page = np.ones((105, 105), bool)
                    page[:, : 105 // 3] = False  # a third is ink
                    target = io.BytesIO()
                    Image.fromarray(page).save(target, "png")
                    archive.writestr(f"{file[:-4]}/{alphabet}/{character}/0001_01.png", target.getvalue())


def test_omniglot(cache: Path) -> None:
    write_omniglot(cache / "omniglot")
    data = registry.load("omniglot")
    assert (len(data), data.about.shape, data.about.levels) == (6, (1, 32, 32), 256)  # what both hold counts once
    assert data.about.labels == {"alphabet": 3, "character": 6}
    assert data.x([0]).mean().item() == pytest.approx(1 / 3, abs=0.01)
    assert data.x([0])[0, 0, :, 0].min() == 1  # ink is 1
    whole = registry.load("omniglot", size=105)
    assert (whole.about.shape, whole.about.levels) == ((1, 105, 105), 2)
    with pytest.raises(Problem, match="from 1 to 105"):
        registry.load("omniglot", size=200)
    path = cache / "omniglot" / images.OMNIGLOT[1]
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(Problem, match=r"small2\.zip cannot be read"):
        registry.load("omniglot")


@pytest.mark.unhurried
@pytest.mark.parametrize(
    ("name", "splits", "shape", "levels", "mean"),
    [
        ("mnist", {"train": 60_000, "test": 10_000}, (1, 28, 28), 256, 0.1307),
        ("fashion-mnist", {"train": 60_000, "test": 10_000}, (1, 28, 28), 256, 0.2860),
        ("binarized-mnist", {"train": 50_000, "valid": 10_000, "test": 10_000}, (1, 28, 28), 2, 0.13),
        ("freyfaces", {"train": 1_965}, (1, 28, 20), 256, 0.61),
        ("omniglot", {"train": 4_840}, (1, 32, 32), 256, 0.075),
    ],
)
def test_real(real: Path, name: str, splits: dict[str, int], shape: tuple[int, ...], levels: int, mean: float) -> None:
    data = registry.load(name)
    assert {split: len(rows) for split, rows in data.splits.items()} == splits
    assert (data.about.shape, data.about.levels) == (shape, levels)
    x = data.x(data.splits["train"])
    assert (x.min().item(), x.max().item()) == pytest.approx((0, 1), abs=0.07)
    assert x.mean().item() == pytest.approx(mean, abs=0.02)
