"""Transfer of `sentences`, whose grammar is known: whether the output is the one right answer, and what is wrong if not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elboroom.data.dataset import DataSet
from elboroom.data.sentences import FACTORS, parse, render

Floats = NDArray[np.float64]


class Verdicts(NamedTuple):
    """1 or 0 for every sentence, (n,)."""

    parses: Floats  # it is a sentence of the grammar
    flipped: Floats  # and has the value that was asked for
    kept: Floats  # and all other factors as they were
    exact: Floats  # both


def has_grammar(data: DataSet) -> bool:
    """Whether the labels of a data set are the factors of the grammar."""
    return tuple(data.draft.labels) == FACTORS


def answer(sentence: str, factor: str, value: int) -> str | None:
    """The right answer: the sentence with another value of one factor; None if it is none of the grammar."""
    found = parse(sentence)
    if found is None:
        return None
    place = FACTORS.index(factor)
    return render((*found[:place], value, *found[place + 1 :]))


def verdicts(inputs: Sequence[str], outputs: Sequence[str], factor: str, targets: Sequence[int]) -> Verdicts:
    """What is right about each output."""
    place, rows = FACTORS.index(factor), []
    for before, after, value in zip(inputs, outputs, targets, strict=True):
        old, new = parse(before), parse(after)
        if old is None or new is None:
            rows.append((0.0, 0.0, 0.0, 0.0))
            continue
        flipped = float(new[place] == value)
        kept = float(all(a == b for i, (a, b) in enumerate(zip(old, new, strict=True)) if i != place))
        rows.append((1.0, flipped, kept, flipped * kept))
    return Verdicts(*np.array(rows).reshape(-1, 4).T)
