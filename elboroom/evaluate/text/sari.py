"""SARI: how well a simplification keeps, deletes and adds what references do (Xu et al. 2016, as its script counts)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from elboroom.core.problem import Problem
from elboroom.evaluate.text.ngrams import Ngram, ngrams

ORDERS = (1, 2, 3, 4)


class Sari(NamedTuple):
    """Its three parts, each the mean over n-grams of 1 to 4 words, of 1."""

    keep: float
    delete: float
    add: float

    @property
    def value(self) -> float:
        """Their mean."""
        return (self.keep + self.delete + self.add) / 3


def sari(source: str, output: str, references: Sequence[str]) -> Sari:
    """SARI of one sentence, lower-cased, by words between white space."""
    if not references:
        raise Problem("SARI needs at least one reference")
    said, made = source.lower().split(), output.lower().split()
    simple = [reference.lower().split() for reference in references]
    parts = [
        _of_order(ngrams(said, n), ngrams(made, n), sum((ngrams(r, n) for r in simple), Counter()), len(simple))
        for n in ORDERS
    ]
    return Sari(*(sum(column) / len(ORDERS) for column in zip(*parts, strict=True)))


def _of_order(
    source: Counter[Ngram], output: Counter[Ngram], references: Counter[Ngram], count: int
) -> tuple[float, float, float]:
    """Keep, delete and add of one order; counts of source and output are taken as often as there are references."""
    before = Counter({ngram: count * times for ngram, times in source.items()})
    after = Counter({ngram: count * times for ngram, times in output.items()})
    kept, keepable = before & after, before & references
    good = kept & references
    precision = sum(good[g] / kept[g] for g in good) / len(kept) if kept else 0.0
    recall = sum(good[g] / keepable[g] for g in good) / len(keepable) if keepable else 0.0
    gone = before - after
    rightly = gone - references
    delete = sum(rightly[g] / gone[g] for g in rightly) / len(gone) if gone else 0.0
    new, wanted = output.keys() - source.keys(), references.keys() - source.keys()
    both = len(new & wanted)
    add = _f1(both / len(new) if new else 0.0, both / len(wanted) if wanted else 0.0)
    return _f1(precision, recall), delete, add


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
