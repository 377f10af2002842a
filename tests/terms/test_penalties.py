"""Penalties of one's own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from contract import (
    HALF,
    WHOLE,
    Bench,
    Killed,
    act_at,
    kill,
    newest,
    same,
)
from torch import Tensor

import elboroom
from elboroom import resume
from elboroom.core.draw import Draw
from elboroom.core.problem import Problem
from elboroom.runs.lifecycle import load
from elboroom.terms import penalties


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two penalties as a user registers them, forgotten after the test."""
    monkeypatch.setattr(penalties, "_PENALTIES", dict(penalties._PENALTIES))

    @elboroom.penalty("far")
    def far(draw: Draw) -> Tensor:
        return draw.z[0].square().mean(0).sum()

    @elboroom.penalty("wide", of="example")
    def wide(draw: Draw) -> Tensor:
        return draw.q.variance


OWN: dict[str, Any] = {"r1": "wide", "lam1": 2.0, "r2": "far", "lam2": 3.0}


@pytest.mark.usefixtures("own")
def test_a_penalty_of_ones_own_trains_is_logged_and_resumes(bench: Bench, tmp_path: Path) -> None:
    whole, folder = bench.train("regularised-vae", tmp_path / "whole", **OWN), tmp_path / "run"
    assert whole.spec.options["r2"] == "far"
    for line in whole.log:
        assert line["wide"] > 0
        assert line["far"] > 0
        total = line["nll"] + line["kl"] + 2 * line["wide"] + 3 * line["far"]
        assert line["loss"] == pytest.approx(total, rel=1e-6)
    without = bench.train("regularised-vae", tmp_path / "without", **{**OWN, "lam2": 0.0})
    states = [newest(run.folder).state for run in (whole, without)]
    (weight,) = (key for key in states[0] if re.fullmatch(r"model\.posterior\..*dense\.0\.weight", key))
    ends = [state[weight] for state in states]
    assert not torch.equal(*ends), "its gradient reaches the encoder"
    with pytest.raises(Killed):
        bench.train("regularised-vae", folder, bar=act_at(WHOLE - 1, kill), **OWN)
    resume(folder, data=bench.data)
    same(newest(folder).state, newest(whole.folder).state)


def test_a_penalty_that_nobody_registered_is_refused(
    bench: Bench, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Problem, match=r"unknown aggregate penalty 'far'.*import the module"):
        bench.train("regularised-vae", tmp_path / "early", **OWN | {"r1": "kl"})
    assert not (tmp_path / "early").exists()
    before = penalties._PENALTIES
    request.getfixturevalue("own")
    with pytest.raises(Problem, match="unknown example penalty 'far'"):
        bench.train("regularised-vae", tmp_path / "mixed", **OWN | {"r1": "far"})
    with pytest.raises(Killed):
        bench.train("regularised-vae", tmp_path / "run", bar=act_at(WHOLE - 1, kill), **OWN)
    monkeypatch.setattr(penalties, "_PENALTIES", before)
    for again in (load, resume):
        with pytest.raises(Problem, match="unknown example penalty 'wide'"):
            again(tmp_path / "run", data=bench.data)
    assert newest(tmp_path / "run").step == HALF, "what was computed is kept"
