"""The driver of a study: hands its runs to an engine, keeps the index, and writes the tables."""

from __future__ import annotations

import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from elboroom.core.files import refuse_links, remade
from elboroom.core.problem import Problem
from elboroom.studies.analysis.table import COLUMNS, finished, write_tables
from elboroom.studies.engines.pool import Engine, Told
from elboroom.studies.schema import Measure
from elboroom.studies.space import Cell, digest
from elboroom.studies.store import disk
from elboroom.studies.store.index import HOLDER, LOCK, Entry, Index, driving
from elboroom.studies.store.remote import Store
from elboroom.studies.study import FILE, Study
from elboroom.training.session import Stopped


class Watching(Protocol):
    """What shows a study as it goes."""

    def __call__(self, cell: Cell, told: Told) -> None:
        """Something became of a run."""

    def close(self) -> None:
        """The study has ended, somehow."""


class Source(Protocol):
    """Where the cells of a study come from, and who wants to know what became of them."""

    def cells(self, entries: dict[str, Entry]) -> Iterator[Cell]:
        """The cells to do, one when one is asked for."""

    def done(self, cell: Cell, folder: Path) -> None:
        """A run is finished, in this folder."""

    def failed(self, cell: Cell) -> None:
        """A run has failed."""


@dataclass
class Grid:
    """All cells of a study that are not finished, in order; failed ones only if they are to be tried again."""

    study: Study
    folder: Path
    retry: bool = False

    def cells(self, entries: dict[str, Entry]) -> Iterator[Cell]:
        """Those that are left."""
        done = whole(self.folder, entries, self.study.measure)
        for cell in self.study.cells():
            failed = cell.name in entries and entries[cell.name].state == "failed"
            if cell.name not in done and (self.retry or not failed):
                yield cell

    def done(self, cell: Cell, folder: Path) -> None:
        """A grid asks for nothing back."""

    def failed(self, cell: Cell) -> None:
        """Nor here."""


def whole(folder: Path, entries: dict[str, Entry], measure: Measure) -> set[str]:
    """The runs that are finished and measured as the study asks now."""
    wanted = digest(measure.model_dump())
    return {name for name, entry in finished(folder, entries).items() if entry.told.get("measured") == wanted}


def drive(
    study: Study,
    folder: Path,
    engine: Engine,
    source: Source,
    watch: Callable[[set[str]], Watching],
    store: Store | None = None,
) -> Counter[str]:
    """Does what is left of a study; how many of its runs are done and how many failed."""
    refuse_links(folder)  # before anything is locked or written
    with driving(folder):
        agree(study, folder)
        study.write(folder)
        index = Index(folder)
        entries, wanted = index.read(), digest(study.measure.model_dump())
        show = watch(whole(folder, entries, study.measure))
        is_first = not entries
        try:
            with _interruptible():
                for cell, told in engine.run(source.cells(entries), folder, study.measure):
                    _note(index, cell, told, entries.get(cell.name), engine.name, wanted)
                    show(cell, told)
                    if told["state"] == "failed":
                        source.failed(cell)
                    elif told["state"] == "done":
                        source.done(cell, folder / "runs" / cell.name)
                        _gather(store, folder, cell.name)
                        is_first = is_first and _room(folder, cell, study)
        except BaseException as error:
            engine.close()
            with suppress(Problem):
                _tables(folder, None)
            if not isinstance(error, KeyboardInterrupt):
                raise
            done = _counts(folder, study)["done"]
            raise Stopped(f"stopped with {done:,} runs done; continue with: elbo study run {folder}") from None
        finally:
            engine.close()
            show.close()
        _tables(folder, store)
        return _counts(folder, study)


