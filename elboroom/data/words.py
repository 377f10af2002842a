"""Words that tell a label, words that say little, and words that say what a sentence is about: the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elboroom.data.dataset import DataSet

ODDS = 4.0  # a word of a style is at least so many times as likely in one class as in the others
SIGMAS = 2.0  # and that by so many standard errors
PRIOR = 0.5  # counts added to each word
CHUNK = 4096  # sentences counted at a time

_STOP = (
    "a about above after again all also am an and any are as at be because been before being below between both but by can "
    "could did do does doing done down during each every few for from further had has have having he her here hers herself him "
    "himself his how i if in into is it its itself just let me more most my myself no nor not now of off on once one only or "
    "other our ours ourselves out over own really same she should so some still such than that the their theirs them "
    "themselves then there these they this those though through to too under until up upon us very was we were what when where "
    "which while who whom why will with within without would yet you your yours yourself yourselves 's 're 've 'll 'd 'm n't "
    "ca wo dont didnt doesnt cant wont im ive thats _num_ "
)
STOP = frozenset(_STOP.split())


class Telling(NamedTuple):
    """A word that tells a label: the class in which it is likelier, its log-odds there against the rest, standard errors."""

    word: str
    value: int
    log_odds: float
    sigmas: float


def is_word(word: str) -> bool:
    """Whether it has a letter or a digit, and is no marker such as <unk>."""
    return any(letter.isalnum() for letter in word) and not (word.startswith("<") and word.endswith(">"))


def log_odds(counts: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Log-odds of each word in each class against all others, and how many standard errors they are, (classes, V) each.

    counts: how often each class has each word, (classes, V).
    """
    mine, others = counts + PRIOR, counts.sum(0) - counts + PRIOR
    of_mine, of_others = mine.sum(1, keepdims=True), others.sum(1, keepdims=True)
    delta = np.log(mine / (of_mine - mine)) - np.log(others / (of_others - others))
    return delta, delta / np.sqrt(1 / mine + 1 / others)


def tells(counts: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which words tell the class, (V,): those whose odds in one of them are ODDS times those in the others, or 1 / ODDS."""
    delta, sigmas = log_odds(counts)
    return np.asarray(((np.abs(delta) >= np.log(ODDS)) & (np.abs(sigmas) >= SIGMAS)).any(0))


def style_words(sentences: Iterable[str], labels: Sequence[int] | NDArray[np.int64], classes: int) -> list[Telling]:
    """The words that tell a label, by log-odds over these sentences, the surest first."""
    counted: list[Counter[str]] = [Counter() for _ in range(classes)]
    for sentence, value in zip(sentences, labels, strict=True):
        counted[int(value)].update(sentence.split())
    words = sorted(set().union(*counted))
    counts = np.array([[each[word] for word in words] for each in counted], np.float64).reshape(classes, len(words))
    delta, sigmas = log_odds(counts)
    best = delta.argmax(0)
    found = [
        Telling(words[v], int(best[v]), float(delta[best[v], v]), float(sigmas[best[v], v]))
        for v in np.flatnonzero(tells(counts))
    ]
    return sorted(found, key=lambda entry: -entry.sigmas)


def content_tokens(data: DataSet, labels: Sequence[str]) -> NDArray[np.bool_]:
    """Which tokens of a data set say what its training sentences are about, (V,): no marks, no stop words, none that tells
    one of these labels."""
    assert data.tokeniser is not None
    size, rows = data.tokeniser.size, data.splits["train"]
    about = np.array([is_word(token) and token.lstrip("Ġ").lower() not in STOP for token in data.tokeniser.tokens])
    for name in labels:
        column, classes = list(data.about.labels).index(name), data.about.labels[name]
        counts = np.zeros((classes, size))
        for start in range(0, len(rows), CHUNK):
            some = rows[start : start + CHUNK]
            ids = data.x(some).numpy()
            values = np.repeat(data.labels[some, column], ids.shape[1])
            counts += np.bincount(values * size + ids.ravel(), minlength=classes * size).reshape(classes, size)
        about &= ~tells(counts * about)
    return about
