"""A number never travels without the estimator that made it."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from elboroom.core.problem import Problem
from elboroom.evaluate.result import Result


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_no_number(value: float) -> None:
    with pytest.raises(Problem, match="iw-100 gave"):
        Result(value, "iw-100", "nats")


def test_it_is_written_with_its_errors_by_name() -> None:
    number = Result(-31.25, "iw-100", "nats", {"K": 100}, {"sampling": 0.5, "importance_noise": 0.01})
    assert str(number) == "-31.25 ± 0.5 (sampling) ± 0.01 (importance noise) nats"
    few = replace(number, parts={"effective_samples": 3.14}, note="loose by 0.4 nats or more")
    assert str(few) == f"{number}, 3.1 of 100 draws effective, loose by 0.4 nats or more"
    assert Result.from_json("log_likelihood", few.to_json()).remarks == few.remarks
    assert json.loads(json.dumps(number.to_json(), allow_nan=False)) == {
        "value": -31.25,
        "unit": "nats",
        "estimator": "iw-100",
        "settings": {"K": 100},
        "errors": {"sampling": 0.5, "importance_noise": 0.01},
    }


def test_a_refusal_says_why() -> None:
    number = Result(None, "elbo", "nats", reason="q(z|x) has no density")
    assert str(number) == "— (q(z|x) has no density)"
    assert number.to_json() == {"value": None, "unit": "nats", "estimator": "elbo", "reason": "q(z|x) has no density"}


BOUND = {
    "value": -31.25, "unit": "nats", "estimator": "iw-100", "settings": {"K": 100}, "errors": {"sampling": 0.5},
    "parts": {"effective_samples": 3.5},
}  # fmt: skip
SCORE = {
    "value": 0.5, "metric": "mig", "mode": "dlib", "parts": {"gaps": [0.5, None]}, "settings": {"n": 10},
    "interval": {"how": "Wilson", "low": 0.4, "high": 0.6, "n": 10},
}  # fmt: skip


@pytest.mark.parametrize(("name", "entry"), [("log_likelihood", BOUND), ("mig", SCORE)])
def test_both_shapes_of_an_entry_are_read_and_written_again(name: str, entry: dict[str, object]) -> None:
    found = Result.from_json(name, entry)
    assert found.to_json() == entry
    assert (found.value, found.better) == (entry["value"], "high")
    assert found.estimator == entry.get("estimator", entry.get("mode"))
    assert found.mode == entry.get("mode", "")


def test_entries_of_old_runs_and_of_strangers_are_read() -> None:
    old = Result.from_json("udr", {"value": 0.25, "mode": "lasso", "unit": "", "settings": {}})
    assert (old.metric, old.mode, old.better) == ("udr", "lasso", "high")
    mine = Result.from_json("my own", {"value": 3, "more": "that nobody reads"})
    assert (mine.value, mine.estimator, mine.better) == (3, "", "neither")
    assert type(mine.value) is int, "a count stays one, so that tables stay the same"


def test_a_score_is_written_with_its_mode_and_interval() -> None:
    assert str(Result.from_json("mig", SCORE)) == "mig (dlib): 0.5 [0.400, 0.600]"
