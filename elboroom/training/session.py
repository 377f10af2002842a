"""Training: a spec and a folder become a run, from the start or from the newest checkpoint."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import nn
from torch.multiprocessing.spawn import ProcessRaisedException

from elboroom.build.parts import Parts
from elboroom.core import distributed
from elboroom.core.freeze import thawed
from elboroom.core.memory import Measured, require
from elboroom.core.method import Watch
from elboroom.core.objective import Term
from elboroom.core.problem import Problem
from elboroom.core.stages import Trainable
from elboroom.data import kept, registry
from elboroom.data.dataset import DataSet
from elboroom.data.fields import said_kinds
from elboroom.families.recalled import Recalled
from elboroom.nets.fast.memory import flush_denormals
from elboroom.training.base import found_at, in_order, read_like, stand, words_of
from elboroom.training.batches import Batches, reseed
from elboroom.training.checkpoint import Checkpoints, Pending, check_state, write_json
from elboroom.training.fit import MANY, Fit
from elboroom.training.loop import Autocast, Loop, refuse_parts
from elboroom.training.recorder import Diverged, Recorder, cut_log
from elboroom.training.spec import Spec, split
from elboroom.training.warm import warm_start
from elboroom.training.watches import Halving, Plateau, held_out

FAST, MIXED = "32-fast", "bf16-mixed"  # of --precision


class Progress(Protocol):
    """What shows a run as it goes."""

    def __call__(self, step: int, line: dict[str, float]) -> None:
        """The steps done, and a line of the log where one was due."""

    def close(self) -> None:
        """The run has ended, somehow."""


class Silence:
    """Shows nothing."""

    def __init__(self, ready: Prepared) -> None: ...

    def __call__(self, step: int, line: dict[str, float]) -> None: ...

    def close(self) -> None: ...


Bar = Callable[["Prepared"], Progress]


class Stopped(Problem):
    """A run that was interrupted and saved."""

    code = 130


@dataclass(frozen=True)
class Own:
    """What a user handed in, and has to hand in again when the run is loaded."""

    data: DataSet | None = None
    encoder: nn.Module | None = None
    decoder: nn.Module | None = None
    base: Path | None = None  # where the run that stands under it is now
    folder: Path | None = None  # of the run, which keeps a copy of data that is small

    @property
    def names(self) -> list[str]:
        """Which of them are there."""
        return [name for name in ("data", "encoder", "decoder") if getattr(self, name) is not None]


def build(spec: Spec, own: Own, data: DataSet | None = None, new: bool = False) -> Trainable:
    """The method of a spec with its initial weights; of a new run, options that nothing of it uses are refused."""
    for name in ("encoder", "decoder"):
        if name in spec.own and getattr(own, name) is None:
            raise Problem(f"this run was trained with your own {name}; pass it again as {name}=...")
    flush_denormals()
    base = None
    if ground := found_at(spec, own.base, own.folder):
        at = Path(ground.folder)
        base = stand(ground, lambda under, place: build(under, Own(base=place, folder=at)))
    reseed(spec.fit.seed)
    parts = Parts(spec.about, spec.model, spec.fit.steps, data, own.encoder, own.decoder, base)
    if base is not None:  # what the model of the base has is of use here
        parts.used.update(n for n, value in base.spec.model if value == getattr(spec.model, n))
    with Measured("this model"):
        method = spec.card.build(parts, spec.options)
    if new:
        spec.model.refuse_unused({*parts.used, *spec.suited}, spec.about.kind, spec.fit.optimiser)
        parts.refuse_unread(spec.method)
    least = max(getattr(module, "least_batch", 1) for module in thawed(method))
    if spec.fit.batch_size < least:
        raise Problem(f"--batch-size {spec.fit.batch_size} is too small for batch statistics; use {least} or more")
    coupled = next((part.name for part in method.coupled if isinstance(part, Term)), None)
    if spec.fit.batch_size < 2 and coupled is not None:
        raise Problem(f"--batch-size 1: {coupled} needs several examples in a batch; use 2 or more")
    if spec.fit.accumulate > 1:
        refuse_parts(method, spec.fit, spec.about.kind)
    if spec.fit.warmup_steps >= spec.fit.steps:
        raise Problem(f"--warmup-steps {spec.fit.warmup_steps} is not less than the {spec.fit.steps} steps of the run")
    return method


@dataclass(frozen=True)
class Prepared:
    """A run that is ready to train: its data as split and its method with initial weights, each made once."""

    spec: Spec
    own: Own
    data: DataSet
    method: Trainable
    carried: str = ""  # what it has of the run that it was warm-started from


def prepare(spec: Spec, own: Own, data: DataSet | None = None, new: bool = False) -> Prepared:
    """Loads and splits the data, unless it is here already, and builds the method."""
    torch.set_num_threads(spec.fit.threads)
    data = data or data_of(spec, own)
    method = build(spec, own, data, new)
    trained = sum(parameter.numel() for parameter in method.parameters() if parameter.requires_grad)
    require(16 * trained, "to train this model")  # weights, gradients and two moments
    return Prepared(spec, own, data, method)


def data_of(spec: Spec, own: Own) -> DataSet:
    """The data of a spec, split as then; refuses data that has changed since."""
    source, size, data = spec.data["source"], spec.data["size"], own.data
    if data is None and "data" in spec.own:
        data = kept.read(own.folder, spec.reading) if own.folder is not None else None
        if data is None:
            names = ", ".join(spec.about.labels)
            beside = f"FILE.npz, which has it as x and, in this order, its labels as {names}" if names else "FILE.npy"
            raise Problem(
                f"this run was trained on your own array, of which it keeps no copy; pass it again with --data {beside}"
            )
        data = data.with_kinds(said_kinds(spec.data.get("label_kinds")))
    data = data or registry.load(source, size=size, reading=spec.reading, **spec.labelling)
    if ground := found_at(spec, own.base, own.folder):
        data = read_like(data, Path(ground.folder), spec.card.base_reads)
    if data.hash != spec.data["hash"]:
        raise Problem(f"the data at '{spec.data['source']}' is not what this run was trained on: its hash differs")
    if data.is_read and own.folder is not None and (words := words_of(own.folder, spec)):
        data = data.read_with(*words)  # which would be learnt again from the same sentences
    data = split(data, spec.fit, spec.card.looks)
    if data.split_hash != spec.data.get("rows", data.split_hash):
        raise Problem(f"the data at '{spec.data['source']}' has another split than when this run was trained")
    return data


def device_of(fit: Fit) -> str:
    """Where a run trains; a device that is not there is refused."""
    has_cuda = torch.cuda.is_available()
    if fit.device == "cuda" and not has_cuda:
        raise Problem("--device cuda: PyTorch sees no CUDA device here; use --device auto or cpu")
    return fit.device if fit.device != "auto" else "cuda" if has_cuda else "cpu"


def launch(ready: Prepared, folder: Path, bar: Bar = Silence) -> None:
    """Trains in this process, or through Fabric in one process a device; each of several prepares its own.

    These read the tokeniser that the folder has by now.
    """
    fit, kind = ready.spec.fit, device_of(ready.spec.fit)
    if fit.devices == 1 and fit.precision != MIXED:
        return _train(torch.device(kind), nullcontext, ready, folder, bar)
    from lightning_fabric import Fabric  # takes two seconds to import

    strategy = "auto" if fit.devices == 1 else "ddp_spawn"
    autocast: Any = MIXED if fit.precision == MIXED else "32-true"
    fabric = Fabric(accelerator=kind, devices=fit.devices, strategy=strategy, precision=autocast)
    os.environ["PYTHONSAFEPATH"] = "1"  # the processes import nothing from the current folder
    try:
        ready_or_not = ready if fit.devices == 1 else None
        fabric.launch(partial(_work, spec=ready.spec, folder=folder, own=ready.own, bar=bar, ready=ready_or_not))
    except ProcessRaisedException as error:
        problem = _problem_in(str(error))
        if problem is None:
            raise
        raise problem from None


def _problem_in(text: str) -> Problem | None:
    """The Problem that ended another process, which can hand over no more than the text of its error."""
    kinds = {f"{kind.__module__}.{kind.__name__}": kind for kind in (Problem, Diverged, Stopped)}
    said = [(name, sentence) for name, sentence in re.findall(r"^([\w.]+): (.*)$", text, re.MULTILINE) if name in kinds]
    return kinds[said[-1][0]](said[-1][1]) if said else None


def _work(fabric: Any, spec: Spec, folder: Path, own: Own, bar: Bar, ready: Prepared | None) -> None:
    """One process of a run that Fabric launched; all leave together, or the last would lose its peers."""
    _train(fabric.device, fabric.autocast, ready or prepare(spec, replace(own, folder=folder)), folder, bar)
    fabric.barrier()
    if dist.is_initialized():
        dist.destroy_process_group()


def _train(device: torch.device, autocast: Autocast, ready: Prepared, folder: Path, bar: Bar) -> None:
    """Trains on one device, from the newest checkpoint if there is one."""
    first = distributed.rank() == 0
    spec, data, method = ready.spec, ready.data, ready.method
    fit, halving = spec.fit, None
    if fit.patience:
        method.watch(Plateau(fit.patience, fit.look_every or max(1, fit.steps // 20)))
    elif fit.decay == "plateau":
        halving = Halving(
            method.final.model, fit.decay_patience or 2, fit.decay_times or 5, fit.decay_from, fit.look_every
        )
        method.watch(halving)
    method.to(device).train()
    method.prepare(fit.make_optimiser(), fit.clip, fit.average)
    checkpoints, start, pending = Checkpoints(folder / "checkpoints"), 0, Pending()
    if first:
        checkpoints.sweep()
    if (newest := checkpoints.newest()) is not None:
        start = newest.step
        pending = newest.pending
        check_state(method, newest.state)
        method.restore(newest.state)
    elif spec.warm:
        with nullcontext() if first else warnings.catch_warnings(action="ignore"):
            ready = replace(ready, carried=warm_start(method, Path(spec.warm), data.tokeniser))
    for module in (module for module in method.modules() if isinstance(module, Recalled)):
        module.fill(in_order(data, "train", spec.model.given_names, device), len(data))
    order = spec.fit.order(spec.about.kind, method.couples)
    batches = Batches(data, "train", spec.fit.batch_size, spec.fit.seed, spec.model.given_names, device, order)
    for watch in (module for module in method.modules() if isinstance(module, Watch)):
        watch.attach(partial(held_out, data, spec.model.given_names, device), batches.per_epoch)
    if first:
        cut_log(folder / "log.jsonl", start)
    recorder = Recorder(folder / "log.jsonl" if first else None)
    recorder.restore(pending)
    show = bar(ready) if first else Silence(ready)

    def rate(step: int) -> float:
        start, end = method.stage_bounds(step, fit.steps)
        return fit.rate(step - start, end - start) * (halving.share if halving else 1.0)

    loop = Loop(method, batches, fit.seed, autocast, rate if fit.moves_rate else None, fit.accumulate)
    with interruptible() as stop, closing(show), products(fit):
        _run(loop, spec, start, recorder, checkpoints if first else None, folder, show, stop)


def _run(
    loop: Loop,
    spec: Spec,
    start: int,
    recorder: Recorder,
    checkpoints: Checkpoints | None,
    folder: Path,
    show: Progress,
    stop: Callable[[], bool],
) -> None:
    """Steps until the end, a watch, an interruption or a loss that is no number."""
    began, step = time.perf_counter(), start
    method, fit = loop.method, spec.fit

    def save(name: str | None = None) -> None:
        pending = recorder.pending()  # looks for NaN before anything is written
        if not all(torch.isfinite(parameter).all() for parameter in method.parameters()):
            raise Diverged(f"a weight is NaN or infinite after step {step:,}; try a smaller --lr, or --clip 1")
        if checkpoints is not None:
            checkpoints.save(step, method.state(), name, pending)

    try:
        while step < spec.until:
            logged = loop.step(step)
            step += 1
            looking = [watch for watch in method.watches if step % watch.every == 0]
            verdicts = [watch.look(method.at(step - 1), step) for watch in looking]
            recorder.add(step - 1, logged | {k: v for watch in looking for k, v in watch.told().items()})
            asked, ended, best = stop(), method.ended(verdicts, step), any(watch.improved for watch in looking)
            due = step % fit.checkpoint_every == 0 or step == spec.until or ended
            if due or step % fit.log_every == 0 or best:
                show(step, recorder.flush())
            else:
                show(step, {})
            if best:
                save("best")
            if ended and step < spec.until and checkpoints is not None:  # first, so that a crash between loses nothing
                spec.model_copy(update={"until": step}).write(folder)
            if due or asked:  # a stop adds no line to the log
                save()
            if ended:
                break
            if asked and step < spec.until:
                raise Stopped(f"stopped at step {step:,} and saved; continue with: elbo resume {folder}")
    except Diverged as problem:
        kept = checkpoints.newest() if checkpoints is not None else None
        where = f"; the last good checkpoint is step {kept.step:,}" if kept else "; there was no checkpoint yet"
        raise Diverged(f"{problem}{where}") from None
    finally:
        if checkpoints is not None and step > start:
            seconds = time.perf_counter() - began
            rate = (step - start) * fit.batch_size / seconds
            write_json(folder / "timing.json", {"from": start, "to": step, "seconds": seconds, "examples_per_s": rate})


@contextmanager
def products(fit: Fit) -> Iterator[None]:
    """Inside, matrix products are as `--precision` has them; where a processor has none that are faster, they are exact."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium" if fit.precision == FAST else before)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Turns the first Ctrl-C or SIGTERM into a question that the loop asks between two steps; the second is final."""
    asked: list[int] = []

    def ask(number: int, frame: Any) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def prolonged(spec: Spec, done: int, more: int | None) -> Spec:
    """The spec of a run that is to go on, `more` steps beyond its end if said."""
    if more is not None and not 1 <= more <= MANY:
        raise Problem(f"--steps {more}: must be 1 to {MANY:,}")
    if more is None and done >= spec.until:
        raise Problem(f"the run is complete at step {done:,}; to train longer, use --steps MORE")
    until = spec.until + (more or 0)
    if more is not None and until > spec.fit.steps and spec.fit.rate(spec.fit.steps) == 0:
        raise Problem(
            f"the learning rate of this run is 0 from step {spec.fit.steps:,} on, where more steps change nothing: "
            "train anew with more --steps, or with --lr-end above 0"
        )
    return spec.model_copy(update={"until": until})
