"""Runs from nothing, from a checkpoint, from a folder: `train`, `resume`, `load`."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from torch import nn

from elboroom.build.registry import card, checked
from elboroom.core.calls import asked
from elboroom.core.files import PART, refuse_links
from elboroom.core.locks import HOLDER, LOCK, is_free, one_process
from elboroom.core.problem import Problem
from elboroom.core.stages import Trainable
from elboroom.data import registry
from elboroom.data.dataset import DataSet
from elboroom.data.kept import FILE as KEPT
from elboroom.data.kept import keep
from elboroom.data.labels import lasting
from elboroom.data.photos import Photos
from elboroom.data.text import Reading
from elboroom.data.tokens import TOKENISER, Tokeniser, kept
from elboroom.loggers import Logs, named
from elboroom.runs.ending import show
from elboroom.runs.run import Run, rebuilt
from elboroom.training import session
from elboroom.training.base import carried, found_at, grounded, inherited, own_files, own_words, read_like
from elboroom.training.checkpoint import Checkpoints, newest, write_json
from elboroom.training.recipe import find
from elboroom.training.session import Bar, Own, Prepared, Silence
from elboroom.training.spec import Spec, read_as, specify, split


@asked
def train(
    method: str | None = None,
    data: Any = None,
    out: str | Path | None = None,
    *,
    size: int | None = None,
    labels: Any = None,
    label_kinds: str | Mapping[str, str] | None = None,
    levels: int | None = None,
    encoder: nn.Module | None = None,
    decoder: nn.Module | None = None,
    warm: str | Path | None = None,
    base: str | Path | None = None,
    recipe: str | Path | None = None,
    overwrite: bool = False,
    bar: Bar = Silence,
    logger: str = "",
    **options: Any,
) -> Run:
    """Trains a method on data and returns the run.

    data: a registered name, a folder of images, an .npy or .npz file, an array, a data frame, a text file or folder, a list
    of sentences, a DataSet, or `(examples, labels)`. labels: a table of them, for a folder of images or an array, or the
    labels themselves, a column or several by name. overwrite: whether a run that is at `out` is taken away. label_kinds: what labels are,
    as in {"age": "ordinal"}. levels: how many values the pixels of an array may have, where they do not tell. Options are
    those of the method, of the model (latent, net, likelihood, ...), of training (steps, batch_size, lr, ...) and, for text,
    of reading (tokens, min_count, ...). logger: tensorboard, mlflow, wandb, or
    several with commas; a logger changes no number. base: a trained run that stands frozen under this one, for methods that
    need one. recipe: the name of a published setting (`elboroom.recipes()`) or a .toml file of your own, which stands in for
    what is not said here, the method and the data too; without one these are vae and dsprites.
    """
    named(logger)
    setting = find(recipe) if recipe else None
    method = method or (setting.usual_method() if setting else "vae")
    if data is None:
        data = setting.usual_data() if setting else "dsprites"
    source = "array"
    if isinstance(data, str | Path):
        source = registry.lasting(data)
        data = type(data)(source)
    reading = read_as({name: options.pop(name) for name in Reading.model_fields if name in options}, method, setting)
    photos = checked(Photos, {name: options.pop(name) for name in Photos.model_fields if name in options})
    handed = labels is not None and not isinstance(labels, str | Path)
    labels = labels if handed else lasting(labels)
    found = registry.load(data, size, None, reading, labels, label_kinds, levels, photos)
    ground = None
    if base is not None:
        ground, under = grounded(Path(base))
        reads = card(method).base_reads
        options, found = inherited(under, options, reading, reads), read_like(found, Path(base), reads)
    own = Own(found if handed or not isinstance(data, str | Path) else None, encoder, decoder)
    labels = None if handed else labels
    spec = specify(method, found, source, size, options, reading, labels, ground, levels, own.names, setting, photos)
    spec = spec.model_copy(update={"warm": str(Path(warm).resolve()) if warm else ""})
    session.device_of(spec.fit)
    data = split(found, spec.fit, spec.card.looks)  # what is held out has no say in the vocabulary
    with setting.named(options) if setting else nullcontext():
        ready = session.prepare(spec, own, data, new=True)  # what is illegal is refused before anything is written
    if warm:
        Spec.read(Path(warm))
        newest(Path(warm))
    if overwrite and out is not None:
        _take_away(Path(out))
    folder = _new_folder(out, spec)
    with one_process(folder):
        _refuse_used(folder)  # nobody was quicker
        _clear(folder)
        for file in _tokenisers(ready):
            (folder / file).unlink(missing_ok=True)  # what a crash left may be of other data
        _keep_tokenisers(ready, folder)
        if own.data is not None:
            keep(own.data, folder)
        spec.write(folder)  # last: it is the mark that a run exists
        return _trained(ready, folder, bar, logger)


@asked
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
    with one_process(folder):
        return _resumed(folder, spec, steps, data, encoder, decoder, base, bar, logger)


def _resumed(
    folder: Path,
    spec: Spec,
    steps: int | None,
    data: Any,
    encoder: nn.Module | None,
    decoder: nn.Module | None,
    base: str | Path | None,
    bar: Bar,
    logger: str,
) -> Run:
    checkpoint = Checkpoints(folder / "checkpoints").newest()
    own = Own(_handed(data, spec), encoder, decoder, Path(base) if base else carried(folder, spec), folder)
    if base is not None:
        session.build(spec, own)  # which refuses another run than that
        spec = spec.model_copy(update={"base": found_at(spec, own.base, folder)})
        if steps is None and checkpoint is not None and checkpoint.step >= spec.until:
            spec.write(folder)
            return load(folder, data=data, encoder=encoder, decoder=decoder)
    spec = session.prolonged(spec, checkpoint.step if checkpoint else 0, steps)
    ready = session.prepare(spec, own)
    _keep_tokenisers(ready, folder)
    spec.write(folder)
    return _trained(ready, folder, bar, logger)


def _tokenisers(ready: Prepared) -> dict[str, Tokeniser]:
    """The tokenisers of a run by their files: that of x, and those of sequences with a vocabulary of their own."""
    beside = {file: ready.data.beside[name].tokeniser for name, file in own_files(ready.data.about).items()}
    return {file: words for file, words in ({TOKENISER: ready.data.tokeniser} | beside).items() if words is not None}


def _keep_tokenisers(ready: Prepared, folder: Path) -> None:
    """Writes the tokenisers of a run, unless they are there: the data, which is that of the spec, gives the same again."""
    for file, words in _tokenisers(ready).items():
        if not (folder / file).exists():
            write_json(folder / file, words.to_json())


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


@asked
def load(
    folder: str | Path,
    *,
    data: Any = None,
    encoder: nn.Module | None = None,
    decoder: nn.Module | None = None,
    base: str | Path | None = None,
) -> Run:
    """A run from its folder: its best checkpoint where it looked for one, else its newest; averaged if it averages.

    An address is a run elsewhere, of which a copy is kept: `hf://user/name`, `hf://user/name@revision`, `s3://...`.
    base: where the run that stands under it is now, if it has moved.
    """
    folder = _here(folder)
    spec = Spec.read(folder)
    under = Path(base) if base else carried(folder, spec)
    return _loaded(folder, spec, Own(_handed(data, spec), encoder, decoder, under))


def _here(folder: str | Path) -> Path:
    """The folder, or where the copy of a run is that is said by its address."""
    if isinstance(folder, str) and "://" in folder:
        from elboroom.share.sharing import fetched

        return fetched(folder)
    return Path(folder)


def _loaded(folder: Path, spec: Spec, own: Own, method: Trainable | None = None) -> Run:
    """The run of a folder, in a method that is built already or in a new one."""
    checkpoint = newest(folder, best=spec.fit.looks)
    words = kept(folder / TOKENISER) if spec.about.kind == "tokens" else None
    return rebuilt(folder, spec, checkpoint.state, checkpoint.step, own, words, method, own_words(folder, spec))


def _handed(data: Any, spec: Spec) -> DataSet | None:
    """Data of one's own, which is handed in again, read as then."""
    if data is None:
        return None
    if isinstance(data, DataSet):
        return data.with_kinds(spec.data.get("label_kinds", {}))
    size = spec.data["size"] if isinstance(data, str | Path) else None
    return registry.load(data, size, reading=spec.reading, **spec.labelling)


