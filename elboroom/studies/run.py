"""A study from end to end: read, checked, done by an engine, its tables written."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

from elboroom.core.calls import asked
from elboroom.core.problem import Problem, unknown
from elboroom.loggers import named
from elboroom.studies.driver import Grid, drive
from elboroom.studies.engines.pool import Engine, Pool
from elboroom.studies.engines.ray import Cluster
from elboroom.studies.plan import MANY, same_data, validate
from elboroom.studies.progress import Board
from elboroom.studies.search import Trials
from elboroom.studies.store.index import Index
from elboroom.studies.store.remote import Store
from elboroom.studies.study import FILE, Study

ENGINES = ("pool", "ray")


def threads_of(study: Study) -> int:
    """The most threads that a run of it takes."""
    said = [
        choice["threads"] for block in study.blocks for axis in block.axes for choice in axis if "threads" in choice
    ]
    whole = [int(count) for count in said if isinstance(count, int) and count > 0]
    return max(whole, default=1)


def place(study: Study, source: str | Path, out: str | Path | None) -> Path:
    """The folder of a study: where it is already, or as said, or studies/NAME."""
    if out is not None:
        return Path(out)
    return Path(source) if (Path(source) / FILE).exists() else Path("studies") / study.name


@asked
def run_study(
    study: Study,
    folder: Path,
    engine: str | Engine = "pool",
    *,
    workers: int | None = None,
    address: str | None = None,
    gpus: float = 0.0,
    to: str | None = None,
    retry: bool = False,
    logger: str = "",
    yes: bool = False,
    quiet: bool = False,
) -> Counter[str]:
    """Does what is left of a study; how many of its runs are done and how many failed.

    engine: pool, ray, or one of your own. to: an fsspec address to which finished runs are copied. retry: failed runs
    are tried again. logger: of every run, tensorboard, mlflow or wandb, where the engine is ours. yes: for studies of more
    than 10,000 runs, which are refused without.
    """
    if isinstance(engine, str) and engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    if study.count > MANY and not yes:
        raise Problem(f"{study.where} has {study.count:,} runs; use --yes to run them all")
    named(logger)
    validate(study)
    if (folder / FILE).exists():
        same_data(folder)
    store = None if to is None else Store(to)
    if store is not None:
        store.check()
    source = Trials(study, folder, retry) if study.search else Grid(study, folder, retry)
    threads = threads_of(study)
    if engine == "pool":
        engine = Pool(workers, threads, logger)
    elif engine == "ray":
        engine = Cluster(address, workers, threads, gpus, to, study.search is not None, logger)
    assert not isinstance(engine, str)
    return drive(study, folder, engine, source, partial(_board, study, folder, retry, quiet), store)


class Silence:
    """Shows nothing."""

    def __call__(self, cell: object, told: object) -> None:
        """Something became of a run."""

    def close(self) -> None:
        """The study has ended."""


def _board(study: Study, folder: Path, retry: bool, quiet: bool, done: set[str]) -> Board | Silence:
    if quiet:
        return Silence()
    cells = [] if study.search else study.cells()
    failed = 0 if retry else sum(entry.state == "failed" for entry in Index(folder).read().values())
    return Board(study.count, [cell for cell in cells if cell.name not in done], len(done), failed)
