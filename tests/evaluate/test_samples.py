"""The metric `samples` of conditional runs: codes of examples and of samples are read with their labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elboroom
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.evaluate.samples import of_run
from elboroom.evaluate.subject import Subject
from elboroom.runs.run import Run

SMALL: dict[str, Any] = {"steps": 2, "threads": 1, "latent": 2, "given": "label"}


def told(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """The labels that samples are made for and examples are encoded with, as they come."""
    seen: dict[str, list[Any]] = {"sample": [], "encode": []}
    sample, encode = Run.sample, Run.encode

    def sampled(self: Run, n: int, seed: int, u: Any, *more: Any) -> Any:
        seen["sample"].append(u)
        return sample(self, n, seed, u, *more)

    def encoded(self: Run, x: Any, u: Any = None) -> Any:
        seen["encode"].append(u)
        return encode(self, x, u)

    monkeypatch.setattr(Run, "sample", sampled)
    monkeypatch.setattr(Run, "encode", encoded)
    return seen


def test_codes_of_a_conditional_run_are_those_with_its_labels(
    pixels: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = elboroom.train("vae", pixels, tmp_path / "run", **SMALL)
    seen = told(monkeypatch)
    found = of_run(Subject(run), features="codes")["frechet-prior"]
    assert found.settings["features"] == "codes of the run itself"
    real, drawn, known = seen["encode"]
    assert np.array_equal(real, run.data.u(run.split(None, 2000).rows, ("label",)))
    assert np.array_equal(drawn, seen["sample"][0])
    assert np.array_equal(known, run.data.u(run.split("train", len(real)).rows, ("label",)))
    again = of_run(Subject(run), features=elboroom.load(run.folder, data=pixels))["frechet-prior"]
    assert again.value == pytest.approx(found.value)
    plain = elboroom.train("vae", pixels, tmp_path / "plain", **SMALL | {"given": ""})
    with pytest.raises(Problem, match="it is given label, which samples of this run are not"):
        of_run(Subject(plain), features=run)
    assert of_run(Subject(run), features=plain)["frechet-prior"].settings["features"] == "codes of plain"


def test_sentences_without_words_leave_with_their_labels(
    sentences: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = elboroom.train("vae", sentences, tmp_path / "run", embed=4, hidden=4, **SMALL)
    monkeypatch.setattr(Run, "sample", lambda self, n, seed, u, *more: ["", *self.data.sentences(np.arange(n - 1))])
    seen = told(monkeypatch)
    found = of_run(Subject(run))["frechet-prior"]
    assert found.settings["samples"] == len(seen["sample"][0]) - 1
    assert np.array_equal(seen["encode"][1], seen["sample"][0][1:])
