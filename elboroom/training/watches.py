"""Watches: what looks at held-out data while a run goes on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch import Tensor

from elboroom.core import distributed
from elboroom.core.average import Weights
from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.kl import has_density
from elboroom.core.method import Method, Watch
from elboroom.core.model import LatentModel
from elboroom.core.objective import Term
from elboroom.data.dataset import DataSet
from elboroom.families.fitted import around, gaussian, is_sampled, proposed
from elboroom.training.batches import batch_of, reseed

FEW = 10  # draws of a proposal, of which one is of the prior


def held_out(data: DataSet, given: tuple[str, ...], device: torch.device, most: int = 10_000) -> Iterator[Batch]:
    """The validation split, or `most` of its rows, drawn once and the same every time."""
    rows = data.splits["valid"]
    rows = rows if len(rows) <= most else np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
    for start in range(0, len(rows), 256):
        yield batch_of(data, rows[start : start + 256], given, device)


@torch.no_grad()
def negative_elbo(model: LatentModel, batches: Iterable[Batch]) -> Tensor:
    """nll + kl at weight one, one sample, the mean over all rows.

    Of a posterior that can only be sampled, the bound of ten draws by a Gaussian fitted to it and the prior; nll alone where
    there is no other density.
    """
    reseed(0, 0)
    q, p = model.families
    dense, sampled = has_density(q) and has_density(p), has_density(p) and is_sampled(model)
    total, rows = torch.zeros((), device=next(model.parameters()).device, dtype=torch.float64), 0
    for batch in batches:
        draw = Draw(model, batch)
        if dense:
            loss = draw.nll.sum() + draw.rate.sum()
        elif sampled:
            r = around(draw.q, lambda q: gaussian(q, each=4))  # a look has many rows, and is to be quick
            loss = math.log(FEW) * len(batch.x) - proposed(model, batch, r, FEW).logsumexp(0).sum()
        else:
            loss = draw.nll.sum()
        total += loss.double()
        rows += len(batch.x)
    return total / rows


@torch.no_grad()
def mean_of(term: Term, model: LatentModel, batches: Iterable[Batch]) -> Tensor:
    """A term, the mean over all rows."""
    reseed(0, 0)
    total, rows = torch.zeros((), device=next(model.parameters()).device, dtype=torch.float64), 0
    for batch in batches:
        total += term.mean(Draw(model, batch, term.samples)).double() * len(batch.x)
        rows += len(batch.x)
    return total / rows


def validated(method: Method, batches: Iterable[Batch]) -> Tensor:
    """The negative ELBO, or what the method is judged by, of the model as it will be loaded: averaged, where it averages."""
    method.model.eval()
    term = method.judged_by
    with method.averaged(), distributed.alone():  # the noise of one process
        value = negative_elbo(method.model, batches) if term is None else mean_of(term, method.model, batches)
    method.model.train()
    return distributed.mean(value)


class Plateau(Watch):
    """Ends the run after `patience` looks without a better value on the validation split; the best is kept.

    A run that is prolonged after that waits as long again.
    """

    best: Tensor
    waited: Tensor
    last: float  # what the last look saw, nats

    def __init__(self, patience: int, every: int) -> None:
        super().__init__()
        self.patience, self.every = patience, every
        self.improved = False
        self.register_buffer("best", torch.tensor(float("inf"), dtype=torch.float64))
        self.register_buffer("waited", torch.tensor(0))

    def look(self, method: Method, step: int) -> bool:
        value = validated(method, self.valid())
        self.last = value.item()
        self.improved = self.last < self.best.item()
        self.best.copy_(torch.minimum(self.best, value))
        self.waited.copy_(torch.zeros_like(self.waited) if self.improved else self.waited % self.patience + 1)
        return int(self.waited) >= self.patience

    def told(self) -> dict[str, float]:
        return {"loss_valid": self.last}


class Halving(Watch):
    """Halves the learning rate when the validation loss has not improved for `patience` looks (He et al. 2019).

    The best weights are then restored and the optimisers of the run begin anew; from there on a look has to be as good as the
    one that led to the halving. The first look that may halve is number `start`; after `times` halvings the run ends, and
    after one more if it is prolonged.
    """

    best: Tensor  # loss of all looks
    bar: Tensor  # what a look has to reach
    waited: Tensor
    halvings: Tensor
    last: float  # what the last look saw, nats

    def __init__(self, model: LatentModel, patience: int, times: int, start: int, every: int) -> None:
        super().__init__()
        self.patience, self.times, self.start, self.every = patience, times, start, every
        self.improved = False
        for name in ("best", "bar"):
            self.register_buffer(name, torch.tensor(math.inf, dtype=torch.float64))
        for name in ("waited", "halvings"):
            self.register_buffer(name, torch.tensor(0))
        self.weights = Weights(model)  # of the best look

    @property
    def share(self) -> float:
        """What is left of the learning rate."""
        return 0.5 ** int(self.halvings)

    def look(self, method: Method, step: int) -> bool:
        value = validated(method, self.valid())
        self.last = value.item()
        self.improved = self.last < self.best.item()
        if self.improved:
            self.best.copy_(value)
            with method.averaged():
                self.weights.take(method.model)
        reached = self.last <= self.bar.item()
        self.waited.copy_(torch.zeros_like(self.waited) if reached else self.waited + 1)
        halve = int(self.waited) >= self.patience and step // self.every >= self.start
        if reached or halve:
            self.bar.copy_(value)
        if halve:
            self.halvings += 1
            self.waited.zero_()
            self._restore(method)
        return halve and int(self.halvings) >= self.times

    def _restore(self, method: Method) -> None:
        """The best weights, and optimisers that remember nothing."""
        self.weights.give(method.model)
        if method.average is not None:
            method.average.weights.take(method.model)
        for optimiser in method.of_run:
            optimiser.state.clear()

    def told(self) -> dict[str, float]:
        return {"loss_valid": self.last}
