"""The n-gram language model with interpolated modified Kneser-Ney smoothing (Chen & Goodman 1998)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from elboroom.core.problem import Problem
from elboroom.evaluate.text.ngrams import Floats, Ints, Words, check_order, per_word, split

UNKNOWN = "<unk>"
START, END, UNK = 0, 1, 2  # ids that every model has; other words follow
FALLBACK = (0.5, 1.0, 1.5)  # discounts where counts of counts give none


@dataclass(frozen=True, eq=False)
class Counts:
    """The n-grams of one order that a text has, in the order of their keys: place of the context * V + last word."""

    keys: Ints  # (G,), sorted
    times: Ints  # (G,), how often each occurs
    suffix: Ints  # (G,), place of its last n - 1 words among the n-grams of order n - 1
    begins: Ints  # (G,), 1 where it begins with the start of a sentence


@dataclass(frozen=True, eq=False)
class Level:
    """From p(w | the last n - 2 words) to p(w | the last n - 1): looked up for n-grams seen, else scaled by what is left."""

    keys: Ints  # (G,), sorted
    p: Floats  # (G,)
    left: Floats  # (C,), mass that each context leaves to words not seen after it; 1 where nothing was


@dataclass(frozen=True, eq=False)
class Scored:
    """A text under a model: nats and predicted tokens (words and the end) of each sentence."""

    nats: Floats  # (n,)
    tokens: Ints  # (n,)
    unknown: int  # words outside the vocabulary

    def perplexity(self) -> tuple[float, float]:
        """exp(nats / tokens), and its standard error over sentences."""
        mean, error = per_word(self.nats, self.tokens)
        value = float(np.exp(mean))
        return value, value * error


class KneserNey:
    """p(w|h) = (a(hw) - D(a(hw))) / sum_v a(hv) + left(h) p(w|h'), h' being h without its first word.

    a(hw) is the count of hw at the highest order and where hw begins a sentence, else how many words are seen before it;
    D depends on whether a is 1, 2 or more, and on the order. Below order 1 lies the uniform distribution over the words,
    the end of a sentence and <unk>. The start of a sentence is context only.

    vocabulary: closes the set of words, by default those of the sentences; any other word is read as <unk>.
    """

    def __init__(self, sentences: Sequence[str], order: int = 5, vocabulary: Iterable[str] | None = None) -> None:
        check_order(order)
        texts = split(sentences, "sentences to train on")
        if isinstance(vocabulary, str):
            raise Problem("the vocabulary must be a list of words, not one string")
        words = dict.fromkeys(chain.from_iterable(texts) if vocabulary is None else vocabulary)
        words.pop(UNKNOWN, None)
        self.ids = {UNKNOWN: UNK} | {word: place for place, word in enumerate(words, UNK + 1)}
        self.size = len(self.ids) + 2  # with the start
        self.discounts: list[tuple[float, float, float]] = []  # by order
        self.fallback: list[int] = []  # orders whose counts of counts gave no discounts
        self.levels: list[Level] = []
        counts = self._count(texts, order)
        self.order = len(counts)  # no higher than the longest sentence allows
        self._smooth(counts)

    def _tokens(self, texts: Sequence[Words]) -> tuple[Ints, Ints]:
        """All sentences in a row with their markers, and the place of each token within its sentence, (T,)."""
        sizes = np.array([len(words) + 2 for words in texts])
        firsts = np.cumsum(sizes) - sizes
        tokens = np.full(sizes.sum(), END)
        tokens[firsts] = START
        inside = np.ones(len(tokens), bool)
        inside[firsts] = inside[firsts + sizes - 1] = False
        get = self.ids.get
        tokens[inside] = [get(word, UNK) for word in chain.from_iterable(texts)]
        return tokens, np.arange(len(tokens)) - np.repeat(firsts, sizes)

    def _count(self, texts: Sequence[Words], order: int) -> list[Counts]:
        tokens, depth = self._tokens(texts)
        every = np.arange(self.size)
        times = np.bincount(tokens, minlength=self.size)
        times[START] = 0  # never predicted
        found = [Counts(every, times, np.zeros_like(every), np.zeros_like(every))]
        places = tokens  # of the (n - 1)-gram that ends at each token
        for n in range(2, order + 1):
            at = np.flatnonzero(depth >= n - 1)
            if not len(at):
                break
            keys, which, times = np.unique(
                places[at - 1] * self.size + tokens[at], return_inverse=True, return_counts=True
            )
            suffix, begins = np.empty_like(keys), np.empty_like(keys)
            suffix[which], begins[which] = places[at], depth[at] == n - 1
            found.append(Counts(keys, times, suffix, begins))
            places = np.full(len(tokens), -1)
            places[at] = which
        return found

    def _smooth(self, counts: list[Counts]) -> None:
        lower = np.full(self.size, 1 / (self.size - 1))
        lower[START] = 0
        contexts = 1
        for n, here in enumerate(counts, 1):
            a = here.times
            if n < len(counts):
                before = np.bincount(counts[n].suffix, minlength=len(a))  # how many words are seen before it
                a = np.where(here.begins == 1, here.times, before)
            discounts = modified_discounts(a)
            if discounts is None:
                self.fallback.append(n)
            self.discounts.append(discounts or FALLBACK)
            off = np.array([0.0, *self.discounts[-1]])[np.minimum(a, 3)]
            context = here.keys // self.size
            total = np.bincount(context, a, contexts)
            left = np.divide(np.bincount(context, off, contexts), total, out=np.ones(contexts), where=total > 0)
            p = (a - off) / total[context] + left[context] * (lower if n == 1 else lower[here.suffix])
            self.levels.append(Level(here.keys, p, left))
            lower, contexts = p, len(p)

    def score(self, sentences: Sequence[str]) -> Scored:
        """-log p of each sentence: its words and its end."""
        texts = split(sentences, "sentences to score")
        tokens, depth = self._tokens(texts)
        p = self.levels[0].p[tokens]
        places = tokens
        for n, level in enumerate(self.levels[1:], 2):
            at = np.flatnonzero(depth >= n - 1)
            at = at[places[at - 1] >= 0]  # the context was seen
            context = places[at - 1]
            place, seen = _look_up(level.keys, context * self.size + tokens[at])
            p[at] = np.where(seen, level.p[place], level.left[context] * p[at])
            places = np.full(len(tokens), -1)
            places[at[seen]] = place[seen]
        sizes = np.array([len(words) + 1 for words in texts])
        nats = -np.log(p[depth > 0])
        unknown = sum(word not in self.ids for word in chain.from_iterable(texts))
        return Scored(np.add.reduceat(nats, np.cumsum(sizes) - sizes), sizes, unknown)

    def distribution(self, context: str = "", begins: bool = True) -> Floats:
        """p(.|h) by id, (V,), h the words of `context`; `begins`: whether they begin a sentence or stand inside one."""
        tokens = [START] * begins + [self.ids.get(word, UNK) for word in context.split()]
        p = self.levels[0].p.copy()
        for n, level in enumerate(self.levels[1:], 2):
            place = self._place(tokens[1 - n :]) if len(tokens) >= n - 1 else -1
            if place < 0:
                break
            low, high = np.searchsorted(level.keys, [place * self.size, (place + 1) * self.size])
            p *= level.left[place]
            p[level.keys[low:high] % self.size] = level.p[low:high]
        return p

    def _place(self, words: Sequence[int]) -> int:
        """Where an n-gram stands among those of its order, -1 if it was not seen."""
        place = words[0]
        for level, word in zip(self.levels[1:], words[1:], strict=False):
            found, seen = _look_up(level.keys, np.array([place * self.size + word]))
            if not seen[0]:
                return -1
            place = int(found[0])
        return place


def modified_discounts(a: Ints) -> tuple[float, float, float] | None:
    """D_k = k - (k + 1) t_1 t_(k+1) / ((t_1 + 2 t_2) t_k), k = 1, 2, 3, with t_k how many n-grams have a = k.

    None where one of t_1, ..., t_4 is 0 or a D_k is not inside (0, k), as in small texts.
    """
    t = np.bincount(np.minimum(a, 5), minlength=6).astype(float)
    if not t[1:5].all():
        return None
    one, two, three = (k - (k + 1) * t[1] / (t[1] + 2 * t[2]) * t[k + 1] / t[k] for k in (1, 2, 3))
    if not (0 < one < 1 and 0 < two < 2 and 0 < three < 3):
        return None
    return float(one), float(two), float(three)


def _look_up(keys: Ints, wanted: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Where each wanted key stands, and whether it does."""
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return place, keys[place] == wanted
