"""Stores: where examples lie, as bytes, bits, reals or ragged tokens, gathered by index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elboroom.data.tokens import END, PAD, START

CHUNK = 1 << 22  # bytes hashed at a time


class Store(Protocol):
    """Where the examples lie."""

    def __len__(self) -> int: ...

    def take(self, index: NDArray[np.int64]) -> Tensor: ...  # float32, (B, *shape); of tokens int64, (B, L)

    def raw(self) -> Iterator[memoryview]: ...  # the bytes as kept, for the hash


def chunks(array: NDArray[Any]) -> Iterator[memoryview]:
    """The bytes of an array, a few megabytes at a time."""
    rows = max(1, CHUNK // max(1, array[:1].nbytes))
    for start in range(0, len(array) if array.size else 0, rows):
        yield np.ascontiguousarray(array[start : start + rows]).data.cast("B")


class Bytes:
    """Pixels as uint8, (N, C, H, W); `top` is the byte that stands for 1."""

    def __init__(self, array: NDArray[np.uint8], top: int = 255) -> None:
        self.array = np.asarray(array)
        self.top = top

    def __len__(self) -> int:
        return len(self.array)

    def take(self, index: NDArray[np.int64]) -> Tensor:
        x = torch.from_numpy(np.ascontiguousarray(self.array[index])).float()  # (B, C, H, W)
        return x if self.top == 1 else x.div_(self.top)

    def raw(self) -> Iterator[memoryview]:
        return chunks(self.array)


class Bits:
    """Binary pixels, eight to a byte, (N, ceil(CHW / 8)); the first pixel is the highest bit."""

    def __init__(self, packed: NDArray[np.uint8], shape: tuple[int, ...]) -> None:
        self.packed = np.asarray(packed)
        self.shape = shape
        self.pixels = int(np.prod(shape))

    def __len__(self) -> int:
        return len(self.packed)

    def take(self, index: NDArray[np.int64]) -> Tensor:
        bits = np.unpackbits(self.packed[index], axis=1, count=self.pixels)  # (B, CHW)
        return torch.from_numpy(bits).float().view(len(bits), *self.shape)

    def raw(self) -> Iterator[memoryview]:
        return chunks(self.packed)


class Reals:
    """Real values as float32, (N, D) or (N, C, H, W)."""

    def __init__(self, array: NDArray[np.float32]) -> None:
        self.array = np.asarray(array)

    def __len__(self) -> int:
        return len(self.array)

    def take(self, index: NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(self.array[index]))

    def raw(self) -> Iterator[memoryview]:
        return chunks(self.array)


def runs(first: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """first[0], first[0] + 1, ... `counts[0]` of them, then those from first[1], and so on, end to end."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(first - ends + counts, counts)


class Ragged:
    """Sentences as ids end to end, int32, without markers: sentence i is ids[offsets[i] : offsets[i + 1]].

    Where a `table` is given, the ids are types and table[id] is the token. `words` are the words of each sentence and its
    end, (N,), where tokens are no words.
    """

    def __init__(
        self,
        ids: NDArray[np.int32],
        offsets: NDArray[np.int64],
        table: NDArray[np.int32] | None = None,
        words: NDArray[np.int64] | None = None,
    ) -> None:
        self.ids, self.offsets, self.table = np.asarray(ids, np.int32), np.asarray(offsets, np.int64), table
        self.words = np.diff(self.offsets) + 1 if words is None else words

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def lengths(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many tokens are predicted: those of the sentence and its end, (B,)."""
        return self.offsets[1:][index] - self.offsets[:-1][index] + 1

    def tokens(self, index: NDArray[np.int64]) -> NDArray[np.int32]:
        """The tokens of these sentences end to end, without markers."""
        ids = self.ids[runs(self.offsets[:-1][index], self.lengths(index) - 1)]
        return ids if self.table is None else self.table[ids]

    def take(self, index: NDArray[np.int64]) -> Tensor:
        counts = self.lengths(index) - 1  # (B,)
        x = np.full((len(index), 2 + counts.max(initial=0)), PAD, np.int64)  # (B, L)
        rows = np.arange(len(index))
        x[:, 0] = START
        x[np.repeat(rows, counts), runs(np.ones_like(counts), counts)] = self.tokens(index)  # those of all
        x[rows, 1 + counts] = END
        return torch.from_numpy(x)

    def raw(self) -> Iterator[memoryview]:
        for array in (self.offsets, self.ids, self.table):
            yield from chunks(array) if array is not None else ()
