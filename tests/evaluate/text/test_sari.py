"""SARI against counts by hand, one n at a time."""

from __future__ import annotations

import pytest

from elboroom.core.problem import Problem
from elboroom.evaluate.text.sari import Sari, sari

SOURCE = "a b c d e"


def test_a_copied_source_adds_and_deletes_nothing() -> None:
    found = sari(SOURCE, SOURCE, ["a b", "a x"])
    assert (found.add, found.delete) == (0, 0)
    assert found.keep > 0


def test_the_reference_itself_is_perfect() -> None:
    assert sari("a b c d e f g h", "x y z w v", ["x y z w v"]) == Sari(0, 1, 1)
    found = sari("a b c d e f g h", "a b c d x y z w", ["a b c d x y z w"])
    assert found == Sari(1, 1, 1)
    assert found.value == 1


def test_unigrams_by_hand() -> None:
    """Sentences of one word have unigrams alone, so that the other orders are zero."""
    # keep: both copies kept, one of two references has it: 1/2 kept rightly; all of what can be kept: 1 of 1
    keep = 2 * 0.5 * 1 / 1.5
    assert sari("a", "a", ["a", "b"]) == pytest.approx((keep / 4, 0, 0))
    # delete: 2 copies are gone, one of them wrongly; add: one new, of the two that references add
    assert sari("a", "b", ["b", "c"]) == pytest.approx((0, 1 / 4, 2 * 1 * 0.5 / 1.5 / 4))
    assert sari("a", "b", ["a", "c"]) == pytest.approx((0, 0.5 / 4, 0))


def test_counts_matter_and_case_does_not() -> None:
    # one of two a is kept, rightly; the other is gone, which the script holds against the one of the reference: wrongly.
    # The pair is gone, and rightly.
    assert sari("a A", "a", ["A"]) == pytest.approx((1 / 4, (0 + 1) / 4, 0))


def test_no_reference_is_refused() -> None:
    with pytest.raises(Problem, match="at least one reference"):
        sari("a", "a", [])
