"""Sentences as handed in, their n-grams, and means over words with their errors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elboroom.core.problem import Problem

Words = list[str]
Ngram = tuple[str, ...]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def check(sentences: Sequence[str], what: str, empty: bool = True) -> None:
    """Refuses what is no text; `empty`: whether a text without any word will do."""
    if isinstance(sentences, str):
        raise Problem(f"{what} must be a list of sentences, not one string")
    if not len(sentences):
        raise Problem(f"there are no {what}")
    for sentence in sentences:
        if not isinstance(sentence, str):
            raise Problem(f"{what} must be sentences as strings, not {type(sentence).__name__}")
    if not empty and not any(sentence.strip() for sentence in sentences):
        raise Problem(f"{what} have no words")


def split(sentences: Sequence[str], what: str, empty: bool = True) -> list[Words]:
    """The words of each sentence, between white space, of a text that was checked."""
    check(sentences, what, empty)
    return [sentence.split() for sentence in sentences]


def ngrams(words: Words, order: int) -> Counter[Ngram]:
    """How often each n-gram of a sentence occurs."""
    return Counter(zip(*(words[start:] for start in range(order)), strict=False))


def check_order(order: int) -> None:
    """Refuses n-grams of no words."""
    if order < 1:
        raise Problem(f"the order of n-grams must be at least 1, not {order}")


def per_word(sums: Floats, sizes: Ints) -> tuple[float, float]:
    """sum_i a_i / sum_i n_i over sentences i, and its standard error over sentences (delta method)."""
    total, n = sizes.sum(), len(sizes)
    mean = float(sums.sum() / total)
    apart = sums - mean * sizes  # what sentence i adds to the numerator beyond its share
    error = math.sqrt(float(np.square(apart).sum()) * n / (n - 1)) / total if n > 1 else 0.0
    return mean, float(error)
