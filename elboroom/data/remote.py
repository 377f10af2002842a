"""Data at an address, s3://, gs:// or any other that fsspec knows: copied into the cache, once for every version of it."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

import fsspec

from elboroom.core.problem import Problem
from elboroom.data import places

PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs"}  # of stores, which fsspec asks for
SAID = 300  # characters of what a store says


def is_address(source: object) -> bool:
    """Whether this is an address rather than a path."""
    return isinstance(source, str) and "://" in source


def here(source: Any) -> Any:
    """The path of the copy of what is at an address, a file or a folder; anything else as it is."""
    if not is_address(source):
        return source
    file, colon, key = source.rpartition(":")
    named = bool(colon) and file.endswith(".npz")
    found = _copied(file if named else source)
    return f"{found}:{key}" if named else found


def _copied(address: str) -> Path:
    try:
        system, root = fsspec.core.url_to_fs(address)
        listed: dict[str, Any] = system.find(root, detail=True)
    except Exception as error:  # every file system has errors of its own
        raise _trouble(address, error) from None
    if not listed:
        raise Problem(f"{address} does not exist")
    stamps = sorted((name, {k: str(v) for k, v in info.items()}) for name, info in listed.items())
    digest = hashlib.sha256(repr((address, stamps)).encode()).hexdigest()[:16]
    name = PurePosixPath(root).name or "data"
    kept = places.cache() / "remote" / digest / name
    if not kept.exists():
        _fetch(system, root, list(listed), kept, address)
    return kept


def _trouble(address: str, error: Exception) -> Problem:
    """What a store says, in one sentence; of one whose package is not here, how to get it."""
    package = PACKAGES.get(address.partition("://")[0])
    if isinstance(error, ImportError) and package:
        return Problem(f"{address} cannot be read without {package}: pip install {package}")
    return Problem(f"{address} cannot be read: {type(error).__name__}: {' '.join(str(error).split())[:SAID]}")


def _fetch(system: Any, root: str, names: list[str], kept: Path, address: str) -> None:
    """Copies files into a folder beside, which takes its name once all of them are there."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(dir=kept.parent))
    try:
        for name in names:
            inside = PurePosixPath(name.strip("/")).relative_to(PurePosixPath(root.strip("/")))
            if ".." in inside.parts:
                raise Problem(f"{address} names {name}, which is outside of it")
            to = part / "data" / Path(*inside.parts)
            to.parent.mkdir(parents=True, exist_ok=True)
            system.get_file(name, str(to))
        if not kept.exists():  # another process may have been quicker
            (part / "data").rename(kept)
    except Problem:
        raise
    except Exception as error:
        raise _trouble(address, error) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
