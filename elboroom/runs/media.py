"""Medium: how examples of a kind of data are handed in and shown, so that one Run serves images, vectors and sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from elboroom.core.batch import Batch
from elboroom.core.problem import Problem
from elboroom.data.dataset import About
from elboroom.data.tokens import END, PAD, START, Tokeniser
from elboroom.families.decoding import Decoding, Greedy


def numbers(values: Any, what: str) -> NDArray[Any]:
    """Values that a caller handed in, as an array of finite real numbers."""
    try:
        array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        raise Problem(f"{what} must be an array of numbers, not {type(values).__name__}") from None
    if array.dtype.kind in "US":
        raise Problem(f"{what} must be an array of numbers, not words or names of files ({str(array.flat[0])[:40]!r})")
    if array.dtype.kind not in "buif":
        raise Problem(f"{what} must be real numbers, not of type {array.dtype}")
    if wrong := int((~np.isfinite(array)).sum()):
        raise Problem(f"{wrong:,} of the {what} are NaN or infinite")
    if array.dtype.itemsize > 4 and array.size and float(np.abs(array).max()) > np.finfo(np.float32).max:
        raise Problem(f"some of the {what} are larger than {np.finfo(np.float32).max:.2g}, which 32 bits cannot hold")
    return array


def real(values: Any, what: str) -> NDArray[np.float32]:
    """The same in single precision."""
    return np.ascontiguousarray(numbers(values, what), dtype=np.float32)


class Medium(Protocol):
    """What is particular to a kind of data."""

    def batch(self, x: Any) -> Batch: ...  # examples as a user has them

    def blank(self, n: int) -> Batch: ...  # n examples of which nothing is known

    def made(self, px: Any) -> Any: ...  # the examples that p(x|z) stands for, its first sample of z

    def join(self, parts: list[Any]) -> Any: ...

    def grid(self, flat: Any, rows: int, columns: int) -> Any: ...


@dataclass(frozen=True)
class Arrays:
    """Images in [0, 1] and real vectors: numpy arrays in and out, made by the mean of p(x|z)."""

    about: About

    def batch(self, x: ArrayLike) -> Batch:
        """Examples of the model's shape, or one; (n, H, W) and (n, H, W, C) too, and bytes are scaled to [0, 1]."""
        array, shape = numbers(x, "examples"), self.about.shape
        if array.shape in (shape, shape[1:] if shape[0] == 1 else shape, (*shape[1:], shape[0])):
            array = array[None]  # one alone
        if array.ndim == 3 and shape == (1, *array.shape[1:]):
            array = array[:, None]
        elif array.ndim == 4 and array.shape[1:] != shape and shape == (array.shape[3], *array.shape[1:3]):
            array = array.transpose(0, 3, 1, 2)
        if array.shape[1:] != shape or not len(array):
            raise Problem(f"this model takes examples of shape (n, {', '.join(map(str, shape))}), not {array.shape}")
        scale = self._top(array) if self.about.kind == "pixels" else 1
        return Batch(torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32) / np.float32(scale)))

    def _top(self, array: NDArray[Any]) -> int:
        """What stands for 1, as it was read to train on: the highest level, but for 0 and 1 in black and white."""
        low, high, whole = float(array.min()), float(array.max()), array.dtype.kind in "ui"
        levels = self.about.levels
        top = levels - 1 if levels > 2 else 255
        reals = levels == 0 or not high > 1  # of a model of reals, those from 0 to 255 too
        if low < 0 or high > top or not (reals or whole or np.array_equal(array, np.rint(array))):
            raise Problem(
                f"pixels must be whole numbers from 0 to {top} or reals in [0, 1], not values from {low:g} to {high:g}"
            )
        return top if high > 1 or (whole and levels > 2) else 1

    def blank(self, n: int) -> Batch:
        return Batch(torch.empty(()).expand(n, *self.about.shape))

    def made(self, px: Any) -> Tensor:
        mean: Tensor = px.mean[0].float().cpu()
        return mean

    def join(self, parts: list[Tensor]) -> NDArray[np.float32]:
        return torch.cat(parts).numpy()

    def grid(self, flat: NDArray[np.float32], rows: int, columns: int) -> NDArray[np.float32]:
        return flat.reshape(rows, columns, *self.about.shape)


@dataclass(frozen=True)
class Sentences:
    """Sentences as strings, made by decoding p(x|z)."""

    tokeniser: Tokeniser
    decoding: Decoding = Greedy()  # noqa: RUF009
    longest: int = 100  # tokens at which a sentence without an end is cut

    def batch(self, x: str | Sequence[str]) -> Batch:
        """One sentence or several; words that the model does not know are read as <unk>."""
        sentences = [x] if isinstance(x, str) else list(x) if isinstance(x, Iterable) else []
        if not sentences or not all(isinstance(sentence, str) for sentence in sentences):
            raise Problem("this model takes sentences: a list of strings, at least one")
        if any(not sentence.strip() for sentence in sentences):
            raise Problem("this model takes sentences of at least one word, and one of these is empty")
        ids = [[START, *self.tokeniser.encode(sentence), END] for sentence in sentences]
        rows = torch.full((len(ids), max(map(len, ids))), PAD)
        for row, found in zip(rows, ids, strict=True):
            row[: len(found)] = torch.tensor(found)
        return Batch(rows, lengths=torch.tensor([len(found) - 1 for found in ids]))

    def blank(self, n: int) -> Batch:
        return Batch(torch.full((n, 1), START))

    def made(self, px: Any) -> list[str]:
        return [self.tokeniser.decode(row) for row in px.decode(self.decoding, self.longest)[0].tolist()]

    def join(self, parts: list[list[str]]) -> list[str]:
        return [sentence for part in parts for sentence in part]

    def grid(self, flat: list[str], rows: int, columns: int) -> list[list[str]]:
        return [flat[row * columns : (row + 1) * columns] for row in range(rows)]
