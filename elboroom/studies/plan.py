"""The plan of a study: its runs checked before the first one, their number, cost and disk."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from elboroom.build.registry import checked
from elboroom.core.problem import Problem
from elboroom.data import registry
from elboroom.data.dataset import DataSet
from elboroom.data.photos import Photos
from elboroom.data.text import Reading
from elboroom.evaluate.disentanglement.registry import find as metric
from elboroom.evaluate.registry import check_mode
from elboroom.studies.analysis.table import finished
from elboroom.studies.engines.work import measured, threads_of, tidy, trained
from elboroom.studies.schema import Measure
from elboroom.studies.space import Cell
from elboroom.studies.store import disk
from elboroom.studies.store.index import Index
from elboroom.studies.study import Study, settings
from elboroom.training import session
from elboroom.training.base import grounded, inherited, read_like
from elboroom.training.recipe import find
from elboroom.training.session import Own
from elboroom.training.spec import Spec, read_as, specify

OF_DATA = ("labels", "label_kinds", "base")  # options of a cell that are of its data, beside those of reading
MANY = 10_000  # runs above which a study asks first
PROBES, STEPS, SKIP = 3, 60, 10  # short runs, their steps, and those of the start that are not timed


def validate(study: Study) -> None:
    """Checks every setting before the first run: raises the Problem that a run would raise."""
    for number, block in enumerate(study.blocks):
        if block.ranges and not block.draws:
            name = next(iter(block.ranges))
            raise Problem(
                f"{study.where}: [[runs]] {number + 1} has a range of {name}; set draws = N, or use --search optuna"
            )
        if not block.count and not study.search:
            raise Problem(f"{study.where}: [[runs]] {number + 1} has no run; a list in it is empty")
    if not study.count:
        raise Problem(f"{study.where} has no run; a list in it is empty")
    if isinstance(study.measure.mode, str):
        check_mode(study.measure.mode, [metric(name) for name in study.measure.metrics])
    for cell in settings(study):
        try:
            session.build(specified(cell), Own(), new=True)
        except Problem as problem:
            raise Problem(f"{study.where}: {problem}") from None


def same_data(folder: Path) -> None:
    """Refuses a study whose data are not those any more that its finished runs have seen."""
    seen: dict[tuple[Any, ...], str] = {}
    for name, entry in finished(folder, Index(folder).read()).items():
        cell = entry.cell
        where = (
            cell.data,
            cell.size,
            *(cell.options.get(name) for name in (*OF_DATA, *Reading.model_fields, *Photos.model_fields)),
        )
        if not (folder / "runs" / name / "spec.json").exists():
            continue
        kept = Spec.read(folder / "runs" / name).data["hash"]
        if where not in seen:
            seen[where] = specified(cell).data["hash"]
        if kept != seen[where]:
            raise Problem(f"{where[0]} has changed since {name} was trained on it; start a new study")


def specified(cell: Cell) -> Spec:
    """The spec that a run of a cell will have."""
    options = dict(cell.options)
    said = {name: options.pop(name) for name in Reading.model_fields if name in options}
    photos = checked(Photos, {name: options.pop(name) for name in Photos.model_fields if name in options})
    recipe = find(options.pop("recipe")) if "recipe" in options else None
    reading, (labels, kinds, base) = read_as(said, cell.method, recipe), (options.pop(name, None) for name in OF_DATA)
    told = reading.model_dump(exclude_defaults=True)
    changed = tuple(_changed(str(path)) for path in (cell.data, labels) if path)
    data = _data(cell.data, cell.size, tuple(sorted(told.items())), labels, kinds, changed, photos)
    ground, options = None, options | {"seed": cell.seed}
    if base:
        ground, under = grounded(Path(base))
        options, data = inherited(under, options, reading), read_like(data, Path(base))
    return specify(
        cell.method, data, cell.data, cell.size, options, reading, labels, ground, recipe=recipe, photos=photos
    )


def _changed(source: str) -> int:
    """When a file was last written; 0 of anything else."""
    return Path(source).stat().st_mtime_ns if Path(source).is_file() else 0


@lru_cache(4)
def _data(
    source: str,
    size: int | None,
    said: tuple[tuple[str, Any], ...],
    labels: str | None,
    kinds: str | None,
    changed: tuple[int, ...],
    photos: Photos,
) -> DataSet:
    return registry.load(source, size, None, checked(Reading, dict(said)), labels, kinds, photos=photos)


@dataclass(frozen=True)
class Probe:
    """A short run: what a step costs, what measuring costs, and what is left on the disk."""

    method: str
    step: float  # seconds
    measure: float  # seconds
    line: float  # bytes of a line of the log
    rest: int  # bytes beside log and weights


@dataclass(frozen=True)
class Estimate:
    """What a study will take."""

    runs: int
    seconds: float  # of one worker
    workers: int
    disk: float  # bytes
    free: int
    probes: tuple[Probe, ...]

    @property
    def hours(self) -> float:
        """On all workers."""
        return self.seconds / self.workers / 3600


class Timer:
    """A progress bar that takes the time of the steps, the first few left aside."""

    def __init__(self) -> None:
        self.times: dict[int, float] = {}

    def __call__(self, step: int, line: dict[str, float]) -> None:
        """A step is done."""
        self.times[step] = time.perf_counter()

    def close(self) -> None:
        """The run has ended."""

    @property
    def per_step(self) -> float:
        """Seconds of a step."""
        steps = sorted(self.times)
        first, last = steps[min(SKIP, len(steps) - 2)], steps[-1]
        return (self.times[last] - self.times[first]) / (last - first)


def probe(cell: Cell, measure: Measure | None, folder: Path) -> Probe:
    """A run of a few steps, measured if asked for."""
    timer = Timer()
    few = {"steps": STEPS, "epochs": 0, "log_every": SKIP, "checkpoint_every": STEPS}
    torch.set_num_threads(threads_of(cell))
    _, run = trained(replace(cell, options=cell.options | few), folder, lambda spec: timer)
    begun = time.perf_counter()
    if measure is not None:
        measured(run, measure)
    seconds = time.perf_counter() - begun
    tidy(folder)
    log = (folder / "log.jsonl").stat().st_size
    weights = disk.taken(folder / "checkpoints")
    return Probe(cell.method, timer.per_step, seconds, log * SKIP / STEPS, disk.taken(folder) - log - weights)


def probed(cells: Sequence[Cell]) -> list[Cell]:
    """Three cells to try: of different methods where there are, from all over the study."""
    methods = list({cell.method: cell for cell in cells}.values())
    pool = methods if len(methods) >= PROBES else [*methods, *(c for c in cells if c not in methods)]
    count = min(PROBES, len(pool))
    return [pool[round(i * (len(pool) - 1) / max(1, count - 1))] for i in range(count)]


def estimate(study: Study, out: Path, workers: int) -> Estimate:
    """Cost and disk of a study, from three short runs; the first of them is measured as the study asks."""
    cells = study.cells()
    with tempfile.TemporaryDirectory() as folder:
        chosen = probed(cells)
        probes = [
            probe(cell, study.measure if number == 0 else None, Path(folder) / str(number))
            for number, cell in enumerate(chosen)
        ]
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.setting, []).append(cell)
    seconds, taken = 0.0, 0.0
    for group in groups.values():
        spec = specified(group[0])
        near = [p for p in probes if p.method == spec.method] or probes
        step, line = (sum(getattr(p, part) for p in near) / len(near) for part in ("step", "line"))
        weights = sum(p.numel() for p in session.build(spec, Own()).parameters())
        seconds += len(group) * (spec.until * step + probes[0].measure)
        taken += len(group) * (
            12 * weights + spec.until / spec.fit.log_every * line + probes[0].rest
        )  # and Adam's moments
    scale = study.count / max(1, len(cells))  # a search has as many trials as it is given
    return Estimate(study.count, seconds * scale, workers, taken * scale, disk.free(out), tuple(probes))
