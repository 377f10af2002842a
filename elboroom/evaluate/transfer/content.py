"""What is kept of a sentence: the cosine of its vectors, the overlap of its words, copies, and rewritings tokenised alike."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from elboroom.data.words import STOP, is_word
from elboroom.evaluate.transfer.vectors import Vectors

Floats = NDArray[np.float64]


def cosines(inputs: Sequence[str], outputs: Sequence[str], vectors: Vectors, style: Collection[str]) -> Floats:
    """Cosine of [min; max; mean] of the vectors of all words but those of the style, (n,).

    nan where the input has no such word with a vector; 0 where only the output has none.
    """
    return np.array(
        [_cosine(_embedded(a, vectors, style), _embedded(b, vectors, style)) for a, b in _pairs(inputs, outputs)]
    )


def _embedded(sentence: str, vectors: Vectors, style: Collection[str]) -> Floats | None:
    found = vectors.of([word for word in sentence.split() if word not in style])
    return None if not len(found) else np.concatenate([found.min(0), found.max(0), found.mean(0)]).astype(np.float64)


def _cosine(a: Floats | None, b: Floats | None) -> float:
    if a is None or not a.any():
        return float("nan")
    if b is None or not b.any():
        return 0.0
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def overlaps(inputs: Sequence[str], outputs: Sequence[str], style: Collection[str]) -> Floats:
    """|A and B| / |A or B| of the sets of words but for those of the style, stop words and marks, (n,).

    nan where neither has any.
    """
    values = []
    for a, b in _pairs(inputs, outputs):
        mine, theirs = about(a, style), about(b, style)
        values.append(len(mine & theirs) / len(mine | theirs) if mine or theirs else float("nan"))
    return np.array(values)


def about(sentence: str, style: Collection[str]) -> set[str]:
    """The words that say what a sentence is about."""
    return {word for word in sentence.split() if is_word(word) and word not in STOP and word not in style}


def copies(inputs: Sequence[str], outputs: Sequence[str]) -> Floats:
    """1 where the output is the input, (n,)."""
    return np.array([float(a.split() == b.split()) for a, b in _pairs(inputs, outputs)])


def tokenised(text: str, numbers: bool = False) -> str:
    """Lower-cased, marks and endings such as n't apart; `numbers`: as _num_. What is so already stays as it is."""
    text = re.sub(r"([.,!?;:()\"&%$]+)", r" \1 ", text.lower())
    text = re.sub(r"(?<=\w)n't\b", " n't", text)
    text = re.sub(r"(?<=\w)('(?:s|re|ve|ll|d|m))\b", r" \1", text)
    text = re.sub(r"(?<![\w.])\d+(?:\s?[.,]\s?\d+)*(?!\w)", "_num_", text) if numbers else text
    return " ".join(text.split())


def _pairs(inputs: Sequence[str], outputs: Sequence[str]) -> zip[tuple[str, str]]:
    return zip(inputs, outputs, strict=True)
