"""The index of a study: a line for whatever becomes of a run, appended and synced; and locks that die with their process."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from elboroom.core.problem import Problem
from elboroom.studies.space import Cell
from elboroom.studies.store.disk import refusal

State = Literal["started", "done", "failed"]
FILE = "index.jsonl"
LOCK, HOLDER = "lock", "lock-holder"  # of a driver, and who it is: a locked file cannot be read everywhere


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
    lock, holder = FileLock(folder / LOCK), folder / HOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=1.0)
    except Timeout:
        who = holder.read_text().strip() if holder.exists() else "another process"
        raise Problem(f"{folder} is already being run by {who}; wait for it, or stop it first") from None
    except OSError as error:
        raise refusal(folder, error) from error
    try:
        holder.write_text(f"process {os.getpid()} on {socket.gethostname()}\n")
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def driven(folder: Path) -> bool:
    """Whether a driver is at work on a study."""
    if not (folder / LOCK).exists():
        return False
    try:
        with FileLock(folder / LOCK, timeout=0):
            return False
    except Timeout:
        return True
    except PermissionError:  # a study of somebody else, which only its driver can lock
        return (folder / HOLDER).exists()


@contextmanager
def holding(path: Path, patience: float = 60.0) -> Iterator[None]:
    """Holds a run for this worker; waits for one that is just being killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=patience)
    except Timeout:
        raise Problem(f"{path.stem} is being run by another process") from None
    try:
        yield
    finally:
        lock.release()
