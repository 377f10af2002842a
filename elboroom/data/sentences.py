"""Sentences of a small grammar: every combination of nine factors once, 147,456 in all, as dSprites is for images.

For example: the teacher does not keep the old book at home .
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elboroom.core.problem import Problem
from elboroom.data.arrays import HOLDOUT
from elboroom.data.dataset import DataSet
from elboroom.data.fields import CATEGORICAL, ORDINAL
from elboroom.data.text import Corpus, Ints, Reading

Forms = tuple[str, str, str]  # of a verb: keep, keeps, kept

NOUNS = {
    "teacher": "teachers",
    "doctor": "doctors",
    "farmer": "farmers",
    "lady": "ladies",
    "thief": "thieves",
    "woman": "women",
    "child": "children",
    "witness": "witnesses",
}
VERBS: dict[str, tuple[Forms, Forms]] = {  # by what is done to a thing: the kind way, the unkind way
    "speech": (("praise", "praises", "praised"), ("mock", "mocks", "mocked")),
    "choice": (("choose", "chooses", "chose"), ("refuse", "refuses", "refused")),
    "care": (("keep", "keeps", "kept"), ("lose", "loses", "lost")),
    "force": (("carry", "carries", "carried"), ("destroy", "destroys", "destroyed")),
}
THINGS = ("book", "letter", "picture", "map", "ring", "lamp", "guitar", "basket")
ADJECTIVES = ("old", "small", "red", "beautiful")
ADVERBIALS = ("again", "every day", "at home", "in the morning", "with great care", "without a word")

VALUES: dict[str, tuple[str, ...]] = {
    "subject": tuple(NOUNS),
    "number": ("singular", "plural"),
    "tense": ("past", "present", "future"),
    "negation": ("affirmative", "negative"),
    "polarity": ("positive", "negative"),
    "verb": tuple(VERBS),
    "adjective": ADJECTIVES,
    "object": THINGS,
    "adverbial": ADVERBIALS,
}
FACTORS = tuple(VALUES)
SIZES = tuple(len(values) for values in VALUES.values())
KINDS = dict.fromkeys(FACTORS, CATEGORICAL) | dict.fromkeys(("number", "tense", "negation", "polarity"), ORDINAL)
COUNT = int(np.prod(SIZES))
RANGE = f"sentence factors are {', '.join(FACTORS)}; each must be at least 0 and below {SIZES}"

_NOUNS, _FORMS = tuple(NOUNS.items()), tuple(VERBS.values())
_NOUN_OF = {form: (place, many) for place, forms in enumerate(_NOUNS) for many, form in enumerate(forms)}
_VERB_OF = {  # polarity, verb, the past form
    form: (polarity, verb, forms[2])
    for verb, pair in enumerate(_FORMS)
    for polarity, forms in enumerate(pair)
    for form in forms
}


def index(factors: NDArray[Any]) -> Ints:
    """The rows in the data set of `factors` (..., 9)."""
    columns = np.moveaxis(np.asarray(factors, np.int64), -1, 0)
    if len(columns) != len(SIZES) or any(np.any((c < 0) | (c >= s)) for c, s in zip(columns, SIZES, strict=True)):
        raise Problem(RANGE)
    return np.asarray(np.ravel_multi_index(tuple(columns), SIZES), np.int64)


def factors(index: NDArray[Any]) -> Ints:
    """The nine factors (..., 9) of the rows at `index`, each a place in VALUES; the last one varies fastest."""
    return np.stack(np.unravel_index(np.asarray(index, np.int64), SIZES), axis=-1).astype(np.int64)


def render(factors: Iterable[int]) -> str:
    """The sentence of nine factors, each a place in VALUES."""
    found = [int(factor) for factor in factors]
    if len(found) != len(SIZES) or any(not 0 <= f < size for f, size in zip(found, SIZES, strict=True)):
        raise Problem(RANGE)
    return f"{_head(*found[:6])} {_tail(*found[6:])}"


def _head(subject: int, number: int, tense: int, negation: int, polarity: int, verb: int) -> str:
    done = _predicate(_FORMS[verb][polarity], bool(number), VALUES["tense"][tense], bool(negation))
    return f"the {_NOUNS[subject][number]} {done}"


def _tail(adjective: int, thing: int, adverbial: int) -> str:
    return f"the {ADJECTIVES[adjective]} {THINGS[thing]} {ADVERBIALS[adverbial]} ."


def _predicate(forms: Forms, plural: bool, tense: str, negated: bool) -> str:
    """The verb in its tense, in agreement with its subject; `do` carries a negation where no other auxiliary does."""
    base, third, past = forms
    if tense == "future":
        return f"will not {base}" if negated else f"will {base}"
    if negated:
        return f"{'did' if tense == 'past' else 'do' if plural else 'does'} not {base}"
    return past if tense == "past" else base if plural else third


def parse(sentence: str) -> tuple[int, ...] | None:
    """The nine factors of a sentence, or None if it is none of these; the exact inverse of `render`."""
    words = sentence.split()
    split = words.index("the", 3) if "the" in words[3:] else 0  # where the object begins
    if not split or len(words) < split + 5:
        return None
    predicate, adverbial = words[2:split], " ".join(words[split + 3 : -1])
    verb = _VERB_OF.get(predicate[-1])
    if verb is None or words[1] not in _NOUN_OF or adverbial not in ADVERBIALS:
        return None
    if words[split + 1] not in ADJECTIVES or words[split + 2] not in THINGS:
        return None
    subject, number = _NOUN_OF[words[1]]
    tense = 2 if predicate[0] == "will" else 0 if predicate[0] == "did" or predicate == [verb[2]] else 1
    thing = (ADJECTIVES.index(words[split + 1]), THINGS.index(words[split + 2]), ADVERBIALS.index(adverbial))
    found = (subject, number, tense, int("not" in predicate), *verb[:2], *thing)
    return found if render(found) == " ".join(words) else None


def load(reading: Reading | None = None) -> DataSet:
    """All sentences in the order of their factors, which are their labels; a tenth is held out by default."""
    reading = reading or Reading()
    begins = [_head(*some).split() for some in product(*map(range, SIZES[:6]))]
    ends = [_tail(*some).split() for some in product(*map(range, SIZES[6:]))]
    longest = max(map(len, begins)) + max(map(len, ends))
    if reading.longest < longest:
        raise Problem(
            f"these sentences have up to {longest} words, and none can be left out; use --longest {longest} or more"
        )
    types = {word: place for place, word in enumerate(dict.fromkeys(word for some in begins + ends for word in some))}
    heads, tails = ([np.array([types[w] for w in some], np.int32) for some in side] for side in (begins, ends))
    ids = np.concatenate([part for head in heads for tail in tails for part in (head, tail)])
    lengths = np.add.outer([len(head) for head in heads], [len(tail) for tail in tails]).ravel()
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.arange(COUNT)
    corpus = Corpus("sentences", reading, list(types), ids, offsets, factors(rows), VALUES, {"train": COUNT}, KINDS)
    return corpus.tokenised({"train": rows}, HOLDOUT)
