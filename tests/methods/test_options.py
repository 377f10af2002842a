"""What every method says of itself, and of options that are wrong."""

from __future__ import annotations

import inspect
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from contract import FIT, FROM_NOTHING

from elboroom.build.registry import ByData, Card
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.methods import card, cards
from elboroom.runs.lifecycle import train
from elboroom.training import session
from elboroom.training.session import Own
from elboroom.training.spec import specify


@pytest.mark.parametrize("name", cards())
def test_it_documents_itself(name: str) -> None:
    entry: Card = card(name)
    assert entry.name == name == name.lower()
    assert len(entry.summary) > 15
    assert entry.summary.endswith(".")
    assert entry.formula
    assert re.search(r"\b(19|20)\d\d\b", entry.paper), "a paper has a year"
    shown = f"{entry.formula} {entry.summary} {entry.notes} {entry.builder.__name__}"
    for option in entry.options:
        assert option.annotation is not inspect.Parameter.empty
        assert option.default is not inspect.Parameter.empty, f"--{option.name} has no default"
        assert option.annotation is not Any
        assert option.help, f"--{option.name} has no meaning, in a line of the docstring or in its type"
    assert "TODO" not in shown


@pytest.mark.parametrize("name", cards())
def test_options_round_trip(name: str) -> None:
    entry = card(name)
    for kind in ("pixels", "vectors", "tokens"):
        options = entry.validate({}, kind)
        assert list(options) == [option.name for option in entry.options]
        assert not any(isinstance(value, ByData) for value in options.values())
        assert entry.validate(options, kind) == options
        assert json.loads(json.dumps(options, allow_nan=False)) == options
        assert entry.validate(json.loads(json.dumps(options)), kind) == options
        typed = {key: str(value) for key, value in options.items() if value is not None}
        assert entry.validate(typed, kind) == options, "as typed in a shell"
    with pytest.raises(Problem, match="unknown option --no-such"):
        entry.validate({"no_such": 1}, "pixels")


@pytest.mark.parametrize("name", FROM_NOTHING)
def test_a_wrong_option_is_one_sentence(pixels: DataSet, name: str) -> None:
    with pytest.raises(Problem, match=f"{name} has no option --latnet; did you mean 'latent'"):
        specify(name, pixels, "array", None, {"latnet": 3})
    for option in card(name).options:
        if option.annotation is str:  # a name, which is looked up when the method is built
            spec = specify(name, pixels, "array", None, {option.name: "nonsense"})
            with pytest.raises(Problem, match="'nonsense'"):
                session.build(spec, Own(pixels))
            continue
        for wrong in ("nonsense", "nan") if "float" in str(option.annotation) else ("nonsense",):
            with pytest.raises(Problem, match=f"--{option.name.replace('_', '-')}"):
                specify(name, pixels, "array", None, {option.name: wrong})


def test_an_infinite_option_is_kept_or_refused_in_a_sentence(pixels: DataSet, tmp_path: Path) -> None:
    """ControlVAE's published range is [1, none]; JSON knows no infinity."""
    try:
        run = train("control-vae", pixels, tmp_path / "run", **{**FIT, "steps": 1, "high": "inf"})
    except Problem:
        assert not (tmp_path / "run").exists()
    else:
        assert run.spec.options["high"] == math.inf


def test_an_empty_range_is_refused(pixels: DataSet) -> None:
    spec = specify("control-vae", pixels, "array", None, {**FIT, "low": 5.0, "high": 1.0})
    with pytest.raises(Problem):
        session.build(spec, Own(pixels))
