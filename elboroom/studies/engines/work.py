"""The work on one cell: trained or resumed, measured, tidied. Every engine does this and nothing else."""

from __future__ import annotations

import io
import shutil
import socket
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from elboroom.core.files import read_json, refuse_link, remade
from elboroom.core.problem import Problem
from elboroom.evaluate.codes import CodeTable, code_table
from elboroom.evaluate.disentanglement import evaluate
from elboroom.evaluate.disentanglement.registry import find
from elboroom.evaluate.downstream import downstream
from elboroom.evaluate.kept import check_numbers
from elboroom.evaluate.result import Result
from elboroom.evaluate.robustness import FLIPS, flips
from elboroom.evaluate.subject import Subject
from elboroom.loggers import Logs
from elboroom.runs import lifecycle
from elboroom.runs.ending import finite
from elboroom.runs.run import Run
from elboroom.studies.schema import Measure
from elboroom.studies.space import Cell
from elboroom.studies.store.disk import is_full
from elboroom.studies.store.index import holding
from elboroom.training.checkpoint import Checkpoint, Checkpoints, write, write_json
from elboroom.training.session import Bar, Silence, Stopped
from elboroom.training.spec import Spec

TRAINED, MEASURED, CODES, ERROR = "trained.json", "measured.json", "agreement.npz", "error.txt"
MORE = {"metrics", "labels", "flips", "codes"}  # of Measure: what can be added to numbers that are there


def attempt(cell: Cell, root: Path, measure: Measure, bar: Bar = Silence, logger: str = "") -> dict[str, Any]:
    """What became of a cell: done with its timing, failed with its error, stopped, or met a full disk."""
    folder = root / "runs" / cell.name
    try:
        return {"state": "done", **perform(cell, root, measure, bar, logger)}
    except Stopped:
        return {"state": "stopped"}
    except Exception as error:
        said = str(error) if isinstance(error, Problem) else f"{type(error).__name__}: {error}"
        if is_full(error):
            return {"state": "full", "error": said}
        with suppress(OSError, Problem):
            refuse_link(folder)
            folder.mkdir(parents=True, exist_ok=True)
            write(folder / ERROR, traceback.format_exc().encode(errors="replace"))
        return {"state": "failed", "error": " ".join(said.split())}


def threads_of(cell: Cell) -> int:
    """The threads of a run: one, unless it says how many."""
    return int(cell.options.get("threads") or 1)


def perform(cell: Cell, root: Path, measure: Measure, bar: Bar = Silence, logger: str = "") -> dict[str, Any]:
    """Trains and measures a cell in the folder of its study, from wherever an earlier attempt left it; its timing."""
    folder, threads = root / "runs" / cell.name, threads_of(cell)
    with holding(root / "locks" / cell.name), threadpool_limits(threads):
        torch.set_num_threads(threads)
        began = time.perf_counter()
        start, run = trained(cell, folder, bar, logger)
        middle = time.perf_counter()
        measured(run, measure)
        if logger:
            with Logs(logger, folder, run.spec) as logs:
                logs.numbers(finite(_values(run)), run.step)
        tidy(folder)
        (folder / ERROR).unlink(missing_ok=True)
    seconds = {"train": round(middle - began, 3), "measure": round(time.perf_counter() - middle, 3)}
    return {"seconds": seconds, "from": start, "to": run.step, "host": socket.gethostname()}


def trained(cell: Cell, folder: Path, bar: Bar = Silence, logger: str = "") -> tuple[int, Run]:
    """The trained run, and the step from which it was trained this time."""
    refuse_link(folder)
    newest = _newest(folder)
    if newest is None:
        shutil.rmtree(folder, ignore_errors=True)  # at most a spec: nothing was trained
        own: dict[str, Any] = {"size": cell.size, "seed": cell.seed, "bar": bar, "logger": logger}
        run = lifecycle.train(cell.method, cell.data, folder, **own, **cell.options)
    elif (folder / TRAINED).exists() or newest.step >= Spec.read(folder).until:
        run = lifecycle.load(folder)
    else:
        run = lifecycle.resume(folder, bar=bar, logger=logger)
    write_json(folder / TRAINED, {"step": run.step})
    return newest.step if newest else 0, run


