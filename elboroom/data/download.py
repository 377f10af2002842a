"""A download that can be cut and taken up again, and is checked before it counts."""

from __future__ import annotations

import errno
import hashlib
import http.client
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from elboroom.core.problem import Problem

Progress = Callable[[int, int], None]
CHUNK = 1 << 18
PATIENCE = 30.0  # seconds without a byte


@dataclass(frozen=True)
class File:
    """One published file; without a `sha256` its checksum is not pinned, only told."""

    name: str
    url: str
    sha256: str | None = None
    size: int | None = None


def checksum(path: Path) -> str:
    """The SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(file: File, folder: Path, progress: Progress | None = None, source: str | None = None) -> str:
    """Downloads `file` into `folder` and gives its SHA-256; `source` is another folder on the web to take it from."""
    url = f"{source.rstrip('/')}/{file.name}" if source else file.url
    if not url.startswith(("http://", "https://")) or not url.isprintable() or " " in url:
        raise Problem(f"{url} is not a web address (http:// or https://)")
    part = folder / f"{file.name}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _receive(url, part, file.size, progress)
        found = checksum(part)
        if file.sha256 is not None and found != file.sha256:
            part.unlink()
            raise Problem(
                f"{file.name} from {url} has checksum {found[:12]}..., not {file.sha256[:12]}...;  "
                "it was deleted; try again or give another --source"
            )
        os.replace(part, folder / file.name)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise Problem(f"no disk space left for {part}; free some space and run again to continue") from error
        raise Problem(f"cannot write {part} ({error.strerror or error}); choose another folder") from error
    return found


def _receive(url: str, part: Path, size: int | None, progress: Progress | None) -> None:
    """Brings `part` to its full length, from where it stands."""
    have = part.stat().st_size if part.exists() else 0
    if size is not None and have == size:
        return
    try:
        request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
        answer = urllib.request.urlopen(request, timeout=PATIENCE)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # nothing after `have`: it is whole, or of another file
            if size is None and error.headers.get("Content-Range") == f"bytes */{have}":
                return
            part.unlink()
            return _receive(url, part, size, progress)
        raise Problem(f"{url} answered {error.code} {error.reason}; give another --source") from error
    except (OSError, http.client.HTTPException, ValueError, OverflowError) as error:
        reason = getattr(error, "reason", error)
        raise Problem(f"no connection to {url} ({reason}); run again, or give another --source") from error
    with answer:
        resumed = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        if answer.status == 206 and not resumed:
            raise Problem(f"{url} sent the wrong part of the file; give another --source")
        done = have if resumed else 0
        length = answer.headers.get("Content-Length")
        total = done + int(length) if length is not None and length.strip().isdecimal() else size
        if size is not None and total is not None and total > size:
            part.unlink(missing_ok=True)
            raise Problem(f"{url} offers {total:,} bytes, but the file has {size:,}; give another --source")
        if total is not None and shutil.disk_usage(part.parent).free < total - done:
            raise OSError(errno.ENOSPC, "No space left on device")
        most = size if size is not None else total if total is not None else shutil.disk_usage(part.parent).free // 2
        with open(part, "ab" if resumed else "wb") as target:
            while chunk := _read(answer, url, done):
                done += len(chunk)
                if done > most:
                    break
                target.write(chunk)
                if progress is not None:
                    progress(done, total or done)
    if done > most:
        part.unlink()
        raise Problem(f"{url} sends more than the {most:,} bytes of the file; give another --source")
    if total is not None and done < total:
        raise _cut(url, done, total)


def _read(answer: http.client.HTTPResponse, url: str, done: int) -> bytes:
    try:
        return answer.read(CHUNK)
    except http.client.IncompleteRead as error:
        return error.partial  # the rest is missed when the lengths are compared
    except (OSError, http.client.HTTPException) as error:
        raise _cut(url, done, None) from error


def _cut(url: str, done: int, total: int | None) -> Problem:
    of = f" of {total:,}" if total is not None else ""
    return Problem(f"the connection to {url} was cut after {done:,}{of} bytes; run again to continue")
