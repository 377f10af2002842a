"""The Ray engine: runs are placed and retried by Ray, on this machine or on a cluster."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from elboroom.core.problem import Problem
from elboroom.data import places
from elboroom.studies.engines.pool import GRACE, RETRIES, Told, cores
from elboroom.studies.schema import Measure
from elboroom.studies.space import Cell, digest
from elboroom.studies.store.remote import Mirror, Store, pack, unpack
from elboroom.studies.study import FILE

EVERY = 0.5  # seconds between two words on how far a run is
CLUSTERS = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # by which Ray decides whether others may reach it, on any system
REACH = 5.0  # seconds in which an address has to answer


class Steps:
    """Tells the driver the step that a run is at; and looks after a mirror, where there is one."""

    def __init__(self, name: str, board: Any, mirror: Mirror | None = None) -> None:
        self.name, self.board, self.mirror, self.last = name, board, mirror, 0.0

    def __call__(self, step: int, line: dict[str, float]) -> None:
        """The steps done, and a line of the log where one was due."""
        if time.monotonic() - self.last > EVERY:
            self.last = time.monotonic()
            self.board.tell.remote(self.name, step)
            if self.mirror is not None:
                self.mirror.look()

    def close(self) -> None:
        """The run has ended, somehow."""


class Notes:
    """What runs on the cluster have told since the driver last asked; lives in an actor."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []

    def tell(self, name: str, step: int) -> None:
        """A run is at this step; at the start of it, at 0."""
        self.told.append((name, step))

    def read(self) -> list[tuple[str, int]]:
        """All that was told since."""
        told, self.told = self.told, []
        return told


def task(job: dict[str, Any], board: Any) -> Told:
    """One run on a node: in the folder of the study where the node sees it, else in a place of its own, then sent back."""
    from elboroom.studies.engines.work import attempt

    cell, measure, root = Cell.from_json(job["cell"]), Measure(**job["measure"]), Path(job["root"])
    board.tell.remote(cell.name, 0)
    if mark_of(root) == job["mark"]:
        return attempt(cell, root, measure, lambda spec: Steps(cell.name, board), job.get("logger", ""))
    root = places.cache() / "studies" / job["mark"]
    folder, store = root / "runs" / cell.name, Store(job["store"]) if job["store"] else None
    if store is not None and not folder.exists():
        store.fetch(cell.name, folder)
    mirror = None if store is None else Mirror(store, folder, cell.name)
    told = attempt(cell, root, measure, lambda spec: Steps(cell.name, board, mirror), job.get("logger", ""))
    if told["state"] == "done":
        if store is not None:
            store.send(folder, cell.name)
        told["packet"] = pack(folder, heavy=store is None)
    return told


def mark_of(root: Path) -> str:
    """Tells whether two machines see the same study in a folder."""
    path = root / FILE
    return digest(path.read_text()) if path.exists() else ""


