"""Answers of runs: of a model without a prior, and with labels for each context or for each answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from contract import talk

import elboroom
from elboroom.core.problem import Problem
from elboroom.families.decoding import Greedy
from elboroom.runs import answers

SMALL: dict[str, Any] = {"steps": 2, "batch_size": 8, "embed": 6, "hidden": 8, "latent": 3, "threads": 1}


def test_a_model_without_a_prior_answers_and_is_sampled(tmp_path: Path) -> None:
    """Its z are of the Gaussian of codes, which is in double precision."""
    run = elboroom.train("ae", talk(), tmp_path / "run", given="context", **SMALL)
    assert len(run.generate("a b", n=3)) == 3
    assert len(run.sample(4)) == 4


def test_labels_are_one_row_a_context_or_one_an_answer(tmp_path: Path) -> None:
    run = elboroom.train("cvae", talk(), tmp_path / "run", given="context,act", **SMALL)
    contexts = [["a b"], ["c", "d"], ["e"]]
    u = torch.cat([run.labelled(act=act) for act in ("ask", "tell", "ask")])
    each = run.generate(contexts, 2, Greedy(), 1, u)
    assert each == run.generate(contexts, 2, Greedy(), 1, u.repeat_interleave(2, 0))
    assert [len(found) for found in each] == [2, 2, 2]
    with pytest.raises(Problem, match=r"u has shape \(6, 2\), not \(4, 2\)"):
        run.generate(contexts, 2, Greedy(), 1, u[[0, 1, 2, 2]])


def test_a_blank_turn_does_not_change_who_speaks() -> None:
    """As after an answer without words: what comes next is said by the same speaker as what came before."""
    assert answers.as_contexts([["a b", "", "c"], "d", ["a", " ", "", "b"]]) == [["a b c"], ["d"], ["a", "b"]]
