"""Where data lies: the user's own folder first, then the cache."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elboroom.core.problem import Problem


def cache() -> Path:
    """The folder of what was downloaded or made: $ELBOROOM_CACHE, or else ~/.cache/elboroom."""
    return Path(os.environ.get("ELBOROOM_CACHE") or Path.home() / ".cache" / "elboroom").expanduser()


def own() -> Path | None:
    """The folder of data sets that the user already has, $ELBOROOM_DATA."""
    named = os.environ.get("ELBOROOM_DATA")
    return Path(named).expanduser() if named else None


def find(folder: str, *files: str) -> Path | None:
    """The folder that holds all of `files`, looked for in $ELBOROOM_DATA, then in the cache."""
    for root in (own(), cache()):
        if root is not None and all((root / folder / file).is_file() for file in files):
            return root / folder
    return None


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path`, renamed to it once all was written; the folder is made."""
    part = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield part
        os.replace(part, path)
    except OSError as error:
        reason = error.strerror or error
        raise Problem(
            f"cannot write {path} ({reason}); set ELBOROOM_CACHE to a folder that you can write to"
        ) from error
    finally:
        if part.exists():
            part.unlink()
