"""What won is read off records alone, and `elbo recommend` says it with the noise beside it."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from shell import elbo

from elboroom.commands import recommend

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def board() -> ModuleType:
    spec = importlib.util.spec_from_file_location("leaderboard", ROOT / "docs" / "results" / "leaderboard.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["leaderboard"] = module  # which dataclasses ask for
    spec.loader.exec_module(module)
    return module


def test_the_table_and_the_advice_are_those_of_the_records(board: ModuleType) -> None:
    assert board.main(["--check"]) == 0


def test_the_lead_is_held_against_seeds_or_rows(board: ModuleType) -> None:
    question = board.Question("likelihood", "pixels", "x-", "log_likelihood", "x.md")
    entry = board.Entry
    one = [entry("a", "vae", "", -90.0, 0.3, 60.0, 0), entry("b", "iwae", "", -88.0, 0.4, 120.0, 0)]
    told = board.answer(question, one)
    assert (told["method"], told["next"], told["minutes"]) == ("iwae", "vae", 2)
    assert told["lead"] == pytest.approx(2.0)
    assert told["noise"] == pytest.approx(0.5)
    told = board.answer(question, [*one, entry("c", "vae", "", -94.0, 0.3, 60.0, 1)])
    assert told["noise_of"] == "seeds"
    assert told["noise"] == pytest.approx(np.std([90, 94], ddof=1), rel=1e-3)
    low = board.Question("samples", "tokens", "x-", "reverse_ppl", "x.md")
    assert board.answer(low, one)["method"] == "vae", "the lower is the better"
    assert board.answer(question, one[:1]) is None, "one setting has won nothing"


def test_every_purpose_has_an_answer_for_images_and_text_or_says_that_there_is_no_record(board: ModuleType) -> None:
    told = json.loads(recommend.FILE.read_text())
    assert {(e["purpose"], e["kind"]) for e in told} == {
        (p, k) for p in recommend.PURPOSES for k in ("pixels", "tokens")
    }
    assert all((ROOT / entry["page"]).exists() for entry in told)


def test_at_the_command_line(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).integers(0, 256, (40, 8, 8)).astype(np.uint8))
    said = elbo("recommend", "--data", tmp_path / "x.npy", "--for", "likelihood").stdout
    assert said.startswith(f"elbo train flow-prior --data {tmp_path / 'x.npy'}")
    assert "--patience 3" in said.splitlines()[0]
    assert "before vamp-vae" in said
    said = elbo("recommend", "--data", tmp_path / "x.npy", "--for", "samples").stdout
    assert "No records rank methods for this purpose" in said
    found = json.loads(elbo("recommend", "--data", tmp_path / "x.npy", "--for", "samples", "--json").stdout)
    assert found["suggested"]
    left = elbo("recommend", "--data", tmp_path / "x.npy", "--for", "fun")
    assert (left.returncode, left.stderr.count("\n")) == (2, 1)
