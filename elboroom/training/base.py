"""The base of a run: a trained run that stands frozen under it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elboroom.build.base import Base
from elboroom.build.parts import Parts
from elboroom.core.batch import Batch
from elboroom.core.freeze import frozen
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.core.stages import Trainable, model_state
from elboroom.data.dataset import About, DataSet
from elboroom.data.sequences import CONTEXT, TARGET
from elboroom.data.text import Reading
from elboroom.data.tokens import TOKENISER, UNK, Tokeniser, kept
from elboroom.families.gaussian import NoLatent
from elboroom.families.recalled import Recalled, X
from elboroom.training.batches import batch_of
from elboroom.training.checkpoint import Checkpoint, check_learnt, newest
from elboroom.training.spec import Ground, Spec

AT_ONCE = 256  # examples that are encoded together
FEW, HALF = 1000, 0.5  # examples that a base is tried on, and the share of their words that it should know
CARRIED = "base"  # the folder in a run that was shared in which the run lies that it stands on
LEARNT = ("tokens", "min_count", "vocabulary")  # of how text is read: what the base has decided


def weights(spec: Spec, method: Trainable, state: dict[str, Tensor], folder: Path) -> None:
    """Gives a method the weights of a checkpoint, all but what its optimisers remember; refuses any that are not its own."""
    try:
        method.load_state_dict(check_learnt(method, state))
    except Problem as problem:
        made = spec.versions.get("elboroom", "?")
        raise Problem(
            f"the weights in {folder} are not those of its nets: {problem}; elboroom {made} made it"
        ) from None


def latent_of(spec: Spec, model: LatentModel) -> int:
    """The dimensions of z: those that its nets were sized for, or none."""
    if isinstance(model.posterior, NoLatent):
        return 0
    return sum(model.sizes.values()) or Parts(spec.about, spec.model).latent


def grounded(folder: Path) -> tuple[Ground, Spec]:
    """What a new run keeps of the run that it is to stand on, and the spec of that."""
    spec = Spec.read(folder)
    checkpoint = newest(folder, best=spec.fit.looks)
    known = Ground(folder=str(folder.resolve()), step=checkpoint.step, hash=_hash(checkpoint, _words(folder, spec)))
    return known, spec


def carried(folder: Path, spec: Spec) -> Path | None:
    """The base that lies inside a run, as of one that was shared; None where it has to be elsewhere."""
    inside = folder / CARRIED
    return inside if spec.base is not None and (inside / "spec.json").is_file() else None


def found_at(spec: Spec, place: Path | None, run: Path | None = None) -> Ground | None:
    """The base of a run where it is now, if it has one; refuses one that is gone. run: the folder, as messages name it."""
    if spec.base is None:
        if place is not None:
            raise Problem(f"--base has no effect on a run of {spec.method}; remove it")
        return None
    folder = place or Path(spec.base.folder)
    if not folder.exists():
        was = f" (it was at {spec.base.folder})" if place else ""
        raise Problem(
            f"the base of {run or 'this run'} is not at {folder}{was}; say where it is now, as in elbo resume "
            f"{run or 'RUN'} --base NEW"
        )
    return spec.base.model_copy(update={"folder": str(folder.resolve())})


def stand(known: Ground, build: Callable[[Spec, Path | None], Trainable]) -> Base:
    """The base of a run, frozen; refuses another than that on which the run was begun."""
    folder = Path(known.folder)
    spec = Spec.read(folder)
    checkpoint, words = newest(folder, best=spec.fit.looks), _words(folder, spec)
    if _hash(checkpoint, words) != known.hash:
        raise Problem(
            f"the weights in {folder}, at step {checkpoint.step:,}, are not those that this run was begun on, at step "
            f"{known.step:,}"
        )
    method = build(spec, carried(folder, spec))
    weights(spec, method, checkpoint.state, folder)
    model = method.model
    beside = [model.conditioner] if model.conditioner is not None else []
    for part in (model.posterior, model.prior, model.likelihood, *model.heads.values(), *beside):
        frozen(part)
    codes, targets, contexts = (Recalled(model.posterior, of) for of in (X, TARGET, CONTEXT))
    return Base(model, codes, latent_of(spec, model), words, spec, targets, contexts)


def inherited(spec: Spec, said: dict[str, Any], reading: Reading, reads: str = "x") -> dict[str, Any]:
    """The options of a run on this base: what is not said of the model is as there; refuses what is decided there.

    A base that reads contexts decides nothing of x: neither its tokens nor the labels that are given.
    """
    own = spec.model.model_dump(exclude_defaults=True, exclude={"given"} if reads == CONTEXT else None)
    for name in LEARNT if reads != CONTEXT else ():
        if name in reading.model_dump(exclude_defaults=True):
            raise Problem(f"--{name.replace('_', '-')} has no effect here; text is read with the tokens of the base")
    return own | said


def read_like(data: DataSet, folder: Path, reads: str = "x") -> DataSet:
    """Data as a base reads it: its text in the tokens of that; refuses data of another kind or shape, or other labels.

    A base that `reads` contexts has them in its tokens, and x stays as it is.
    """
    spec = Spec.read(folder)
    if reads == CONTEXT:
        return _contexts_like(data, folder, spec)
    mine, theirs = (a.kind if a.kind == "tokens" else f"{a.kind} of shape {a.shape}" for a in (data.about, spec.about))
    if mine != theirs:
        raise Problem(f"{data.about.name} is {mine}, but the base {folder} was trained on {theirs}")
    for name in (name for name in spec.model.given_names if name not in spec.about.sequences):
        if data.about.labels.get(name) != spec.about.labels[name] or tuple(data.classes.get(name, ())) != tuple(
            spec.data.get("classes", {}).get(name, ())
        ):
            raise Problem(
                f"the base {folder} is conditional on {name}, and {data.about.name} has no such label or other values of it"
            )
    words = _words(folder, spec)
    if words is None:
        return data
    own = own_words(folder, spec)
    read, some = data.read_with(words, own), data.splits["train"][:FEW]
    _require_known(words, read.sentences(some), "sentences", folder, data)
    for name in data.draft.sequences:
        turns = [" ".join(turns) for turns in read.turns(name, some)]
        _require_known(own.get(name, words), turns, f"{name}s", folder, data)
    return read


def _contexts_like(data: DataSet, folder: Path, spec: Spec) -> DataSet:
    """Contexts in the tokens of those of a base; refuses a base that does not know their words, or writes their language."""
    if CONTEXT not in spec.about.sequences:
        raise Problem(f"the base {folder}, {spec.method} of {spec.about.name}, reads no context")
    if CONTEXT not in data.draft.sequences:
        return data  # which the method refuses
    writes = kept(folder / TOKENISER)
    words = own_words(folder, spec).get(CONTEXT, writes)
    some = [" ".join(turns) for turns in data.turns(CONTEXT, data.splits["train"][:FEW])]
    if spelled(words, some) < spelled(writes, some):
        raise Problem(
            f"the base {folder} is of the wrong direction: it writes the language of the contexts of {data.draft.name}, and "
            "has to read it"
        )
    _require_known(words, some, f"{CONTEXT}s", folder, data)
    return data.read_with(None, {CONTEXT: words})


def _require_known(words: Tokeniser, texts: list[str], of: str, folder: Path, data: DataSet) -> None:
    """Refuses text of which a base knows less than half."""
    if (known := _known(words, texts)) < HALF:
        raise Problem(
            f"the base {folder} knows {known:.0%} of the words of the {of} of {data.draft.name}; its tokens are of another text"
        )


def _known(words: Tokeniser, texts: list[str]) -> float:
    """The share of tokens that are not unknown."""
    ids = [i for text in texts for i in words.encode(text)]
    return 1 - ids.count(UNK) / max(1, len(ids))


def spelled(words: Tokeniser, texts: list[str]) -> float:
    """Known words for each token: the share of known ones where a token is a word, less than one where words are spelled."""
    count, ids = sum(len(text.split()) for text in texts), [i for text in texts for i in words.encode(text)]
    return (count - ids.count(UNK)) / max(1, len(ids))


def in_order(data: DataSet, split: str, given: tuple[str, ...], device: torch.device) -> Iterator[Batch]:
    """The rows of a split, sentences by their lengths so that little is padded."""
    rows = data.splits[split]
    if data.about.kind == "tokens":
        rows = rows[np.argsort(data.lengths(rows).numpy(), kind="stable")]
    for start in range(0, len(rows), AT_ONCE):
        yield batch_of(data, rows[start : start + AT_ONCE], given, device)


def own_words(folder: Path, spec: Spec) -> dict[str, Tokeniser]:
    """The tokens of contexts and targets that have their own, as a run keeps them."""
    return {name: kept(folder / file) for name, file in own_files(spec.about).items()}


def own_files(about: About) -> dict[str, str]:
    """Where a run keeps these."""
    return {name: f"tokeniser-{name}.json" for name, found in about.sequences.items() if not found.shared}


def words_of(folder: Path, spec: Spec) -> tuple[Tokeniser, dict[str, Tokeniser]] | None:
    """The tokens of x, and of what is beside it, as a run keeps them; None where it keeps none yet, or has no text."""
    files = [TOKENISER, *own_files(spec.about).values()]
    if spec.about.kind != "tokens" or not all((folder / file).exists() for file in files):
        return None
    words = kept(folder / TOKENISER)
    if words.size != spec.about.levels:
        raise Problem(
            f"{folder / TOKENISER} has {words.size:,} tokens, and this run was trained on {spec.about.levels:,}: delete it, "
            "and it is made anew from the data"
        )
    return words, own_words(folder, spec)


def _words(folder: Path, spec: Spec) -> Tokeniser | None:
    return kept(folder / TOKENISER) if spec.about.kind == "tokens" else None


def _hash(checkpoint: Checkpoint, words: Tokeniser | None) -> str:
    """Of the weights that the model of a checkpoint has, and of its tokens."""
    digest = hashlib.sha256(json.dumps(words.to_json() if words else None, sort_keys=True).encode())
    for name, tensor in sorted(model_state(checkpoint.state).items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
