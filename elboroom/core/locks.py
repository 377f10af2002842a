"""Locks that die with their process, and that say who has them."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from elboroom.core.files import refuse_link, sweep, write
from elboroom.core.problem import Problem

LOCK, HOLDER = (
    ".lock",
    ".lock-holder",
)  # of a run; a locked file cannot be read everywhere, so the name stands beside it


@contextmanager
def held(lock: Path, holder: Path, what: str, patience: float = 1.0) -> Iterator[bool]:
    """Holds a lock; one that another process has is a Problem with its name. Gives whether it was not held here before.

    The thread that has it may take it again. However a process ends, its locks are gone.
    """
    mine = _lock(lock)
    first = not mine.is_locked
    try:
        mine.acquire(timeout=patience)
    except Timeout:
        raise Problem(f"{what} is in use by {_who(holder)}; wait for it, or stop it first") from None
    try:
        if first:
            write(holder, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        yield first
    finally:
        if first:
            holder.unlink(missing_ok=True)
        mine.release()


def _lock(path: Path) -> FileLock:
    """The lock of this file; one that is a link is refused, or the file that it names would be made or locked."""
    refuse_link(path)
    return FileLock(path.parent.resolve() / path.name, is_singleton=True)


def _who(holder: Path) -> str:
    try:
        return holder.read_text(errors="replace")[:200].strip() or "another process"
    except OSError:
        return "another process"


def is_free(folder: Path) -> bool:
    """Whether nobody but this thread holds this run."""
    mine = _lock(folder / LOCK)
    if not (folder / LOCK).exists():
        return True
    try:
        with mine.acquire(timeout=0):
            return True
    except (Timeout, OSError):
        return False


@contextmanager
def one_process(folder: Path) -> Iterator[None]:
    """Holds a run for this process, and sweeps away what a crash left in it; a folder that is read-only needs no lock."""
    if folder.is_dir() and not os.access(folder, os.W_OK):
        yield
        return
    with held(folder / LOCK, folder / HOLDER, str(folder)) as first:
        if first:
            sweep(folder)
        yield
