"""Several replies to one context against the one that was given: n-grams, vectors of words, variety."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from elboroom.evaluate.text.ngrams import Floats, Words, ngrams

K = 5  # of NLTK's smoothing 4
ORDERS = (1, 2, 3, 4)
SIMILARITIES = ("average", "extrema", "greedy")


class Vectors(Protocol):
    """Words as vectors."""

    def of(self, words: Sequence[str]) -> NDArray[np.float32]: ...  # those that have one, (n, size)


def sentence_bleu(reply: Words, reference: Words, order: int = 4) -> float:
    """BLEU of one sentence against one reference with smoothing 7 of NLTK, of 1.

    A precision without a match counts log(words) / (5 2^k) matches, k how many of these came before (smoothing 4); then
    each is the mean of the one before it, itself and the one after it, that after the last being of order 5 (smoothing 5).
    Nothing in common is 0.
    """
    counts = [_matched(reply, reference, n) for n in range(1, order + 1)]
    if not counts[0][0]:
        return 0.0
    precisions, empty = [], 0
    for right, total in counts:
        if not right and len(reply) > 1:
            empty += 1
            precisions.append(math.log(len(reply)) / (K * 2**empty) / total)
        else:
            precisions.append(right / total)
    right, total = _matched(reply, reference, 5)
    after = [*precisions[1:], right / total]
    before = precisions[0] + 1
    smooth = []
    for here, there in zip(precisions, after, strict=True):
        before = (before + here + there) / 3
        smooth.append(before)
    penalty = min(0.0, 1 - len(reference) / len(reply))
    return math.exp(penalty + sum(math.log(p) for p in smooth if p > 0) / order)


def _matched(reply: Words, reference: Words, order: int) -> tuple[int, int]:
    """n-grams that the reference has too, each no more often than there, and all, at least one."""
    mine, theirs = ngrams(reply, order), ngrams(reference, order)
    return (mine & theirs).total(), max(1, mine.total())


def _cosine(a: Floats, b: Floats) -> float:
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / size if size else 0.0


def average(a: Floats, b: Floats) -> float:
    """The cosine of the mean vectors of two sentences, (n, size) and (m, size)."""
    return _cosine(a.mean(0), b.mean(0))


def extrema(a: Floats, b: Floats) -> float:
    """The cosine of the vectors that have, in each dimension, the value of largest magnitude."""
    one, two = (v[np.abs(v).argmax(0), np.arange(v.shape[1])] for v in (a, b))
    return _cosine(one, two)


def greedy(a: Floats, b: Floats) -> float:
    """The mean over words of the cosine with the nearest word of the other sentence, both ways."""
    one, two = (v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-12) for v in (a, b))
    cosines = one @ two.T
    return float(cosines.max(1).mean() + cosines.max(0).mean()) / 2


def similarity(name: str, reply: Words, reference: Words, vectors: Vectors) -> float:
    """How alike two sentences are by the vectors of their words; 0 where one of them has none. Nothing is padded."""
    a, b = (np.asarray(vectors.of(words), np.float64) for words in (reply, reference))
    how: dict[str, Callable[[Floats, Floats], float]] = {"average": average, "extrema": extrema, "greedy": greedy}
    return how[name](a, b) if len(a) and len(b) else 0.0


def distinct(texts: Sequence[Words], order: int) -> float:
    """Different n-grams of some sentences together, as a share of all; 0 where there are none."""
    found = [ngram for words in texts for ngram in ngrams(words, order).elements()]
    return len(set(found)) / len(found) if found else 0.0


def f1(precision: Floats, recall: Floats) -> Floats:
    """Of contexts the values whose mean is F1 = 2 p r / (p + r) of mean precision p and mean recall r, (n,).

    They are linear in precision and recall with the slopes of F1, so their spread is its error; 0 where p or r is not above 0.
    """
    p, r = precision.mean(), recall.mean()
    return 2 * (r**2 * precision + p**2 * recall) / (p + r) ** 2 if min(p, r) > 0 else np.zeros_like(precision)


def scores(replies: Sequence[str], reference: str, vectors: Vectors) -> dict[str, float]:
    """The scores of the replies to one context, by their keys: precision is their mean, recall the best of them."""
    texts, real = [reply.split() for reply in replies], reference.split()
    found: dict[str, float] = {}
    for order in ORDERS:
        values = [sentence_bleu(words, real, order) if words else 0.0 for words in texts]
        found |= {f"bleu_{order}_precision": float(np.mean(values)), f"bleu_{order}_recall": max(values)}
    for name in SIMILARITIES:
        values = [similarity(name, words, real, vectors) for words in texts]
        found |= {f"bow_{name}_precision": float(np.mean(values)), f"bow_{name}_recall": max(values)}
    for order in (1, 2):
        found[f"intra_distinct_{order}"] = float(np.mean([distinct([words], order) for words in texts]))
        found[f"inter_distinct_{order}"] = distinct(texts, order)
    return found
