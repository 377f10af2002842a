"""Warm start: a run that begins with the weights of another."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch
from torch import nn

from elboroom.core.problem import Problem
from elboroom.core.stages import Trainable, model_state
from elboroom.data.tokens import TOKENISER, Tokeniser, kept
from elboroom.families.pseudo import PseudoSentences
from elboroom.training.checkpoint import newest
from elboroom.training.spec import Spec

ROLES = {
    "posterior": "the encoder",
    "likelihood": "the decoder",
    "prior": "the prior",
    "heads": "the heads",
    "conditioner": "what reads the context",
}


def warm_start(method: Trainable, folder: Path, words: Tokeniser | None = None) -> str:
    """Copies the weights of another run's model wherever role and shape agree, and warns of those that start anew.

    Returns what was carried, by role.
    Rows that stand for words go where the word stands here; a word that the other run has not keeps its row.
    """
    state, mine = model_state(newest(folder, best=Spec.read(folder).fit.looks).state), method.model.state_dict()
    theirs = {name: state[other] for name, other in counterparts(mine, state).items()}
    same = {name: theirs[name] for name, w in mine.items() if name in theirs and theirs[name].shape == w.shape}
    for name in (name for name in same if not torch.isfinite(same[name]).all()):
        raise Problem(f"--from {folder}: its tensor '{name}' has values that are NaN or infinite")
    if words is not None and (folder / TOKENISER).exists():
        there = {token: row for row, token in enumerate(kept(folder / TOKENISER).tokens)}
        known = [(here, there[token]) for here, token in enumerate(words.tokens) if token in there]
        if list(there) != list(words.tokens):  # pseudo-inputs are sentences of the other vocabulary
            same = {name: w for name, w in same.items() if not name.startswith(_sentences(method.model))}
        here, rows = ([pair[side] for pair in known] for side in (0, 1))
        for name in _rows_of_words(method.model, words.size):
            same.pop(name, None)
            if name in theirs and theirs[name].shape[1:] == mine[name].shape[1:]:
                same[name] = mine[name].clone()
                same[name][here] = theirs[name][rows].to(same[name])
    if not same:
        raise Problem(f"nothing in {folder} fits this model; --from needs a run with the same nets and latent size")
    if anew := [name for name in mine if name not in same]:
        some = ", ".join(anew[:4]) + (f" and {len(anew) - 4} more" if len(anew) > 4 else "")
        warnings.warn(
            f"--from {folder}: {len(same)} of {len(mine)} tensors fit; these start anew: {some}", stacklevel=2
        )
    method.model.load_state_dict(mine | same)
    return f"{_by_role(same, mine)}, from {folder}"


def _by_role(same: Iterable[str], mine: Iterable[str]) -> str:
    """The parts of the model that were carried; of one that was not carried whole, how much of it."""
    now, had = (Counter(name.split(".")[0] for name in names) for names in (same, mine))
    parts = [
        ROLES.get(part, part)
        if now[part] == had[part]
        else f"{now[part]} of {had[part]} tensors of {ROLES.get(part, part)}"
        for part in had
        if now[part]
    ]
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def counterparts(mine: Iterable[str], theirs: Iterable[str]) -> dict[str, str]:
    """For tensors of a model, those of another that play their role: of the same name, or in the same part of the model.

    There the name of one ends in that of the other: a posterior that is wrapped has its net one floor further down.
    """
    names, others = list(mine), set(theirs)
    pairs = {name: name for name in names if name in others}
    others -= pairs.keys()
    for part, own in (name.split(".", 1) for name in names if name not in pairs and "." in name):
        ends = [o for p, o in (other.split(".", 1) for other in others if "." in other) if p == part]
        ends = [o for o in ends if own.endswith(f".{o}") or o.endswith(f".{own}")]
        if len(ends) == 1:
            pairs[f"{part}.{own}"] = f"{part}.{ends[0]}"
            others.discard(f"{part}.{ends[0]}")
    return pairs


def _sentences(model: nn.Module) -> tuple[str, ...]:
    """How the names of pseudo-inputs of text begin."""
    return tuple(f"{path}." for path, module in model.named_modules() if isinstance(module, PseudoSentences))


def _rows_of_words(model: nn.Module, size: int) -> Iterator[str]:
    """The names of weights with a row a word: embeddings, and what ends in a softmax over words."""
    for path, module in model.named_modules():
        if (isinstance(module, nn.Embedding) and module.num_embeddings == size) or (
            isinstance(module, nn.Linear) and module.out_features == size
        ):
            yield from (f"{path}.{name}" for name, _ in module.named_parameters(recurse=False))
