"""BLEU of reconstructions, and self-BLEU: how much samples repeat one another."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from elboroom.core.problem import Problem, unknown
from elboroom.evaluate.result import Result
from elboroom.evaluate.text.ngrams import Floats, Ngram, Words, check_order, ngrams, split

SMOOTHINGS = ("exp", "floor", "add-k", "none")
FLOOR = 0.1  # matches that self-BLEU counts where there are none


def bleu(reconstructions: Sequence[str], inputs: Sequence[str], smoothing: str = "exp", order: int = 4) -> Result:
    """Corpus BLEU of each reconstruction against its input, by sacrebleu on the words as they stand.

    smoothing: of precisions that are 0, as sacrebleu names it; `exp` halves 1 / total once more for each, `none` leaves 0.
    """
    check_order(order)
    if smoothing not in SMOOTHINGS:
        raise unknown("smoothing", smoothing, SMOOTHINGS)
    texts, references = split(reconstructions, "reconstructions"), split(inputs, "inputs", empty=False)
    if len(texts) != len(references):
        raise Problem(f"there are {len(texts):,} reconstructions but {len(references):,} inputs")
    name = f"bleu-{order}"
    metric = BLEU(tokenize="none", force=True, smooth_method=smoothing, max_ngram_order=order)
    found = metric.corpus_score(list(reconstructions), [list(inputs)])
    settings = {"sentences": len(texts), "smoothing": smoothing, "signature": str(metric.get_signature())}
    if max(map(len, references)) < order:
        return Result(None, name, "of 100", settings, reason=f"no input has {order} words or more")
    parts = {
        "precisions": [float(p) for p in found.precisions],
        "brevity_penalty": float(found.bp),
        "words": int(found.sys_len),
        "input_words": int(found.ref_len),
        "exact": sum(a == b for a, b in zip(texts, references, strict=True)) / len(texts),
    }
    error = found.score * _relative_error(texts, references, order)
    return Result(float(found.score), name, "of 100", settings, {"sampling": error}, parts=parts)


def _relative_error(texts: list[Words], references: list[Words], order: int) -> float:
    """The standard error over sentences of log BLEU = min(0, 1 - R / S) + mean_n log(c_n / t_n) (delta method)."""
    sizes = np.array([[len(a), len(b)] for a, b in zip(texts, references, strict=True)], float)  # (N, 2)
    total, wanted = sizes.sum(0)
    each = np.zeros(len(texts))  # what each sentence moves log BLEU by
    if 0 < total < wanted:
        each += wanted / total**2 * sizes[:, 0] - sizes[:, 1] / total
    for n in range(1, order + 1):
        counts = np.array([_matches(a, b, n) for a, b in zip(texts, references, strict=True)], float)  # (N, 2)
        if counts[:, 0].sum():
            each += (counts / counts.sum(0)) @ [1, -1] / order
    return math.sqrt(float(np.square(each).sum()))


def _matches(text: Words, reference: Words, order: int) -> tuple[int, int]:
    """n-grams that the reference has too, each counted no more often than there, and all n-grams."""
    mine, theirs = ngrams(text, order), ngrams(reference, order)
    return sum(min(count, theirs[ngram]) for ngram, count in mine.items()), mine.total()


def self_bleu(samples: Sequence[str], order: int = 2, most: int = 1_000, seed: int = 0) -> Result:
    """Mean over samples of BLEU against all other samples: 1 where all are the same, falling to 0 as they share nothing.

    Of more than `most` samples that many are drawn, because the value grows with their number. A sample of fewer than
    `order` words is read by the orders that it has, an empty one is 1 if there is another empty one. The error takes
    the other samples as fixed.
    """
    check_order(order)
    texts = split(samples, "samples")
    if most < 2 or len(texts) < 2:
        raise Problem("self-BLEU needs at least two samples")
    chosen = np.sort(np.random.default_rng(seed).permutation(len(texts))[:most])
    values = against_others([texts[place] for place in chosen], order)
    settings = {"samples": len(values), "of": len(texts), "smoothing": f"floor {FLOOR}", "short": "orders that it has"}
    errors = {"sampling": float(values.std(ddof=1)) / math.sqrt(len(values))}
    return Result(float(values.mean()), f"self-bleu-{order}", "of 1", settings, errors)


def against_others(texts: list[Words], order: int) -> Floats:
    """BLEU of each sentence against all others, (N,).

    Of each n-gram only the two highest counts in one sentence matter: its best reference is the first, or, for the
    sentence which that is, the second.
    """
    logs, orders = np.zeros(len(texts)), np.zeros(len(texts))
    matched = np.zeros(len(texts), bool)  # in any n-gram
    for n in range(1, order + 1):
        grams = [ngrams(words, n) for words in texts]
        best = _two_best(grams)
        for i, mine in enumerate(grams):
            if not mine:
                continue
            right = 0
            for ngram, count in mine.items():
                first, who, second = best[ngram]
                right += min(count, second if who == i else first)
            matched[i] |= right > 0
            logs[i] += math.log((right or FLOOR) / mine.total())
            orders[i] += 1
    penalty = _penalties([len(words) for words in texts])
    values = np.where(matched, np.exp(penalty + logs / np.maximum(orders, 1)), 0.0)
    empty = orders == 0
    return np.where(empty, float(empty.sum() > 1), values)


def _two_best(grams: list[Counter[Ngram]]) -> dict[Ngram, tuple[int, int, int]]:
    """By n-gram: its highest count in one sentence, which sentence that is, its highest count in any other."""
    best: dict[Ngram, tuple[int, int, int]] = {}
    for i, counts in enumerate(grams):
        for ngram, count in counts.items():
            first, who, second = best.get(ngram, (0, -1, 0))
            if count > first:
                best[ngram] = (count, i, first)
            elif count > second:
                best[ngram] = (first, who, count)
    return best


def _penalties(sizes: list[int]) -> Floats:
    """log brevity penalty of each sentence: min(0, 1 - r / c), r the nearest length of another, the shorter of two."""
    often = Counter(sizes)

    def one(size: int) -> float:
        nearest = min((s for s in often if s != size or often[s] > 1), key=lambda s: (abs(s - size), s))
        return min(0.0, 1 - nearest / size) if size else 0.0

    by_size = {size: one(size) for size in often}
    return np.array([by_size[size] for size in sizes])
