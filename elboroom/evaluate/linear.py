"""What a linear model of the same size keeps of held-out examples, beside what a run keeps of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from elboroom.core.problem import Problem
from elboroom.training.batches import batch_of

if TYPE_CHECKING:
    from elboroom.evaluate.subject import Trained

LEARNT, TESTED = 2_000, 500  # examples that PCA sees, and that both are tested on


class Kept(NamedTuple):
    """Shares of the variance of held-out examples, about the mean of the training split."""

    run: float
    pca: float


@torch.no_grad()
def beside_pca(run: Trained, split: str | None = None) -> Kept:
    """The reconstructions of a run against PCA with as many components; columns of a table each in units of their width."""
    if run.tokeniser is not None or not run.latent:
        raise Problem("PCA is compared with models of images and vectors that have a z")
    learn, test = run.split("train", LEARNT), run.split(split, TESTED)
    x, y = (part.data.x(part.rows).flatten(1) for part in (learn, test))
    made = torch.from_numpy(np.asarray(run.reconstruct(batch_of(run.data, test.rows, run.given)))).flatten(1)
    centre = x.mean(0)
    width = x.std(0) if run.data.about.kind == "vectors" else torch.ones(())
    unit = torch.where(width > 0, width, torch.ones(()))
    x, y, made = ((rows - centre) / unit for rows in (x, y, made))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        axes = torch.pca_lowrank(x, min(run.latent, *x.shape), center=False, niter=6)[2]  # (D, J)
    total = float(y.square().sum()) or 1.0
    return Kept(*(1 - float((y - other).square().sum()) / total for other in (made, y @ axes @ axes.T)))
