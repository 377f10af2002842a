"""Problems are sentences, whatever they quote."""

from __future__ import annotations

import pickle

import pytest
import torch

from elboroom import Problem
from elboroom.core.problem import slip, unknown


def test_a_long_word_is_cut_and_the_sentence_stays() -> None:
    said = str(unknown("kind of data", "x" * 100_000, ["pixels", "tokens"]))
    assert len(said) < 300
    assert said.startswith("unknown kind of data 'xxx")
    assert "(100,00" in said
    assert said.endswith("choose from: pixels, tokens")


def test_a_problem_comes_back_from_another_process_as_it_was() -> None:
    problem = pickle.loads(pickle.dumps(Problem("steps is 1.5, and must be whole")))
    assert str(problem) == "steps is 1.5, and must be whole"


@pytest.mark.parametrize("count", [2**62, 2**63 - 1])
def test_sizes_beyond_any_memory_are_a_problem(count: int) -> None:
    with pytest.raises((RuntimeError, MemoryError)) as raised:
        torch.linspace(0, 1, count)
    problem = slip(raised.value)
    assert problem is not None
    assert "not enough memory" in str(problem)
