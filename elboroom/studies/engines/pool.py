"""The embedded engine: worker processes on this machine, the cores shared out among them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol

from elboroom.core.problem import Problem
from elboroom.studies.schema import Measure
from elboroom.studies.space import Cell

RETRIES = 3  # of a run whose worker dies, each time at the same step; after that it counts as failed
GRACE = 30.0  # seconds in which a worker may save its run
ENDS = ("done", "failed", "full")

Told = dict[str, Any]  # {"state": started, step, done, failed or full, ...}


class Engine(Protocol):
    """Where runs are done. Takes cells as it has room for them, and tells what becomes of each."""

    name: str

    def run(self, cells: Iterator[Cell], root: Path, measure: Measure) -> Iterator[tuple[Cell, Told]]:
        """Does all cells."""

    def close(self) -> None:
        """Stops what is under way: saved if there is time, else killed."""


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Worker:
    """One process, in a group of its own with whatever it starts."""

    def __init__(self, threads: int, log: Path, told: SimpleQueue[tuple[Worker, Told | None]]) -> None:
        limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "elboroom.studies.engines.worker"],  # -P: nothing is imported from here
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=os.environ | limits | {"PYTHONSAFEPATH": "1"},
                start_new_session=True,
                text=True,
            )
        self.cell: Cell | None = None
        self.is_ready = False
        threading.Thread(target=self._listen, args=(told,), daemon=True).start()

    def _listen(self, told: SimpleQueue[tuple[Worker, Told | None]]) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with suppress(ValueError):  # cut off by its death
                told.put((self, json.loads(line)))
        self.process.wait()
        told.put((self, None))

    def give(self, cell: Cell, root: Path, measure: Measure, logger: str = "") -> None:
        """Hands it a cell to do."""
        self.cell = cell
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # it is dead, which its other end will tell
            job = {"cell": cell.to_json(), "root": str(root), "measure": measure.model_dump(), "logger": logger}
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()

    def stop(self) -> None:
        """Asks it to save its run and leave; an idle one has nothing to save."""
        self._signal(signal.SIGTERM if self.cell is not None else signal.SIGKILL)

    def end(self, patience: float) -> None:
        """Waits for its end, then kills what is left of it and of what it started."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(patience)
        self._signal(signal.SIGKILL)
        self.process.wait()
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if number == signal.SIGTERM:
                self.process.send_signal(number)
            else:
                os.killpg(self.process.pid, number)


class Pool:
    """Workers that are started once and live through many runs; one that dies is replaced and its run taken up again."""

    name = "pool"

    def __init__(self, workers: int | None = None, threads: int = 1, logger: str = "") -> None:
        room = max(1, cores() // threads)
        if workers is not None and workers < 1:
            raise Problem(f"--workers {workers}: must be at least 1")
        self.width, self.threads, self.logger = workers or room, threads, logger
        self.workers: list[Worker] = []
        self.again: deque[Cell] = deque()
        self.deaths: Counter[tuple[str, str]] = Counter()
        self.told: SimpleQueue[tuple[Worker, Told | None]] = SimpleQueue()

    def run(self, cells: Iterator[Cell], root: Path, measure: Measure) -> Iterator[tuple[Cell, Told]]:
        """Does all cells, as many at a time as there are workers."""
        log = root / "workers.log"
        while True:
            while (cell := self._next(cells)) is not None:
                worker = next((w for w in self.workers if w.cell is None), None) or self._hired(log)
                worker.give(cell, root, measure, self.logger)
                yield cell, {"state": "started"}
            if all(worker.cell is None for worker in self.workers):
                return
            worker, told = self.told.get()
            cell = worker.cell
            if told is None:
                self._check(worker, log)
                worker.end(0)
                self.workers.remove(worker)
                lost = None if cell is None else self._lost(cell, root, worker.process.returncode)
                if cell is not None and lost is not None:
                    yield cell, lost
            elif told["state"] == "ready":
                worker.is_ready = True
            elif cell is not None:
                worker.cell = None if told["state"] in ENDS else cell
                yield cell, told

    def _next(self, cells: Iterator[Cell]) -> Cell | None:
        """The next cell, if a worker is free for it."""
        if sum(worker.cell is not None for worker in self.workers) >= self.width:
            return None
        return self.again.popleft() if self.again else next(cells, None)

    def _hired(self, log: Path) -> Worker:
        worker = Worker(self.threads, log, self.told)
        self.workers.append(worker)
        return worker

    @staticmethod
    def _check(worker: Worker, log: Path) -> None:
        """A worker that cannot even start is no fault of its run."""
        if not worker.is_ready and worker.process.returncode > 0:
            said = log.read_text(errors="replace").strip().splitlines()
            raise Problem(f"the workers do not start: {said[-1] if said else f'exit code {worker.process.returncode}'}")

    def _lost(self, cell: Cell, root: Path, code: int) -> Told | None:
        """What a dead worker means for its run: it is taken up again, unless workers keep dying at the same place."""
        places = sorted((root / "runs" / cell.name / "checkpoints").glob("step-*.json"))
        place = (cell.name, places[-1].stem if places else "the start")
        self.deaths[place] += 1
        if self.deaths[place] <= RETRIES:
            self.again.append(cell)
            return None
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        memory = ", perhaps for want of memory" if code == -signal.SIGKILL else ""
        return {"state": "failed", "error": f"its worker died {RETRIES + 1} times at {place[1]} ({how}{memory})"}

    def close(self) -> None:
        """Lets busy workers save their runs, then leaves none behind."""
        for worker in self.workers:
            worker.stop()
        for worker in self.workers:
            worker.end(GRACE)
        self.workers.clear()
