"""What a run is trained with where nothing is said: by the kind of data, and written down in its spec."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import elboroom
from elboroom.build.suited import TEXT_MOST
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.training.fit import Fit
from elboroom.training.spec import Spec, specify

SMALL: dict[str, Any] = {"steps": 4, "batch_size": 8, "latent": 3, "embed": 4, "hidden": 4, "threads": 1}


def spec_of(data: DataSet, method: str = "vae", **options: Any) -> Spec:
    return specify(method, data, "array", None, options)


def test_text_has_small_batches_a_decay_and_nets_that_begin_as_adam_likes(sentences: DataSet, pixels: DataSet) -> None:
    spec = spec_of(sentences)
    assert (spec.fit.batch_size, spec.fit.decay, spec.fit.lr_end, spec.model.trunk) == (32, "cosine", 0.05, "c")
    assert spec.fit.rate(spec.fit.steps) > 0, "a run can be prolonged"
    assert spec_of(sentences, "wae-s").options["spread"] == 0.1, "the published 0.01 stands beside a mean over tokens"
    spec = spec_of(pixels)
    assert (spec.fit.batch_size, spec.fit.decay, spec.fit.lr_end, spec.model.trunk) == (32, "cosine", 0.01, None)


def test_what_is_said_is_kept(sentences: DataSet) -> None:
    spec = spec_of(sentences, batch_size=16, decay="none", trunk="a")
    assert (spec.fit.batch_size, spec.fit.decay, spec.fit.lr_end, spec.model.trunk) == (16, "none", 0.0, "a")
    assert spec_of(sentences, decay="cosine").fit.lr_end == 0
    assert spec_of(sentences, lr_end=0.5).fit.lr_end == 0.5


@pytest.mark.parametrize("data", ["pixels", "binary", "vectors", "sentences"])
def test_auto_is_the_decay_that_is_taken_where_nothing_is_said(data: str, request: pytest.FixtureRequest) -> None:
    found = request.getfixturevalue(data)
    assert spec_of(found, decay="auto").fit == spec_of(found).fit
    own, decay = spec_of(found, lr=0.002).fit, "cosine" if data == "sentences" else "none"
    assert (own.decay, spec_of(found, optimiser="adamw").fit.decay) == (decay, decay)


def test_an_end_of_the_rate_is_one_of_the_decay_that_is_taken(pixels: DataSet) -> None:
    fit = spec_of(pixels, lr_end=0.2).fit
    assert (fit.decay, fit.lr_end) == ("cosine", 0.2)


def test_the_help_of_steps_says_what_text_takes() -> None:
    assert f"at most {TEXT_MOST:,};" in str(Fit.model_fields["steps"].description)


def test_gradient_descent_begins_as_it_was_published(sentences: DataSet) -> None:
    spec = spec_of(sentences, optimiser="sgd", lr=1.0)
    assert (spec.fit.decay, spec.model.trunk) == ("none", "a")
    assert spec_of(sentences, optimiser="sgd", lr=1.0, trunk="b").model.trunk == "b"
    with pytest.raises(Problem, match="--lr-end is for --decay cosine or linear"):
        spec_of(sentences, optimiser="sgd", lr=1.0, lr_end=0.1)


def test_its_command_makes_it_again(sentences: DataSet) -> None:
    spec = spec_of(sentences, batch_size=64, decay="none")
    assert "--batch-size 64" in spec.command
    assert "--decay none" in spec.command


def test_its_command_has_no_option_that_is_gone(sentences: DataSet) -> None:
    spec = spec_of(sentences)
    old = spec.model_copy(update={"options": spec.options | {"gone": 3}})
    assert old.command == spec.command


def test_a_run_from_before_an_option_does_what_it_did(sentences: DataSet, tmp_path: Path) -> None:
    run = elboroom.train("ae-pretrained-free-bits", sentences, tmp_path / "run", **SMALL)
    assert run.spec.options["first"] == "point"
    content = json.loads((tmp_path / "run" / "spec.json").read_text())
    del content["options"]["first"]
    (tmp_path / "run" / "spec.json").write_text(json.dumps(content))
    assert Spec.read(tmp_path / "run").options["first"] == "draw"