class Cluster:
    """Runs as tasks of Ray: `threads` processors and `gpus` (a fraction will do) each."""

    name = "ray"

    def __init__(
        self,
        address: str | None = None,
        workers: int | None = None,
        threads: int = 1,
        gpus: float = 0.0,
        store: str | None = None,
        few: bool = False,
        logger: str = "",
    ) -> None:
        try:
            import ray
        except ImportError:
            raise Problem("--engine ray needs Ray; pip install 'elboroom[ray]'") from None
        if workers is not None and workers < 1:
            raise Problem(f"--workers {workers}: must be at least 1")
        if gpus < 0:
            raise Problem(f"--gpus {gpus:g}: must be at least 0")
        self.ray: Any = ray
        self.threads, self.gpus, self.store, self.few, self.logger = threads, gpus, store, few, logger
        self.width = workers or max(1, cores() // threads)
        self.started = False
        self._reach(address)
        self.address, self.refs = address, dict[Any, Cell]()

    @staticmethod
    def _reach(address: str | None) -> None:
        """Refuses an address at which nobody answers, which Ray itself would wait for."""
        host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
        if address in (None, "local", "auto"):
            return
        if not colon or not port.isdigit():
            raise Problem(f"--address {address}: must be HOST:PORT, ray://HOST:PORT or auto")
        try:
            socket.create_connection((host, int(port)), REACH).close()
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or "no answer"
            raise Problem(f"no Ray cluster answers at {address} ({why}); start one with ray start --head") from None

    def _start(self) -> None:
        local = self.address in (None, "local")
        own = {"num_cpus": self.width * self.threads, "include_dashboard": False} if local else {}
        self._bind(local)
        os.environ["PYTHONSAFEPATH"] = "1"  # processes that a local Ray starts import nothing from the current folder
        try:
            self.ray.init(
                address="local" if local else self.address, log_to_driver=False, logging_level=logging.ERROR, **own
            )
        except Exception as error:
            said = " ".join(str(error).split())
            raise Problem(f"Ray does not start at {self.address or 'this machine'}: {said[:200]}") from None
        self.started = True

    def _bind(self, local: bool) -> None:
        """Has a local Ray listen on the loopback interface alone, as it does where it knows no clusters."""
        os.environ[CLUSTERS] = "0" if local else "1"  # for what it starts
        with suppress(AttributeError):
            self.ray._private.ray_constants.ENABLE_RAY_CLUSTER = not local

    def run(self, cells: Iterator[Cell], root: Path, measure: Measure) -> Iterator[tuple[Cell, Told]]:
        """Hands Ray all cells, or for a search as many as can run at once, and tells what becomes of each."""
        self._start()
        try:
            yield from self._run(cells, root, measure)
        except (self.ray.exceptions.RayError, ConnectionError) as error:
            said = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise Problem(f"Ray is gone ({said[:200]}); finished runs are kept: run the study again") from None

    def _run(self, cells: Iterator[Cell], root: Path, measure: Measure) -> Iterator[tuple[Cell, Told]]:
        board = self.ray.remote(num_cpus=0)(Notes).remote()
        work = self.ray.remote(num_cpus=self.threads, num_gpus=self.gpus, max_retries=RETRIES)(task)
        common = {
            "root": str(root.resolve()),
            "measure": measure.model_dump(),
            "mark": mark_of(root),
            "store": self.store,
            "logger": self.logger,
        }
        known: dict[str, Cell] = {}
        begun: set[str] = set()
        while True:
            while (not self.few or len(self.refs) < self.width) and (cell := next(cells, None)) is not None:
                known[cell.name] = cell
                self.refs[work.remote({"cell": cell.to_json(), **common}, board)] = cell
            if not self.refs:
                return
            ready, _ = self.ray.wait(list(self.refs), num_returns=1, timeout=EVERY)
            for name, step in self.ray.get(board.read.remote()):
                if name in known and (name not in begun or step):
                    yield known[name], {"state": "step", "step": step} if name in begun else {"state": "started"}
                    begun.add(name)
            for ref in ready:
                cell = known.pop(self.refs.pop(ref).name)  # what is told of it from now on comes too late
                if cell.name not in begun:
                    yield cell, {"state": "started"}
                yield cell, self._told(ref, cell, root)

    def _told(self, ref: Any, cell: Cell, root: Path) -> Told:
        """What became of a run; one that was sent back is put in its place."""
        try:
            told: Told = self.ray.get(ref)
        except self.ray.exceptions.RayError as error:
            said = (str(error).strip() or type(error).__name__).splitlines()[0]
            return {"state": "failed", "error": f"its worker died {RETRIES + 1} times: {said}"}
        if "packet" in told:
            unpack(told.pop("packet"), root / "runs" / cell.name)
        return told

    def close(self) -> None:
        """Asks runs to save themselves, waits a little, and leaves the cluster."""
        if not self.started:
            return
        self.started = False
        with suppress(Exception):  # a cluster that is gone cannot be left politely
            for ref in self.refs:
                self.ray.cancel(ref, force=False)
            if self.refs:
                self.ray.wait(list(self.refs), num_returns=len(self.refs), timeout=GRACE)
        self.refs.clear()
        self.ray.shutdown()
