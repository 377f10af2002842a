"""The image sets of the literature, read from the files their authors publish."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from elboroom.core.problem import Problem
from elboroom.data import places
from elboroom.data.arrays import HOLDOUT, pixels
from elboroom.data.dataset import About, Bits, Bytes, DataSet
from elboroom.data.fields import CATEGORICAL
from elboroom.data.photos import UNREADABLE, OldPhotos

Images = NDArray[np.uint8]
Progress = Callable[[int, int], None]

IDX = tuple(f"{part}-{what}-ubyte.gz" for part in ("train", "t10k") for what in ("images-idx3", "labels-idx1"))
STATIC = "binarized_mnist_static.npz"
AMAT = tuple(f"binarized_mnist_{part}.amat" for part in ("train", "valid", "test"))
FREY, FREY_MAT = "freyfaces.npz", "frey_rawface.mat"
OMNIGLOT = ("images_background_small1.zip", "images_background_small2.zip")


@contextmanager
def _reading(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except (
        OSError,
        EOFError,
        ValueError,
        KeyError,
        struct.error,
        zlib.error,
        zipfile.BadZipFile,
        SyntaxError,
    ) as error:
        raise Problem(f"{path} cannot be read as {what}: {error}") from error


def idx(path: Path) -> Images:
    """The array in an idx file of bytes, gzipped: two zeros, type 8, the number of axes, their sizes, the values."""
    with _reading(path, "a gzipped idx file"):
        data = gzip.decompress(path.read_bytes())
        if data[:3] != b"\0\0\x08":
            raise ValueError("it does not begin with the mark of idx bytes")
        shape = struct.unpack(f">{data[3]}I", data[4 : 4 + 4 * data[3]])
        return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)


def _stacked(*sizes: int) -> dict[str, NDArray[np.int64]]:
    ends = np.cumsum(sizes)
    names = ("train", "valid", "test") if len(sizes) == 3 else ("train", "test")
    return {name: np.arange(end - n, end) for name, n, end in zip(names, sizes, ends, strict=True)}


def digits(folder: Path, name: str) -> DataSet:
    """MNIST, or a set published in its files: grey images with one of ten labels."""
    train, train_labels, test, test_labels = (idx(folder / file) for file in IDX)
    images = np.concatenate([train, test])[:, None]  # (N, 1, 28, 28)
    labels = np.concatenate([train_labels, test_labels]).reshape(-1, 1)
    about = About(name, "pixels", images.shape[1:], len(train), {"label": 10}, kinds={"label": "categorical"})
    return DataSet(about, Bytes(images), _stacked(len(train), len(test)), labels)


def binarized(folder: Path) -> DataSet:
    """MNIST under the fixed binarisation of Larochelle, with its own train, valid and test."""
    kept = folder / STATIC
    if not kept.is_file():
        kept = pack(folder)
    with _reading(kept, "packed bits"), np.load(kept, allow_pickle=False) as archive:
        parts = [archive[name] for name in ("train", "valid", "test")]  # (N, 98) each
        if any(part.dtype != np.uint8 or part.shape[1:] != (98,) for part in parts):
            raise ValueError(f"it holds {', '.join(f'{part.dtype} {part.shape}' for part in parts)}")
    about = About("binarized-mnist", "pixels", (1, 28, 28), len(parts[0]), {}, levels=2)
    return DataSet(about, Bits(np.concatenate(parts), about.shape), _stacked(*map(len, parts)))


def pack(folder: Path, into: Path | None = None) -> Path:
    """Packs the three published text files into one npz of bits; gives its path."""
    kept = (into or places.cache() / "binarized_mnist") / STATIC
    bits = []
    for file in AMAT:
        with _reading(folder / file, "rows of 784 zeros and ones"):
            text = np.frombuffer((folder / file).read_bytes(), np.uint8)
            text = text[(text != ord(" ")) & (text != ord("\n")) & (text != ord("\r"))] - ord("0")
            if text.max(initial=0) > 1:
                raise ValueError("it has other characters")
            bits.append(np.packbits(text.reshape(-1, 784), axis=1))  # (N, 98)
    with places.writing(kept) as part, open(part, "wb") as target:
        np.savez_compressed(target, train=bits[0], valid=bits[1], test=bits[2])
    return kept


def freyfaces(folder: Path) -> DataSet:
    """Frey's face: 1,965 grey frames of one film, 28 x 20."""
    if not (folder / FREY).is_file():
        images = _frey(folder / FREY_MAT)
    else:
        with _reading(folder / FREY, "an array of images"), np.load(folder / FREY, allow_pickle=False) as archive:
            images = archive["images"]
    if images.shape[1:] != (28, 20) or images.dtype != np.uint8:
        raise Problem(f"{folder} has {images.dtype} {images.shape}; Frey faces must be bytes of shape (N, 28, 20)")
    about = About("freyfaces", "pixels", (1, 28, 20), len(images), {})
    return DataSet(about, Bytes(images[:, None]), holdout=HOLDOUT)


def _frey(path: Path) -> Images:
    from scipy.io import loadmat

    with _reading(path, "a MATLAB file"):
        return np.ascontiguousarray(loadmat(path)["ff"].T.reshape(-1, 28, 20).astype(np.uint8))


def omniglot(folder: Path, size: int | None = None, progress: Progress | None = None) -> DataSet:
    """Omniglot, both small background sets, what they share once: ink is 1; shrunk from 105 x 105 by averaging areas.

    Greek and Latin are in both; kept twice, a thousand images would stand on either side of a split.
    """
    side = 32 if size is None else size
    if not 1 <= side <= 105:
        raise Problem(f"--size of Omniglot must be from 1 to 105, not {side}")
    members = {name.partition("/")[2]: (folder / file, name) for file in OMNIGLOT for name in _members(folder / file)}
    entries = [members[key] for key in sorted(members)]
    images = np.empty((len(entries), 1, side, side), np.uint8)
    archives = {folder / file: zipfile.ZipFile(folder / file) for file in OMNIGLOT}
    for row, (path, name) in enumerate(entries):
        try:
            with Image.open(io.BytesIO(archives[path].read(name))) as image:
                images[row, 0] = 255 - OldPhotos().pixels(image, "L", (side, side))  # paper is white
        except (*UNREADABLE, zipfile.BadZipFile, zlib.error) as error:
            raise Problem(f"{path} has an image that cannot be read ({name}): {error}") from error
        if progress is not None and ((row + 1) % 256 == 0 or row + 1 == len(entries)):
            progress(row + 1, len(entries))
    for archive in archives.values():
        archive.close()
    parents = [name.split("/")[-3:-1] for _, name in entries]  # alphabet, character
    alphabets, alphabet = np.unique([parts[0] for parts in parents], return_inverse=True)
    characters, character = np.unique(["/".join(parts) for parts in parents], return_inverse=True)
    store, levels = pixels(images, "omniglot")
    names = {"alphabet": len(alphabets), "character": len(characters)}
    about = About("omniglot", "pixels", (1, side, side), len(images), names, levels, dict.fromkeys(names, CATEGORICAL))
    return DataSet(about, store, labels=np.stack([alphabet, character], axis=1), holdout=HOLDOUT)


def _members(path: Path) -> list[str]:
    with _reading(path, "a zip of images"), zipfile.ZipFile(path) as archive:
        return sorted(name for name in archive.namelist() if name.endswith(".png"))