def _new_folder(out: str | Path | None, spec: Spec) -> Path:
    """The folder of a new run; refuses one that holds something already."""
    if out is not None:
        folder = Path(out)
        _refuse_used(folder)
        if folder.exists() and not _unused(folder):
            raise Problem(f"{folder} exists and is not an empty folder; choose another --out")
    else:
        stem = "-".join([spec.method, *spec.axes.values(), Path(spec.data["source"]).stem, str(spec.fit.seed)])
        tries = (Path("runs") / (stem if i == 1 else f"{stem}-{i}") for i in range(1, 10_000))
        folder = next(path for path in tries if not path.exists() or _unused(path))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Problem(f"cannot make the folder {folder}: {error.strerror}") from error
    return folder


def _take_away(folder: Path) -> None:
    """Removes a run, and nothing that is no run."""
    if folder.exists() and (folder / "spec.json").exists():
        Spec.read(folder)  # which refuses links
        with one_process(folder):
            for path in folder.iterdir():
                if path.name not in (LOCK, HOLDER):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _refuse_used(folder: Path) -> None:
    if (folder / "spec.json").exists():
        refuse_links(folder)
    if (folder / "spec.json").exists() and not _is_husk(folder):
        raise Problem(
            f"{folder} already has a run; continue it with elbo resume {folder}, or choose another --out, or --overwrite"
        )


def _is_husk(folder: Path) -> bool:
    """Whether a folder is of a run that ended before its first checkpoint: nothing of it could be resumed or loaded."""
    names = {path.name for path in folder.iterdir()}
    return (
        "spec.json" in names
        and not {"metrics.json", "figures", "report.html"} & names
        and all(PART.fullmatch(path.name) for path in (folder / "checkpoints").glob("*"))
        and is_free(folder)
    )


def _clear(folder: Path) -> None:
    """Takes away what a run left that ended before its first checkpoint; the spec last, which marks that it exists."""
    for name in ("log.jsonl", "timing.json", "loggers.json", KEPT, "spec.json"):
        (folder / name).unlink(missing_ok=True)


def _unused(folder: Path) -> bool:
    """Whether a folder is empty, or holds what is left of a first write that a crash cut off: all but the spec."""
    if not folder.is_dir():
        return False
    refuse_links(folder)
    names = {path.name for path in folder.iterdir() if not PART.fullmatch(path.name)}
    words = {name for name in names if name.startswith("tokeniser")}
    return not names or (LOCK in names and names <= {LOCK, HOLDER, KEPT, *words}) or _is_husk(folder)
