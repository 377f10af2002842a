"""One process a run, and a first write that a crash cuts off: the run is begun again, or says who has it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elboroom
from elboroom import Problem
from elboroom.core.locks import one_process
from elboroom.report import write_report
from elboroom.runs import lifecycle
from elboroom.training import session
from elboroom.training.recorder import Diverged
from elboroom.training.spec import Spec

SMALL: dict[str, Any] = {"steps": 4, "batch_size": 8, "latent": 2, "checkpoint_every": 2, "threads": 1, "device": "cpu"}
HOLD = """
import sys
from pathlib import Path
from elboroom.core.locks import one_process
with one_process(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text("".join(f"w{i % 7} w{i % 5} w{i % 3}\n" for i in range(60)))
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    x = np.random.default_rng(0).integers(0, 256, (60, 8, 8)).astype(np.uint8)
    np.save(tmp_path / "x.npy", x)
    return elboroom.train("vae", str(tmp_path / "x.npy"), tmp_path / "run", **SMALL).folder


class Killed(BaseException):
    """A process that is gone between two writes."""


def test_a_text_run_killed_before_its_spec_is_begun_again(
    words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(spec: Spec, folder: Path) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Spec, "write", die)
        with pytest.raises(Killed):
            elboroom.train("vae", str(words), tmp_path / "run", **SMALL, embed=4, hidden=5)
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert "tokeniser.json" in left
    assert "spec.json" not in left
    (tmp_path / "run" / ".spec.json.abcd1234.part").write_text("{")
    made = elboroom.train("vae", str(words), tmp_path / "run", **SMALL, embed=4, hidden=5)
    assert made.sample(1)
    assert not (tmp_path / "run" / ".spec.json.abcd1234.part").exists(), "what a crash left is swept"


def test_a_tokeniser_that_is_gone_is_made_again(words: Path, tmp_path: Path) -> None:
    folder = elboroom.train("vae", str(words), tmp_path / "run", **SMALL, embed=4, hidden=5).folder
    before = (folder / "tokeniser.json").read_bytes()
    (folder / "tokeniser.json").unlink()
    elboroom.resume(folder, steps=2)
    assert (folder / "tokeniser.json").read_bytes() == before


def test_a_folder_of_somebody_else_is_left_alone(words: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "tokeniser.json").write_text("mine")
    with pytest.raises(Problem, match="not an empty folder"):
        elboroom.train("vae", str(words), tmp_path / "mine", **SMALL)
    assert (tmp_path / "mine" / "tokeniser.json").read_text() == "mine"


@pytest.mark.slow
def test_the_second_process_is_told_who_has_the_run(run: Path) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, run], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    loaded = elboroom.load(run)  # to look at it takes no lock
    for use in (
        lambda: elboroom.resume(run, steps=2),
        lambda: loaded.evaluate(samples=2),
        lambda: write_report(loaded, n=20),
    ):
        with pytest.raises(Problem, match=f"is in use by process {other.pid}"):
            use()
    other.kill()
    other.wait()
    assert elboroom.resume(run, steps=2).step == 6


def test_what_holds_a_run_may_hold_it_again(run: Path) -> None:
    with one_process(run):
        assert elboroom.resume(run, steps=2).step == 6
    assert not (run / ".lock-holder").exists()


def test_a_run_that_nobody_may_write_is_measured_without_a_lock(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elboroom.core.locks.os.access", lambda path, mode: mode != os.W_OK)
    (run / ".lock").unlink()
    with one_process(run):
        assert not (run / ".lock").exists()


def test_two_that_begin_at_once(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have seen an empty folder; the one that gets the lock second finds a run and leaves it as it is."""
    monkeypatch.setattr(lifecycle, "_new_folder", lambda out, spec: run)
    before = (run / "spec.json").read_bytes()
    with pytest.raises(Problem, match="already has a run"):
        elboroom.train("vae", str(tmp_path / "x.npy"), run, **SMALL, seed=5)
    assert (run / "spec.json").read_bytes() == before


@pytest.mark.parametrize("end", [KeyboardInterrupt, Diverged])
def test_a_run_that_ended_before_its_first_checkpoint_blocks_no_other(
    words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: type[BaseException]
) -> None:
    """An interruption or a divergence before it leaves a spec and perhaps a log, of which nothing can be resumed."""
    folder = tmp_path / "run"

    def cut(*_: Any) -> None:
        (folder / "log.jsonl").write_text('{"step": 1}\n')
        raise end

    with monkeypatch.context() as patch:
        patch.setattr(session, "_run", cut)
        with pytest.raises(end):
            elboroom.train("vae", str(words), folder, **SMALL, embed=4, hidden=4)
    assert (folder / "spec.json").exists()
    run = elboroom.train("vae", str(words), folder, **SMALL, embed=4, hidden=4, seed=3)
    assert run.spec.fit.seed == 3
    assert [line["step"] for line in run.log] == [2, 4]


def test_a_run_at_work_that_has_no_checkpoint_yet_is_left_alone(run: Path) -> None:
    for path in (run / "checkpoints").iterdir():
        path.unlink()
    (run / "metrics.json").unlink(missing_ok=True)
    assert lifecycle._is_husk(run)
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, run], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    assert not lifecycle._is_husk(run)
    other.kill()
    other.wait()
