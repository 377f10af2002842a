"""What words samples are made of: distinct n-grams, the unigram distribution against that of real text, length."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from elboroom.core.problem import Problem
from elboroom.evaluate.result import Result
from elboroom.evaluate.text.ngrams import Words, check_order, ngrams, per_word, split


def distinct_count(samples: Sequence[str], order: int = 1) -> Result:
    """Dis-n: how many different n-grams all samples have together. It grows with their number."""
    parts, settings = _distinct(split(samples, "samples"), order)
    return Result(parts["distinct"], f"dis-{order}", "n-grams", settings, parts=parts)


def distinct_ratio(samples: Sequence[str], order: int = 1) -> Result:
    """distinct-n: different n-grams / all n-grams. It falls with the number of words."""
    parts, settings = _distinct(split(samples, "samples"), order)
    name = f"distinct-{order}"
    if not parts["ngrams"]:
        return Result(None, name, "of 1", settings, parts=parts, reason=f"no sample has {order} words or more")
    return Result(parts["distinct"] / parts["ngrams"], name, "of 1", settings, parts=parts)


def _distinct(texts: list[Words], order: int) -> tuple[dict[str, int], dict[str, int]]:
    check_order(order)
    found: Counter[tuple[str, ...]] = Counter()
    for words in texts:
        found.update(ngrams(words, order))
    parts = {"distinct": len(found), "ngrams": found.total(), "words": sum(map(len, texts))}
    return parts, {"samples": len(texts)}


def unigram_kl(samples: Sequence[str], reference: Sequence[str], smoothing: float = 1.0) -> Result:
    """UniKL = sum_w p(w) ln(p(w) / r(w)), p the words of samples, r those of real text, each counted `smoothing` more.

    r spreads over the words of either text, so that words which real text never has count too; `unseen` is their mass
    under p, and `skipping` is the sum with the plain r and without them, as often printed: too low by what they say.
    """
    if not (smoothing > 0 and math.isfinite(smoothing)):
        raise Problem(f"smoothing must be greater than 0, not {smoothing}")
    texts, real = split(samples, "samples"), split(reference, "reference sentences", empty=False)
    mine, theirs = _counts(texts), _counts(real)
    n, m, types = mine.total(), theirs.total(), len(mine.keys() | theirs.keys())
    settings = {
        "samples": len(texts),
        "words": n,
        "reference_words": m,
        "types": types,
        "smoothing": f"add {smoothing:g}",
    }
    if not n:
        return Result(None, "unikl", "nats", settings, reason="the samples have no words")
    ratio = {w: math.log(mine[w] / n * (m + smoothing * types) / (theirs[w] + smoothing)) for w in mine}
    value, error = _mean(texts, ratio)
    parts = {
        "unseen": sum(count for word, count in mine.items() if word not in theirs) / n,
        "skipping": sum(mine[w] / n * math.log(mine[w] / n / (theirs[w] / m)) for w in mine if w in theirs),
    }
    return Result(value, "unikl", "nats", settings, {"sampling": error}, parts=parts)


def unigram_entropy(samples: Sequence[str], reference: Sequence[str] | None = None) -> Result:
    """-sum_w p(w) ln p(w) of the words of samples, best near that of the reference, which is in its parts."""
    texts = split(samples, "samples")
    value, error = _entropy(texts)
    settings = {"samples": len(texts), "words": sum(map(len, texts))}
    parts = {}
    if reference is not None:
        parts["reference"] = _entropy(split(reference, "reference sentences", empty=False))[0]
    if not settings["words"]:
        return Result(None, "entropy of words", "nats", settings, parts=parts, reason="the samples have no words")
    return Result(value, "entropy of words", "nats", settings, {"sampling": error}, parts=parts)


def average_length(samples: Sequence[str], reference: Sequence[str] | None = None) -> Result:
    """Mean words of a sample, best near that of the reference, which is in its parts."""
    sizes = np.array([len(words) for words in split(samples, "samples")])
    error = float(sizes.std(ddof=1)) / math.sqrt(len(sizes)) if len(sizes) > 1 else 0.0
    parts = {}
    if reference is not None:
        parts["reference"] = float(
            np.mean([len(words) for words in split(reference, "reference sentences", empty=False)])
        )
    return Result(float(sizes.mean()), "mean", "words", {"samples": len(sizes)}, {"sampling": error}, parts=parts)


def _counts(texts: list[Words]) -> Counter[str]:
    return Counter(chain.from_iterable(texts))


def _entropy(texts: list[Words]) -> tuple[float, float]:
    counts = _counts(texts)
    n = counts.total()
    return _mean(texts, {word: -math.log(count / n) for word, count in counts.items()})


def _mean(texts: list[Words], values: Mapping[str, float]) -> tuple[float, float]:
    """The mean over all words, and its standard error over sentences: words of one sentence come together."""
    if not values:
        return 0.0, 0.0
    sums = np.array([sum(values[word] for word in words) for words in texts], float)
    return per_word(sums, np.array([len(words) for words in texts]))
