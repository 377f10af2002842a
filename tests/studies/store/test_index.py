"""The index survives what cuts its writer off, and one study has one driver."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from elboroom.core.problem import Problem
from elboroom.studies.space import Cell
from elboroom.studies.store.index import Index, driven, driving, holding

A, B = Cell("vae", "mnist", None, 0, {}), Cell("vae", "mnist", None, 1, {"beta": 2})
HOLD = """
import sys, time
from pathlib import Path
from elboroom.studies.store.index import driving
with driving(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_the_last_line_of_a_run_says_its_state(tmp_path: Path) -> None:
    index = Index(tmp_path)
    assert index.read() == {}
    index.append(A, "started", engine="pool")
    index.append(B, "started")
    index.append(A, "done", seconds={"train": 1.5})
    found = index.read()
    assert list(found) == [A.name, B.name]
    assert (found[A.name].state, found[A.name].told["seconds"], found[A.name].cell) == ("done", {"train": 1.5}, A)
    assert (found[B.name].state, found[B.name].cell) == ("started", B)


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_torn_line_costs_that_line_only(cut: int, tmp_path: Path) -> None:
    index = Index(tmp_path)
    index.append(A, "done")
    whole = index.path.read_bytes()
    index.append(B, "done")
    index.path.write_bytes(index.path.read_bytes()[:-cut])
    assert A.name in index.read()
    index.append(B, "failed", error="torn")
    found = index.read()
    assert (found[A.name].state, found[B.name].state) == ("done", "failed")
    assert index.path.read_bytes().startswith(whole), "nothing that was written is written again"


def test_a_line_is_on_the_disk_before_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = []
    monkeypatch.setattr("elboroom.studies.store.index.os.fsync", lambda number: synced.append(os.fstat(number).st_size))
    Index(tmp_path).append(A, "done")
    assert synced == [(tmp_path / "index.jsonl").stat().st_size]


def test_a_full_disk_is_one_sentence_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index(tmp_path)
    index.append(A, "done")

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("elboroom.studies.store.index.os.fsync", full)
    with pytest.raises(Problem, match=r"no space left to write .*index\.jsonl: all finished runs are kept"):
        index.append(B, "done")
    assert index.read()[A.name].state == "done"


@pytest.mark.slow
def test_a_second_driver_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    assert driven(tmp_path)
    with pytest.raises(Problem, match=f"is in use by process {process.pid}"), driving(tmp_path):
        pass
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not driven(tmp_path)
    with driving(tmp_path):
        assert driven(tmp_path)
    assert not driven(tmp_path)


def test_asking_who_drives_leaves_nothing_behind(tmp_path: Path) -> None:
    assert not driven(tmp_path / "nowhere")
    assert not driven(tmp_path)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ZeroDivisionError), driving(tmp_path):
        raise ZeroDivisionError
    assert not driven(tmp_path), "an error lets go of the study"


@pytest.mark.slow
def test_a_driver_just_killed_is_waited_for(tmp_path: Path) -> None:
    code = HOLD.replace("import driving", "import holding").replace(
        "driving(Path(sys.argv[1]))", "holding(Path(sys.argv[1]))"
    )
    process = subprocess.Popen([sys.executable, "-c", code, tmp_path / "run"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    threading.Timer(0.3, process.kill).start()
    with holding(tmp_path / "run", 30):
        assert process.wait() == -signal.SIGKILL


def test_a_run_is_held_by_one(tmp_path: Path) -> None:
    with holding(tmp_path / "run"), pytest.raises(Problem, match="by another process"), holding(tmp_path / "run", 0.1):
        pass
    with holding(tmp_path / "run", 0):
        pass
