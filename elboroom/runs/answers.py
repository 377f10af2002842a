"""Answers: what a model that reads a context makes of one: replies, translations, simplifications."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from elboroom.core.batch import Batch
from elboroom.core.memory import require
from elboroom.core.problem import Problem
from elboroom.data.sequences import CONTEXT, alternating
from elboroom.data.tokens import END, PAD, START, UNK
from elboroom.families.decoding import Beam, Decoding, Greedy, Sampling
from elboroom.families.gaussian import NoPrior
from elboroom.geometry.point import Point
from elboroom.runs.media import Medium
from elboroom.training.batches import reseed

if TYPE_CHECKING:
    from elboroom.runs.run import Run

Context = str | Sequence[str]  # one turn, or the turns of a dialogue


def context_ids(run: Run, contexts: Sequence[Sequence[str]]) -> Tensor:
    """Turns as rows of ids, `<s> turn </s> turn </s> <pad> ..`; words that the model does not know are <unk>."""
    tokeniser = run.tokenisers[CONTEXT]
    rows = [[i for turn in turns for i in (*tokeniser.encode(turn), END)] or [END] for turns in contexts]
    ids = torch.full((len(rows), 1 + max(map(len, rows))), PAD)
    ids[:, 0] = START
    for row, found in zip(ids, rows, strict=True):
        row[1 : 1 + len(found)] = torch.tensor(found)
    if not all(contexts):
        warnings.warn("a context is empty: what comes out answers nothing", stacklevel=3)
    elif bool(((ids == UNK).sum(1) == (ids > END).sum(1)).any()):
        warnings.warn("the model knows no word of a context; write it as its data is written", stacklevel=3)
    return ids


def as_contexts(contexts: Sequence[Context]) -> list[list[str]]:
    """Each as its turns, blank ones left out and those of one speaker joined."""
    found = [[text] if isinstance(text, str) else list(text) for text in contexts]
    if any(not isinstance(turn, str) for turns in found for turn in turns):
        raise Problem("a context is a text, or a list of texts, its turns")
    return [alternating(turns) for turns in found]


def default_number(run: Run) -> int:
    """How many answers are written where none is said: one of a model without z and without turns, else ten."""
    about = run.spec.about.sequences.get(CONTEXT)
    return 1 if not run.latent and about is not None and about.turns == 1 else 10


def generate(
    run: Run, contexts: Sequence[Context], n: int | None, decoding: Decoding | None, seed: int, u: ArrayLike | None
) -> list[list[str]]:
    """n answers to each context, each from a z of its own."""
    if run.model.conditioner is None:
        raise Problem(f"{run.spec.method} of this run reads no context, so it cannot answer; use sample")
    n = default_number(run) if n is None else n
    if n < 1:
        raise Problem(f"at least one answer is needed, not {n}")
    if not contexts:
        raise Problem("there is no context to answer")
    if n > 1 and not run.latent and isinstance(decoding, Beam | Greedy):
        raise Problem(f"without z, {n} answers by a search are all the same; use --n 1, or draw them")
    ids = context_ids(run, as_contexts(contexts))
    size = ids.shape[1] + run.latent + math.prod(run.spec.about.shape)
    require(8 * n * len(ids) * size, f"to write {n:,} answers")
    medium = run.medium(decoding or (Greedy() if n == 1 else Sampling()))
    flat = written(run, ids.repeat_interleave(n, 0), _labels(run, u, len(ids), n), medium, seed)
    return [flat[at : at + n] for at in range(0, len(flat), n)]


def _labels(run: Run, u: ArrayLike | None, contexts: int, n: int) -> Tensor | None:
    """The labels of n answers to each context, of which u has a row for each context or one for each answer."""
    each = n if u is not None and np.shape(u)[:1] == (contexts,) else 1
    found = run.labels_of(u, contexts * n // each)
    return None if found is None else found.repeat_interleave(each, 0)


def written(run: Run, context: Tensor, labels: Tensor | None, medium: Medium, seed: int) -> list[str]:
    """A sentence for each context, from z of p(z|c), or of the Gaussian of codes where there is no prior."""
    batch, like = replace(medium.blank(len(context)), u=labels, context=context), next(run.model.parameters())
    reseed(seed)

    def made(part: Batch) -> list[str]:
        seen = run.model.conditioned(part)
        p = run.fitted if isinstance(run.model.prior, NoPrior) else run.model.p(seen)
        z: Tensor = p.sample(torch.Size(() if p.batch_shape else (len(part.x),)))
        z = z.to(like.device) if isinstance(z, Point) else z.to(like)  # the Gaussian of codes is in double precision
        found: list[str] = medium.made(run.model.px(z.unsqueeze(0), seen))
        return found

    flat: list[str] = medium.join(run.in_parts(made, batch))
    return flat
