"""Runs by their address: `push`, `pull`, and the copy that `load` makes of one that is elsewhere."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from elboroom.core.problem import Problem
from elboroom.data import places as caches
from elboroom.runs.lifecycle import load
from elboroom.share.packet import packed, taken
from elboroom.share.places import SCHEME, Hub, place


def push(
    folder: str | Path, address: str, private: bool = False, revision: str | None = None, weights: bool = False
) -> dict[str, object]:
    """Sends a run to an address; says where it is now, and which files went there. weights: no memory of optimisers."""
    to = place(address, revision)
    run = load(folder)
    files = packed(
        run, to.address if isinstance(to, Hub) or "://" in to.address else str(Path(to.address).absolute()), weights
    )
    url = to.send(files, private)
    return {"address": to.address, "url": url, "files": {name: len(files[name]) for name in sorted(files)}}


def pull(address: str, revision: str | None = None, out: str | Path | None = None) -> Path:
    """Brings a run from an address into a folder, by default runs/ and its name; refuses one that is there already."""
    source = place(address, revision)
    folder = Path(out) if out is not None else Path("runs") / _name(source.address)
    if folder.exists():
        raise Problem(f"{folder} exists; choose another --out")
    taken(source, folder)
    return folder


def fetched(address: str) -> Path:
    """A copy of a run that is elsewhere, in the cache; made once for every version of it."""
    source = place(address)
    key = hashlib.sha256(f"{source.address}\n{source.version()}".encode()).hexdigest()[:16]
    folder = caches.cache() / "runs" / f"{_name(source.address)}-{key}"
    if not folder.exists():
        try:
            taken(source, folder)
        except Problem:
            if not folder.exists():  # another process may have been quicker
                raise
    return folder


def _name(address: str) -> str:
    """What a folder is called after an address."""
    said = address.removeprefix(SCHEME).partition("://")[2] or address.removeprefix(SCHEME)
    name = re.sub(r"[^\w.@-]+", "-", os.path.basename(said.rstrip("/")) or said).strip(".-")
    return name or "run"
