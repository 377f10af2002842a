"""Vectors of words: of a file of the user's, or else of the training text by its co-occurrences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.linalg import svds

from elboroom.core.problem import Problem
from elboroom.data.lines import lines
from elboroom.evaluate.transfer.kept import Made, digest, kept

NAME = "ppmi-svd-1"  # changes whenever a vector would
SIZE, WINDOW, SEEN = 100, 5, 5  # dimensions, words to either side, how often a word is seen at least


@dataclass(frozen=True, eq=False)
class Vectors:
    """Words with a vector each, and where they are from."""

    name: str
    places: dict[str, int]
    table: NDArray[np.float32]  # (words, size)

    def of(self, words: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of the words that have one, (n, size)."""
        return self.table[[self.places[word] for word in words if word in self.places]]


def read(path: Path) -> Vectors:
    """GloVe or word2vec as text: a word and its numbers a line, after a first line of two numbers in the latter."""
    places: dict[str, int] = {}
    rows: list[NDArray[np.float32]] = []
    for number, line in lines(path):
        cells = line.rstrip().split(" ")
        if number == 1 and len(cells) == 2:
            continue
        try:
            row = np.array(cells[1:], np.float32)
        except ValueError:
            row = np.zeros(0, np.float32)
        if not len(row) or (rows and len(row) != len(rows[0])):
            raise Problem(
                f"--vectors: line {number} of {path} is not a word and {len(rows[0]) if rows else 'its'} numbers"
            )
        if cells[0] not in places:
            places[cells[0]] = len(rows)
            rows.append(row)
    if not rows:
        raise Problem(f"--vectors: {path} has no vectors")
    return Vectors(path.name, places, np.stack(rows))


def trained(sentences: Sequence[str]) -> Vectors:
    """Vectors of the words of a text, kept in the cache: the truncated SVD of its positive pointwise mutual information."""
    key = digest(NAME, SIZE, WINDOW, SEEN, sentences=sentences)
    tensors, about = kept(NAME, key, lambda: _factorised(sentences))
    words = about["words"]
    return Vectors(f"PPMI and SVD of the training text, {tensors['table'].shape[1]} dimensions",
                   {word: place for place, word in enumerate(words)}, tensors["table"].numpy())  # fmt: skip


def _factorised(sentences: Sequence[str]) -> Made:
    texts = [sentence.split() for sentence in sentences]
    counts = Counter(word for text in texts for word in text)
    words = sorted(word for word, count in counts.items() if count >= SEEN) or sorted(counts)
    places = {word: place for place, word in enumerate(words)}
    pairs: Counter[tuple[int, int]] = Counter()
    for text in texts:
        ids = [places[word] for word in text if word in places]
        for i, one in enumerate(ids):
            for other in ids[i + 1 : i + 1 + WINDOW]:
                pairs[one, other] += 1
                pairs[other, one] += 1
    if not pairs:
        return {"table": torch.zeros(len(words), 1)}, {"words": words}
    at, times = np.array(list(pairs), np.int64), np.array(list(pairs.values()), np.float64)
    seen = np.bincount(at[:, 0], times, len(words))
    ppmi = np.maximum(np.log(times * times.sum() / (seen[at[:, 0]] * seen[at[:, 1]])), 0)
    matrix = coo_array((ppmi, (at[:, 0], at[:, 1])), (len(words), len(words))).tocsr()
    size = min(SIZE, len(words) - 1)
    if size < 1:
        return {"table": torch.ones(len(words), 1)}, {"words": words}
    u, s, _ = svds(matrix, k=size, v0=np.ones(len(words)))
    return {"table": torch.from_numpy((u * np.sqrt(s)).astype(np.float32).copy())}, {"words": words}
