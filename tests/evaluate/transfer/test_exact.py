"""Transfer of the sentences of the grammar, where the right answer is known."""

from __future__ import annotations

from elboroom.data import sentences as grammar
from elboroom.evaluate.transfer.exact import answer, has_grammar, verdicts

INPUT = "the teacher does not keep the old book at home ."


def test_the_answer_changes_one_factor_and_nothing_else() -> None:
    assert answer(INPUT, "polarity", 1) == "the teacher does not lose the old book at home ."
    assert answer(INPUT, "negation", 0) == "the teacher keeps the old book at home ."
    assert answer(INPUT, "tense", 2) == "the teacher will not keep the old book at home ."
    assert answer("no such sentence", "tense", 2) is None


def test_each_condition_has_its_verdict() -> None:
    outputs = {
        "the teacher does not lose the old book at home .": (1, 1, 1, 1),
        INPUT: (1, 0, 1, 0),  # a copy
        "the teacher does not mock the old book at home .": (1, 1, 0, 0),  # another verb
        "the teacher does not the old book at home .": (0, 0, 0, 0),
    }
    found = verdicts([INPUT] * 4, list(outputs), "polarity", [1] * 4)
    assert list(zip(*(row.tolist() for row in found), strict=True)) == list(outputs.values())


def test_only_the_grammar_has_it() -> None:
    assert has_grammar(grammar.load())
