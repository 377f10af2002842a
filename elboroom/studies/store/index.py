"""The index of a study: a line for whatever becomes of a run, appended and synced; and locks that die with their process."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from elboroom.core.problem import Problem
from elboroom.studies.space import Cell
from elboroom.studies.store.disk import refusal

State = Literal["started", "done", "failed"]
FILE = "index.jsonl"


@dataclass
class Entry:
    """What the index says of one run: its cell, its last state, and what came with it."""

    cell: Cell
    state: State
    told: dict[str, Any] = field(default_factory=dict)  # of a finished run its timing, of a failed one its error


class Index:
    """The runs of a study and what became of them, in `index.jsonl`. Only the driver writes to it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    def read(self) -> dict[str, Entry]:
        """The entries by name, in the order in which they first appear; a line that a crash cut off counts for nothing."""
        found: dict[str, Entry] = {}
        for text in self.path.read_bytes().split(b"\n") if self.path.exists() else ():
            try:
                line = json.loads(text)
                name, state, cell = line.pop("run"), line.pop("state"), Cell.from_json(line.pop("cell"))
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
            found[name] = Entry(cell, state, line)
        return found

    def append(self, cell: Cell, state: State, **told: Any) -> None:
        """Adds a line, and returns when it is on the disk."""
        line = {"run": cell.name, "state": state, "time": round(time.time(), 3), **told, "cell": cell.to_json()}
        try:
            with self.path.open("ab+") as file:
                if file.tell() and not self._whole(file):
                    file.write(b"\n")  # what a crash cut off stays a line of its own
                file.write(json.dumps(line).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise refusal(self.path, error) from error

    @staticmethod
    def _whole(file: Any) -> bool:
        file.seek(-1, os.SEEK_END)
        whole: bool = file.read(1) == b"\n"
        return whole


@contextmanager
def driving(folder: Path) -> Iterator[None]:
    """Holds the study for this driver; a second one is refused. The lock is gone when the process is, however it ended."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("a+")
    except OSError as error:
        raise refusal(folder, error) from error
    with file:
        if not _locked(file, 1.0):
            file.seek(0)
            who = file.read().strip() or "another process"
            raise Problem(f"{folder} is driven by {who} already: wait for it, or stop it first")
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        yield


def driven(folder: Path) -> bool:
    """Whether a driver is at work on a study."""
    try:
        with (folder / "lock").open() as file:
            return not _locked(file, 0, fcntl.LOCK_SH)
    except FileNotFoundError:
        return False


@contextmanager
def holding(path: Path, patience: float = 60.0) -> Iterator[None]:
    """Holds a run for this worker; waits for one that is just being killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        if not _locked(file, patience):
            raise Problem(f"{path.stem} is worked on by another process")
        yield


def _locked(file: IO[str], patience: float, how: int = fcntl.LOCK_EX) -> bool:
    """Whether the lock of a file could be had within so many seconds."""
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(0.05)
