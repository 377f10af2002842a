"""The shelf: the runs that an explorer was given, addressed by number, opened when they are first looked at."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elboroom.core.problem import Problem
from elboroom.explorer.atlas import Atlas
from elboroom.explorer.seen import Seen
from elboroom.runs.lifecycle import load
from elboroom.runs.run import Run
from elboroom.training.spec import Spec

OPEN = 4  # runs kept in memory
Stamp = tuple[tuple[str, int, int], ...]


class Gone(Problem):
    """The folder of a run is no longer there."""


@dataclass
class Opened:
    """A run in memory, and what its checkpoints looked like when it was read."""

    atlas: Atlas
    stamp: Stamp


class Shelf:
    """Runs by number; a few are open at once."""

    def __init__(self, runs: Sequence[Run | Path], points: int = 10_000) -> None:
        self.places = [run.folder if isinstance(run, Run) else run for run in runs]
        self._given = {number: run for number, run in enumerate(runs) if isinstance(run, Run)}
        self._open: OrderedDict[int, Opened] = OrderedDict()
        self.points = points

    def list(self) -> list[dict[str, Any]]:
        """What there is, from the specs alone."""
        return [self._entry(number, folder) for number, folder in enumerate(self.places)]

    def _entry(self, number: int, folder: Path) -> dict[str, Any]:
        try:
            spec = Spec.read(folder)
        except Problem as problem:
            return {"number": number, "name": folder.name, "title": "", "problem": str(problem)}
        names = [other.name for other in self.places]
        name = folder.name if names.count(folder.name) == 1 else f"{folder.parent.name}/{folder.name}"
        return {"number": number, "name": name, "title": spec.title, "problem": ""}

    def folder(self, number: int) -> Path:
        """Where a run lies."""
        if not 0 <= number < len(self.places):
            raise Problem(f"there are {len(self.places)} runs here; there is no number {number}")
        return self.places[number]

    def atlas(self, number: int) -> Atlas:
        """An open run."""
        folder = self.folder(number)
        stamp = stamp_of(folder)
        if number not in self._open:
            given = self._given.get(number)
            seen = Seen(load(folder) if given is None else given, self.points)
            self._open[number] = Opened(Atlas(seen), stamp)
            if len(self._open) > OPEN:
                self._open.popitem(last=False)
        self._open.move_to_end(number)
        return self._open[number].atlas

    def is_stale(self, number: int) -> bool:
        """Whether its checkpoints have changed since it was opened."""
        opened = self._open.get(number)
        return opened is not None and opened.stamp != stamp_of(self.folder(number))

    def reload(self, number: int) -> None:
        """Reads it anew when it is next looked at."""
        self.folder(number)
        self._open.pop(number, None)
        self._given.pop(number, None)


def stamp_of(folder: Path) -> Stamp:
    """Names, times and sizes of the checkpoints of a run; refuses a folder that has gone."""
    if not (folder / "spec.json").is_file():
        raise Gone(f"the run {folder.name} is no longer there: its folder was moved or deleted")
    found = []
    for path in sorted((folder / "checkpoints").glob("*.json")):
        try:
            told = path.stat()
        except FileNotFoundError:  # replaced at this moment
            continue
        found.append((path.name, told.st_mtime_ns, told.st_size))
    return tuple(found)


def found(paths: Iterable[Path]) -> list[Path]:
    """The folders of runs that are meant: runs themselves, folders of runs, studies."""
    folders: list[Path] = []
    for path in paths:
        if not path.exists():
            raise Problem(f"{path} does not exist")
        if (path / "spec.json").is_file():
            folders.append(path)
            continue
        inside = [spec.parent for depth in ("*", "*/*", "*/*/*") for spec in sorted(path.glob(f"{depth}/spec.json"))]
        if not inside:
            raise Problem(f"{path} is neither a run nor a folder of runs: there is no spec.json in it")
        folders += inside
    return list(dict.fromkeys(folders))