def _newest(folder: Path) -> Checkpoint | None:
    try:
        return Checkpoints(folder / "checkpoints").newest() if (folder / "spec.json").exists() else None
    except Problem:  # every checkpoint is damaged, so the run starts anew
        return None


def measured(run: Run, measure: Measure) -> None:
    """Adds to metrics.json what is asked for and not there yet; numbers of another protocol are measured again."""
    path, protocol = run.folder / MEASURED, measure.model_dump(exclude=MORE)
    before = remade(path)
    if before.get("protocol") != protocol or not readable(run.folder):
        (run.folder / "metrics.json").unlink(missing_ok=True)
    elif before.get("labels") != measure.labels:  # efficiencies are ratios to the largest size
        stale = ("downstream-", "efficiency-")
        run.record({}, without=stale)
    if before.get("codes") != measure.codes:
        (run.folder / CODES).unlink(missing_ok=True)
    write_json(path, {"protocol": protocol, "labels": measure.labels, "codes": measure.codes})
    if "distortion" not in run.measured:
        run.evaluate(samples=measure.samples, most=measure.most)
    table = partial(code_table, run, allow_smaller=measure.smaller)
    for name in measure.metrics:
        _add(run, [name], lambda name=name: {name: _scored(table(), name, measure)})  # type: ignore[misc]
    sizes = measure.labels
    _add(run, [f"downstream-{size}" for size in sizes], lambda: _curve(table(), measure))
    _add(run, [f"drift-{share:g}" for share in FLIPS] if measure.flips else [], lambda: flips(Subject(run)))
    if measure.codes and not (run.folder / CODES).exists():
        _keep_codes(run, measure.codes)


def _values(run: Run) -> dict[str, float | None]:
    """Every number that was measured, as loggers name it."""
    return {f"measured/{name}": number["value"] for name, number in run.measured.items() if name != "run"}


def readable(folder: Path) -> bool:
    """Whether the numbers of a run are there and whole."""
    try:
        numbers_of(folder)
        return True
    except Problem:
        return False


def numbers_of(folder: Path) -> dict[str, Any]:
    """The numbers of a finished run, checked."""
    kept = read_json(folder / "metrics.json")
    check_numbers(kept)
    return kept


def _add(run: Run, names: list[str], find: Callable[[], Mapping[str, Result]]) -> None:
    kept = run.measured
    if any(name not in kept for name in names):
        run.record(find())


def _scored(table: CodeTable, name: str, measure: Measure) -> Result:
    """A metric of a run, or the reason why this run has none."""
    said = measure.mode if isinstance(measure.mode, str) else measure.mode.get(name, "dlib")
    mode = find(name).nearest_mode(said)
    try:
        return evaluate(table, name, mode, representation=measure.representation)[name]
    except Problem as problem:
        return Result(None, mode, reason=str(problem), metric=name)


def _curve(table: CodeTable, measure: Measure) -> dict[str, Result]:
    try:
        return downstream(table.source, mode=measure.predictor, sizes=measure.labels)
    except Problem as problem:
        return {
            (name := f"downstream-{size}"): Result(None, measure.predictor, reason=str(problem), metric=name)
            for size in measure.labels
        }


def _keep_codes(run: Run, n: int) -> None:
    """The codes of the same n training examples in every run, beside the rate of each dimension: what UDR is made from."""
    split = run.split("train", n)
    try:
        rates = run.kl_per_dim("train")
    except Problem:  # a model without rates per dimension has no UDR
        return
    content = io.BytesIO()
    np.savez(content, codes=split.codes[0].numpy(), rates=np.array(rates))
    write(run.folder / CODES, content.getvalue())


def tidy(folder: Path) -> None:
    """Drops what can be made again: the code table of all examples, and the checkpoint before the last."""
    shutil.rmtree(folder / "codes", ignore_errors=True)
    for old in sorted((folder / "checkpoints").glob("step-*.json"))[:-1]:
        old.unlink(missing_ok=True)
        old.with_suffix(".safetensors").unlink(missing_ok=True)