def _note(index: Index, cell: Cell, told: Told, before: Entry | None, engine: str, wanted: str) -> None:
    """Keeps what became of a run; a full disk ends the study, since the next run would meet it too."""
    if told["state"] == "full":
        raise disk.Full(f"{told['error']}; all finished runs are kept: free some space, then run the study again")
    if told["state"] == "started":
        index.append(cell, "started", engine=engine)
    elif told["state"] == "done":
        told = {key: value for key, value in told.items() if key != "state"}
        if before is not None:  # measured again: what it took before counts too
            spent = before.told.get("seconds", {})
            told["seconds"] = {key: round(s + spent.get(key, 0.0), 3) for key, s in told["seconds"].items()}
            told |= {key: before.told[key] for key in ("from",) if spent and key in before.told}
        index.append(cell, "done", engine=engine, measured=wanted, **told)
    elif told["state"] == "failed":
        index.append(cell, "failed", engine=engine, error=told["error"])


def agree(study: Study, folder: Path) -> None:
    """Refuses a folder whose runs this study does not ask for; a study may grow."""
    remade(folder / FILE)
    if not (folder / FILE).exists():
        if Index(folder).path.exists():
            return  # a study whose study.json was damaged; it is written anew
        if folder.exists() and {path.name for path in folder.iterdir()} - {LOCK, HOLDER}:
            raise Problem(f"{folder} exists and is not a study; choose another --out")
        return
    kept = Study.read(folder)
    if kept.search or study.search:
        mine, theirs = (_sought(s) for s in (study, kept))
        if mine != theirs:
            raise Problem(
                f"{folder} has another search, and only its number of trials may change; choose another --out"
            )
        return
    names = {cell.name for cell in study.cells()}
    gone = [cell for cell in kept.cells() if cell.name not in names]
    if gone:
        raise Problem(
            f"{folder} has another study: {len(gone):,} of its runs are not in this one, such as "
            f"{gone[0].name}; choose another --out"
        )


def _sought(study: Study) -> Any:
    """What a search is, but for how many trials it has; paths to data as they are kept."""
    tables = study.kept
    return tables | {"search": tables["search"] and {k: v for k, v in tables["search"].items() if k != "trials"}}


def _counts(folder: Path, study: Study) -> Counter[str]:
    entries = Index(folder).read()
    failed = sum(entry.state == "failed" for entry in entries.values())
    return Counter(done=len(whole(folder, entries, study.measure)), failed=failed)


def _gather(store: Store | None, folder: Path, name: str) -> None:
    if store is not None:
        try:
            store.send(folder / "runs" / name, name)
        except Exception as error:  # every file system has errors of its own; what is missing is sent at the end
            warnings.warn(f"{name} could not be copied to {store.url} ({error})", stacklevel=2)


def _tables(folder: Path, store: Store | None) -> None:
    """The tables of what is done, here and where runs are gathered."""
    try:
        write_tables(folder)
    except OSError as error:
        raise disk.refusal(folder, error) from error
    if store is not None:
        for name in finished(folder, Index(folder).read()):
            if not store.has(name):
                store.send(folder / "runs" / name, name)
        store.send_files(
            folder, [FILE, "index.jsonl", *(f"{t}.{kind}" for t in COLUMNS for kind in ("csv", "parquet"))]
        )


def _room(folder: Path, cell: Cell, study: Study) -> bool:
    """Says after the first run, when it is known what one takes, whether the disk has room for all."""
    needed, left = disk.taken(folder / "runs" / cell.name) * study.count, disk.free(folder)
    if needed > left:
        said = f"about {disk.bytes_shown(needed)}, but only {disk.bytes_shown(left)} are free"
        warnings.warn(f"{study.count:,} runs like the first need {said}", stacklevel=3)
    return False


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM and SIGINT, also where a shell has its background jobs ignore that one, end a study as Ctrl-C does: saved."""

    def leave(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    numbers = (signal.SIGTERM, signal.SIGINT)
    try:
        before = [signal.signal(number, leave) for number in numbers]
    except ValueError:  # not the main thread: whoever called has signals of his own
        yield
        return
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
