"""The disk of a study: what a folder takes, what is free, and whether an error means that nothing is left."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

from elboroom.core.problem import Problem

FULL = (errno.ENOSPC, errno.EDQUOT)


class Full(Problem):
    """The disk is full: no fault of the run that met it, and nothing for the next one to try."""


def is_full(error: BaseException | None) -> bool:
    """Whether an error, or what it was raised from, says that no space is left."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in FULL:
            return True
        error = error.__cause__ or error.__context__
    return False


def refusal(path: Path, error: OSError) -> Problem:
    """The Problem for a file of a study that cannot be written."""
    if is_full(error):
        return Full(f"no space left to write {path}: all finished runs are kept; free some, then run the study again")
    return Problem(f"cannot write {path}: {error.strerror or error}")


def taken(folder: Path) -> int:
    """The bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def free(folder: Path) -> int:
    """The bytes that are left where a folder is, or will be."""
    there = next(path for path in (folder, *folder.resolve().parents) if path.exists())
    return shutil.disk_usage(there).free


def bytes_shown(count: float) -> str:
    """1234567 as 1.2 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
