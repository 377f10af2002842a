"""The pool: whatever is killed, and whenever, every run is finished once and the table is that of an undisturbed study."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_studies import MEASURE, TINY, Here

from elboroom.core.problem import Problem
from elboroom.studies import Study, run_study
from elboroom.studies.engines.pool import Pool, cores
from elboroom.studies.schema import Measure
from elboroom.studies.space import Cell
from elboroom.training.recorder import read_log

pytestmark = pytest.mark.slow
KILLS = 10


def children(parent: int) -> list[int]:
    """The workers that a driver has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


def alive(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(true: Callable[[], Any], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.005)


@pytest.fixture(scope="module")
def study(squares: Path) -> Study:
    """24 runs of half a second, more or less."""
    runs = [
        {"method": "beta-vae", "beta": [1, 8]},
        {"method": "beta-tcvae", "beta": [2, 6]},
        {"method": "dip-vae-i", "zip": {"off": [1, 10], "diag": [10, 100]}},
        {"method": "factor-vae", "gamma": [5, 20], "steps": 24},
    ]
    every = {**TINY, "steps": 120, "checkpoint_every": 12, "log_every": 6}
    return Study.of(
        {"name": "faults", "data": str(squares), "seeds": 3, "every": every, "runs": runs, "measure": MEASURE}
    )


def driver(study: Study, folder: Path) -> Any:
    """A driver in a process that has torch loaded already."""
    process = multiprocessing.get_context("fork").Process(target=lambda: run_study(study, folder, Pool(2), quiet=True))
    process.start()
    return process


def lines(folder: Path) -> list[dict[str, Any]]:
    """What the index says so far; the driver may be writing to it."""
    found = []
    path = folder / "index.jsonl"
    for text in path.read_text().splitlines() if path.exists() else ():
        try:
            found.append(json.loads(text))
        except ValueError:
            continue
    return found


def walked(folder: Path) -> float:
    """The steps that all runs have logged."""
    logs = (read_log(path) for path in folder.glob("runs/*/log.jsonl"))
    return sum(log[-1]["step"] for log in logs if log)


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_kill_driver_and_workers_at_ten_random_moments(study: Study, tmp_path: Path) -> None:
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    assert run_study(study, alone, Here(), quiet=True)["done"] == 24
    rng, process = random.Random(6), driver(study, killed)
    victims: Counter[str] = Counter()
    while sum(victims.values()) < KILLS:
        victim = "driver" if sum(victims.values()) % 3 == 1 else "worker"
        goal = walked(killed) + rng.uniform(
            1, 180
        )  # steps of all runs together: so moments do not depend on the machine
        until(lambda: walked(killed) > goal or not process.is_alive())  # noqa: B023
        time.sleep(rng.uniform(0, 0.1))
        assert process.is_alive(), "the study was over before it was disturbed enough"
        workers = children(process.pid)
        number = process.pid if victim == "driver" else rng.choice(workers) if workers else None
        if number is None:
            continue
        os.kill(number, signal.SIGKILL)
        victims[victim] += 1
        if victim == "driver":
            process.join()
            until(lambda: not any(alive(w) for w in workers))  # noqa: B023 workers leave with their driver
            process = driver(study, killed)
    process.join()
    assert process.exitcode == 0
    assert victims == {"driver": 3, "worker": 7}
    told = lines(killed)
    done = [line["run"] for line in told if line["state"] == "done"]
    assert Counter(done) == Counter(cell.name for cell in study.cells()), "every run finished, and once"
    assert not [line for line in told if line["state"] == "failed"]
    for name in done:
        states = [line["state"] for line in told if line["run"] == name]
        assert states[-1] == "done", "nothing finished is begun again"
    resumed = [line for line in told if line["state"] == "done" and line["from"] > 0]
    assert resumed, "what was cut off went on from a checkpoint"
    for file in ("table.csv", "table.parquet"):
        assert (killed / file).read_bytes() == (alone / file).read_bytes()
    for cell in study.cells():
        logs = [(folder / "runs" / cell.name / "log.jsonl").read_bytes() for folder in (alone, killed)]
        assert logs[0] == logs[1]


def test_interrupt_saves_says_how_to_go_on_and_leaves_nobody_behind(squares: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "s.toml", tmp_path / "out"
    every = "steps = 1000000\nbatch_size = 8\nlatent = 2\nnet = 'mlp-300'\ncheckpoint_every = 100000\nlog_every = 10\n"
    file.write_text(f"data = '{squares}'\nseeds = 4\n[every]\n{every}[[runs]]\nmethod = 'vae'\n")
    words = [sys.executable, "-m", "elboroom.cli", "study", "run", str(file), "--out", str(out), "--workers", "2"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    workers: list[int] = []
    try:
        until(lambda: len(list(out.glob("runs/*/log.jsonl"))) == 2)
        until(lambda: all(path.stat().st_size > 200 for path in out.glob("runs/*/log.jsonl")))
        workers = children(process.pid)
        assert len(workers) == 2
        with pytest.raises(Problem, match=f"in use by process {process.pid}"):
            run_study(Study.read(file), out, Pool(2), quiet=True)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
        assert process.returncode == 130, said
        assert f"continue with: elbo study run {out}" in said
        assert not any(alive(worker) for worker in workers)
        assert len(list(out.glob("runs/*/checkpoints/step-*.json"))) == 2, "both runs were saved"
    finally:
        for left in (process.pid, *workers):
            if alive(left):
                os.kill(left, signal.SIGKILL)


def test_a_run_that_kills_its_workers_is_given_up(
    squares: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that dies at once, again and again, costs its run and no other."""
    fatal = tmp_path / "sitecustomize.py"
    fatal.write_text(
        "import os, sys, threading, time\n"
        "def wait():\n"
        "    while 'elboroom.studies.engines.work' not in sys.modules: time.sleep(0.01)\n"
        "    from elboroom.studies.engines import work\n"
        "    good = work.trained\n"
        "    def trained(cell, *rest):\n"
        "        if cell.seed == 1: os.kill(os.getpid(), 9)\n"
        "        return good(cell, *rest)\n"
        "    while not hasattr(work, 'tidy'): time.sleep(0.01)\n"
        "    work.trained = trained\n"
        "if 'elboroom.studies.engines.worker' in ' '.join(sys.orig_argv): threading.Thread(target=wait, daemon=True).start()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    study = Study.of({"data": str(squares), "seeds": 3, "every": TINY, "runs": [{"method": "vae"}], "measure": MEASURE})
    counts = run_study(study, tmp_path / "out", Pool(2), quiet=True)
    assert counts == {"done": 2, "failed": 1}
    (lost,) = (line for line in lines(tmp_path / "out") if line["state"] == "failed")
    assert lost["cell"]["seed"] == 1
    assert lost["error"] == "its worker died 4 times at the start (signal 9, perhaps for want of memory)"


def test_workers_that_cannot_start_are_no_fault_of_the_runs(
    tables: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "safetensors.py").write_text("raise ImportError('no such wheel')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(Problem, match="workers do not start: ImportError: no such wheel"):
        run_study(Study.of(tables), tmp_path / "out", Pool(1), quiet=True)
    assert not [line for line in lines(tmp_path / "out") if line["state"] == "failed"]


def test_cores_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Pool().width == cores()
    monkeypatch.setattr("elboroom.studies.engines.pool.cores", lambda: 8)
    assert [Pool(threads=t).width for t in (1, 2, 3, 8, 16)] == [8, 4, 2, 1, 1]
    assert Pool(workers=5, threads=2).width == 5
    with pytest.raises(Problem, match="--workers -1"):
        Pool(-1)


def test_every_worker_has_its_share_of_threads(squares: Path, tmp_path: Path) -> None:
    """What a worker prints of itself: its limits are in its environment before torch is loaded."""
    from queue import SimpleQueue

    from elboroom.studies.engines.pool import Worker

    (tmp_path / "runs").mkdir()
    worker = Worker(3, tmp_path / "log", SimpleQueue())
    try:
        found = Path(f"/proc/{worker.process.pid}/environ").read_bytes().decode().split("\0")
        assert {"OMP_NUM_THREADS=3", "MKL_NUM_THREADS=3", "OPENBLAS_NUM_THREADS=3"} <= set(found)
        assert os.getpgid(worker.process.pid) == worker.process.pid, "a group of its own, which can be ended whole"
        worker.give(Cell("vae", str(squares), None, 0, {}), tmp_path, Measure())
    finally:
        worker.stop()
        worker.end(10)
    assert worker.process.returncode in (-signal.SIGTERM, -signal.SIGKILL)
