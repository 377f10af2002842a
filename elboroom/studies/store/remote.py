"""Where runs are gathered: from workers without a common disk as one packet, or at an fsspec address."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

import fsspec

from elboroom.core.files import refuse_links
from elboroom.core.problem import Problem
from elboroom.training.checkpoint import write

HEAVY = "checkpoints"  # the folder that a packet may leave out


def files_of(folder: Path, heavy: bool = True) -> list[Path]:
    """The files of a run that are worth keeping, without temporary ones and what can be made again."""
    found = (path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())
    skipped = {"codes"} | (set() if heavy else {HEAVY})
    return [path for path in found if path.parts[0] not in skipped and not path.name.startswith(".")]


def pack(folder: Path, heavy: bool = True) -> bytes:
    """A run as one packet."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for path in files_of(folder, heavy):
            archive.add(folder / path, str(path), recursive=False)
    return content.getvalue()


def unpack(packet: bytes, folder: Path) -> None:
    """Writes a packet into a folder; metrics.json last, since it says that the run is whole."""
    with tarfile.open(fileobj=io.BytesIO(packet)) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        for member in sorted(members, key=lambda member: member.name == "metrics.json"):
            file = archive.extractfile(member)
            assert file is not None
            _placed(folder, member.name, file.read(), "a packet")


def _placed(folder: Path, name: str, content: bytes, whose: str) -> None:
    """Writes a file that came from elsewhere into a run, and nowhere else."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if not parts or parts[0].startswith("/") or ".." in parts or ":" in parts[0]:
        raise Problem(f"{whose} names {name}, which is outside its run")
    to = folder.joinpath(*parts)
    to.parent.mkdir(parents=True, exist_ok=True)
    refuse_links(folder)
    write(to, content)


class Store:
    """An fsspec address (s3://..., gs://..., file://...) to which the runs of a study are copied."""

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            self.system, self.root = fsspec.core.url_to_fs(url)
        except (ValueError, ImportError) as error:
            raise Problem(f"--to {url}: {error}") from None

    def check(self) -> None:
        """Writes and removes a small file: what cannot be written is refused before the first run."""
        try:
            self.system.makedirs(self.root, exist_ok=True)
            probe = f"{self.root}/.probe"
            self.system.pipe_file(probe, b"elboroom")
            self.system.rm_file(probe)
        except Exception as error:  # every file system has errors of its own
            raise Problem(f"--to {self.url} cannot be written: {type(error).__name__}: {error}") from None

    def has(self, name: str) -> bool:
        """Whether a finished run is there."""
        return bool(self.system.exists(f"{self.root}/runs/{name}/metrics.json"))

    def send(self, folder: Path, name: str) -> None:
        """Copies a run; metrics.json comes last, since it says that the run is whole."""
        files = files_of(folder)
        self._put(folder, f"runs/{name}", sorted(files, key=lambda path: path.name == "metrics.json"))

    def send_files(self, folder: Path, names: Iterable[str]) -> None:
        """Copies files of the study itself."""
        self._put(folder, "", [Path(name) for name in names if (folder / name).exists()])

    def fetch(self, name: str, folder: Path) -> None:
        """Copies what there is of a run from the address into its folder."""
        there = f"{self.root}/runs/{name}"
        if self.system.exists(there):
            for path in self.system.find(there):
                inside = PurePosixPath(str(path)).relative_to(PurePosixPath(_same(there, str(path))))
                _placed(folder, str(inside), self.system.cat_file(path), self.url)

    def _put(self, folder: Path, place: str, files: Iterable[Path]) -> None:
        for path in files:
            to = "/".join(part for part in (self.root, place, *path.parts) if part)
            self.system.makedirs(to.rpartition("/")[0], exist_ok=True)
            self.system.pipe_file(to, (folder / path).read_bytes())


def _same(root: str, path: str) -> str:
    """The root as a path of the same file system is written."""
    return path[: path.index(root.strip("/")) + len(root.strip("/"))]


class Mirror:
    """Copies every new checkpoint of a run to a store, so that another machine can go on with it."""

    def __init__(self, store: Store, folder: Path, name: str) -> None:
        self.store, self.folder, self.name = store, folder, name
        self.sent = ""

    def __call__(self, spec: Any) -> Mirror:
        return self

    def look(self) -> None:
        """Copies what is new."""
        newest = max((self.folder / HEAVY).glob("step-*.json"), default=None)
        if newest is not None and newest.name != self.sent:
            self.sent = newest.name
            self.store.send(self.folder, self.name)
