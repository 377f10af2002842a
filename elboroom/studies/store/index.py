"""The index of a study: a line for whatever becomes of a run, appended and synced; and locks that die with their process."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, model_validator

from elboroom.core.files import refuse_link, sweep
from elboroom.core.locks import held
from elboroom.core.problem import Problem
from elboroom.studies.space import Cell
from elboroom.studies.store.disk import refusal

State = Literal["started", "done", "failed"]
FILE = "index.jsonl"
LOCK, HOLDER = "lock", "lock-holder"  # of a driver, and who it is: a locked file cannot be read everywhere


class _Cell(BaseModel):
    """A cell as a line of the index has it."""

    model_config = ConfigDict(extra="forbid")

    method: str
    data: str
    size: int | None
    seed: int
    options: dict[str, str | int | float | bool]


class Line(BaseModel):
    """A line of the index, checked before it is believed; the name of a run is that of a folder, and no way out of it."""

    run: str = Field(pattern=r"^[\w.-]+$", max_length=200)
    state: State
    cell: _Cell
    engine: str = ""
    error: str = ""
    measured: str = ""
    host: str = ""
    seconds: dict[str, float] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _whole(self) -> Line:
        if self.run in (".", ".."):
            raise ValueError("a run is named after its folder")
        return self


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
        try:
            content = self.path.read_bytes() if self.path.exists() else b""
        except OSError as error:
            raise Problem(f"{self.path} cannot be read ({error.strerror})") from error
        for text in content.split(b"\n"):
            try:
                line = json.loads(text)
                read = Line.model_validate(line)
            except (ValueError, RecursionError):
                continue
            told = {key: value for key, value in line.items() if key not in ("run", "state", "cell")}
            found[read.run] = Entry(Cell.from_json(line["cell"]), read.state, told)
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
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(held(folder / LOCK, folder / HOLDER, str(folder)))
        except OSError as error:
            raise refusal(folder, error) from error
        sweep(folder, deep=False)  # runs have locks of their own
        yield


def driven(folder: Path) -> bool:
    """Whether a driver is at work on a study."""
    refuse_link(folder / LOCK)
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
    refuse_link(path)
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
