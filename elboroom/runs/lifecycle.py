"""Runs from nothing, from a checkpoint, from a folder: `train`, `resume`, `load`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from elboroom.build.registry import checked
from elboroom.core.problem import Problem
from elboroom.core.stages import Trainable
from elboroom.data import registry
from elboroom.data.dataset import DataSet
from elboroom.data.labels import lasting
from elboroom.data.text import Reading
from elboroom.data.tokens import TOKENISER, kept
from elboroom.loggers import Logs, named
from elboroom.runs.ending import show
from elboroom.runs.run import Run, rebuilt
from elboroom.training import session
from elboroom.training.base import found_at, grounded, inherited, read_like
from elboroom.training.checkpoint import Checkpoints, newest, write_json
from elboroom.training.session import Bar, Own, Prepared, Silence
from elboroom.training.spec import Spec, specify, split


def train(
    method: str = "vae",
    data: Any = "dsprites",
    out: str | Path | None = None,
    *,
    size: int | None = None,
    labels: str | Path | None = None,
    label_kinds: str | Mapping[str, str] | None = None,
    encoder: nn.Module | None = None,
    decoder: nn.Module | None = None,
    warm: str | Path | None = None,
    base: str | Path | None = None,
    bar: Bar = Silence,
    logger: str = "",
    **options: Any,
) -> Run:
    """Trains a method on data and returns the run.

    data: a registered name, a folder of images, an .npy or .npz file, an array, a text file or folder, a list of
    sentences, or a DataSet. labels: a table of them, for a folder of images or an array. label_kinds: what labels are,
    as in {"age": "ordinal"}. Options are those of the method, of the model (latent, net, likelihood, ...), of training
    (steps, batch_size, lr, ...) and, for text, of reading (tokens, min_count, ...). logger: tensorboard, mlflow, wandb, or
    several with commas; a logger changes no number. base: a trained run that stands frozen under this one, for methods that
    need one.
    """
    named(logger)
    source = "array"
    if isinstance(data, str | Path):
        source = registry.lasting(data)
        data = type(data)(source)
    reading = checked(Reading, {name: options.pop(name) for name in Reading.model_fields if name in options})
    labels = lasting(labels)
    found = registry.load(data, size=size, reading=reading, labels=labels, label_kinds=label_kinds)
    ground = None
    if base is not None:
        ground, under = grounded(Path(base))
        options, found = inherited(under, options, reading), read_like(found, Path(base))
    spec = specify(method, found, source, size, options, reading, labels, ground)
    own = Own(None if isinstance(data, str | Path) else found, encoder, decoder)
    spec = spec.model_copy(update={"own": own.names, "warm": str(warm or "")})
    session.device_of(spec.fit)
    data = split(found, spec.fit, spec.card.looks)  # what is held out has no say in the vocabulary
    ready = session.prepare(spec, own, data, new=True)  # what is illegal is refused before anything is written
    if warm:
        Spec.read(Path(warm))
        newest(Path(warm))
    folder = _new_folder(out, spec)
    spec.write(folder)
    if data.tokeniser is not None:
        write_json(folder / TOKENISER, data.tokeniser.to_json())
    return _trained(ready, folder, bar, logger)


def resume(
    folder: str | Path,
    steps: int | None = None,
    *,
    data: Any = None,
    encoder: nn.Module | None = None,
    decoder: nn.Module | None = None,
    base: str | Path | None = None,
    bar: Bar = Silence,
    logger: str = "",
) -> Run:
    """Goes on with a run where its newest checkpoint is, `steps` beyond its end if said.

    base: where the run that stands under it is now, if it has moved; a run that is complete is told, and loaded.
    """
    named(logger)
    folder = Path(folder)
    spec = Spec.read(folder)
    checkpoint = Checkpoints(folder / "checkpoints").newest()
    own = Own(_handed(data, spec), encoder, decoder, Path(base) if base else None)
    if base is not None:
        session.build(spec, own)  # which refuses another run than that
        spec = spec.model_copy(update={"base": found_at(spec, own.base)})
        if steps is None and checkpoint is not None and checkpoint.step >= spec.until:
            spec.write(folder)
            return load(folder, data=data, encoder=encoder, decoder=decoder)
    spec = session.prolonged(spec, checkpoint.step if checkpoint else 0, steps)
    ready = session.prepare(spec, own)
    spec.write(folder)
    return _trained(ready, folder, bar, logger)


def _trained(ready: Prepared, folder: Path, bar: Bar, logger: str) -> Run:
    """Trains, and tells the loggers."""
    with Logs(logger, folder, ready.spec) as logs:
        session.launch(ready, folder, logs.beside(bar))
        fit = ready.spec.fit
        method = None if fit.average or fit.looks else ready.method  # averages and watches are of training alone
        run = _loaded(folder, Spec.read(folder), ready.own, method)
        run.data = ready.data
        show(run, logs)
    return run


def load(
    folder: str | Path,
    *,
    data: Any = None,
    encoder: nn.Module | None = None,
    decoder: nn.Module | None = None,
    base: str | Path | None = None,
) -> Run:
    """A run from its folder: its best checkpoint where it looked for one, else its newest; averaged if it averages.

    base: where the run that stands under it is now, if it has moved.
    """
    folder = Path(folder)
    spec = Spec.read(folder)
    return _loaded(folder, spec, Own(_handed(data, spec), encoder, decoder, Path(base) if base else None))


def _loaded(folder: Path, spec: Spec, own: Own, method: Trainable | None = None) -> Run:
    """The run of a folder, in a method that is built already or in a new one."""
    checkpoint = newest(folder, best=spec.fit.looks)
    words = kept(folder / TOKENISER) if spec.about.kind == "tokens" else None
    return rebuilt(folder, spec, checkpoint.state, checkpoint.step, own, words, method)


def _handed(data: Any, spec: Spec) -> DataSet | None:
    """Data of one's own, which is handed in again, read as then."""
    if data is None:
        return None
    if isinstance(data, DataSet):
        return data.with_kinds(spec.data.get("label_kinds", {}))
    return registry.load(data, reading=spec.reading, **spec.labelling)


def _new_folder(out: str | Path | None, spec: Spec) -> Path:
    """The folder of a new run; refuses one that holds something already."""
    if out is not None:
        folder = Path(out)
        if (folder / "spec.json").exists():
            raise Problem(f"{folder} already has a run; continue it with elbo resume {folder}, or choose another --out")
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise Problem(f"{folder} exists and is not an empty folder; choose another --out")
    else:
        stem = "-".join([spec.method, *spec.axes.values(), Path(spec.data["source"]).stem, str(spec.fit.seed)])
        tries = (Path("runs") / (stem if i == 1 else f"{stem}-{i}") for i in range(1, 10_000))
        folder = next(path for path in tries if not path.exists())
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Problem(f"cannot make the folder {folder}: {error.strerror}") from error
    return folder
