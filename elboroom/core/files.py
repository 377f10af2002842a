"""Files that are there whole or not at all, and folders of strangers: nothing is written through a link."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from elboroom.core.problem import Problem


def write(path: Path, content: bytes) -> None:
    """Writes a file under a new random name, syncs it and renames it: it is there whole, or not at all.

    The name is created exclusively and the rename replaces a link rather than following it, so that nothing that was put
    into the folder decides where the content goes.
    """
    temporary = None
    try:
        number, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        temporary = Path(name)
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, path)
        _sync(path.parent)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise Problem(_reason(path, error)) from error


def write_json(path: Path, content: Any) -> None:
    """The same for JSON."""
    write(path, (json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


MOST = 1 << 28  # bytes of a JSON file of ours; the largest are vocabularies, a tenth of it
PART = re.compile(r"\..+\.[a-z0-9_]+\.part")  # the names of files that are not whole yet


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file of ours; anything else there is a Problem."""
    try:
        if path.stat().st_size > MOST:
            raise ValueError(f"it has more than {MOST >> 20} MB")
        content = json.loads(path.read_bytes(), parse_constant=_refuse)
        if not isinstance(content, dict):
            raise ValueError("it holds no object")
    except (OSError, ValueError, RecursionError) as error:
        raise Problem(f"{path} cannot be read ({getattr(error, 'strerror', None) or error})") from error
    return content


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number")


def remade(path: Path, check: Callable[[dict[str, Any]], object] = dict) -> dict[str, Any]:
    """The object in a JSON file that can be made anew, empty where there is none.

    One that is damaged, or that `check` refuses, is reported and set aside as NAME.damaged.
    """
    if not path.exists():
        return {}
    try:
        content = read_json(path)
        check(content)
        return content
    except Problem as problem:
        os.replace(path, path.with_name(f"{path.name}.damaged"))
        warnings.warn(f"{problem}; it is set aside as {path.name}.damaged and made anew", stacklevel=2)
        return {}


def sweep(folder: Path, deep: bool = True) -> None:
    """Removes what a crash left of files that were being written. Whoever calls holds the lock of the folder."""
    for place, folders, files in os.walk(folder):
        for name in files:
            if PART.fullmatch(name):
                Path(place, name).unlink(missing_ok=True)
        folders[:] = _ours(folder, place, folders) if deep else []


FOREIGN = "wandb"  # a folder of W&B, which keeps links of its own in there; elboroom neither reads nor writes it


def _ours(folder: Path, place: str, folders: list[str]) -> list[str]:
    """The folders that are not of W&B, which has one at the top of a run, of those of a study too, and nowhere else."""
    parts = Path(place).relative_to(folder).parts
    is_run = not parts or (len(parts) == 2 and parts[0] == "runs")
    return [name for name in folders if name != FOREIGN or not is_run]


def refuse_link(path: Path) -> None:
    """Refuses a symbolic link: what is written or deleted there would be elsewhere."""
    if path.is_symlink():
        raise Problem(f"{path} is a symbolic link; elboroom does not follow links inside a run or study; remove it")


def refuse_links(folder: Path) -> None:
    """Refuses a folder with a symbolic link anywhere inside: what is written or deleted there would be elsewhere.

    A pipe or a device is refused too: whoever reads it would wait for ever.
    """
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            refuse_link(path)
            try:
                kind = path.lstat().st_mode
            except FileNotFoundError:  # somebody is at work in there
                continue
            if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
                raise Problem(f"{path} is neither a file nor a folder; remove it")
        folders[:] = _ours(folder, place, folders)


def _umask() -> int:
    """The permissions that this process withholds; asking sets them, so they are set back at once."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _sync(folder: Path) -> None:
    """Makes a rename last, where the system lets a folder be opened."""
    if os.name == "nt":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _reason(path: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"no space left to write {path}: what was there before is kept; free some, then go on with elbo resume"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"no permission to write {path}"
    return f"cannot write {path}: {error.strerror}"
