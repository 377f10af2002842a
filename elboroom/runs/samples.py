"""Samples: codes of the prior, and what is decoded from them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from elboroom.core.batch import Batch
from elboroom.core.memory import require
from elboroom.core.problem import Problem
from elboroom.families.decoding import Decoding, Sampling
from elboroom.families.gaussian import NoPrior
from elboroom.runs import answers, samplers
from elboroom.training.batches import batch_of, reseed

if TYPE_CHECKING:
    from elboroom.runs.run import Run


def sample(
    run: Run, n: int, seed: int, u: ArrayLike | None, decoding: Decoding | None, sampler: samplers.Name = "prior",
    components: int | None = None,
) -> Any:  # fmt: skip
    """Examples for z from the prior, or from a law of the codes; see `Run.sample`."""
    drawn = Sampling() if decoding is None and run.tokeniser is not None else decoding
    if run.model.conditioner is not None and n > 0 and sampler == "prior":
        some = _some(run, n, seed)
        assert some.context is not None
        given = some.u if u is None else run.labels_of(u, n)
        return answers.written(run, some.context, given, run.medium(drawn), seed)
    z, given = draw(run, n, seed, u, sampler, components)
    return run._decoded(z, given, drawn)


@torch.no_grad()
def draw(
    run: Run, n: int, seed: int, u: ArrayLike | None, sampler: samplers.Name = "prior", components: int | None = None
) -> tuple[Tensor, Tensor | None]:
    """z from the prior or from a law of the codes, and the labels that it was drawn for."""
    if n < 1:
        raise Problem(f"at least one sample is needed, not {n}")
    if run.model.conditioner is not None:
        raise Problem("this model draws z for a context; use generate")
    if seed < 0:
        raise Problem(f"a seed is at least 0, not {seed}")
    require(8 * n * (run.latent + math.prod(run.spec.about.shape)), f"to draw {n:,} samples")
    given = run.labels_of(u, n) if u is not None or not run.given else _some(run, n, seed).u
    if sampler != "prior":
        return samplers.draw(run, n, seed, sampler, components), given
    if components is not None:
        raise Problem("--components has no effect with --sampler prior; remove it")
    p = run.fitted if isinstance(run.model.prior, NoPrior) else run.model.p(Batch(torch.empty(n), given))
    reseed(seed)
    return p.sample(torch.Size(() if p.batch_shape else (n,))), given


def _some(run: Run, n: int, seed: int) -> Batch:
    """Training examples, each another one as long as there are enough, for the labels and contexts of samples."""
    rows = run.rows("train")[1]
    return batch_of(run.data, np.random.default_rng(seed).choice(rows, n, replace=n > len(rows)), run.given)
