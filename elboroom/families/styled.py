"""Posteriors of style: one that remembers the mean code of every class, and the released one of John et al. 2019."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn

from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.kl import closed_kl, kl_divergence
from elboroom.families.gaussian import Gaussian, require_gaussian

MEMORY = 0.999  # of what was seen, a step keeps at most so much: the last thousand batches count
RECENT = 10  # and no more than the last tenth of the steps so far: before, the encoder was another


class ClassMeans(nn.Module):
    """The running mean of a block of codes for every class of a label; memory in buffers, so that a run has it."""

    total: Tensor  # (classes, size)
    count: Tensor  # (classes,)

    def __init__(self, field: str, column: int, classes: int, where: slice) -> None:
        super().__init__()
        self.field, self.column, self.classes, self.where = field, column, classes, where
        self.register_buffer("total", torch.zeros(classes, where.stop - where.start))
        self.register_buffer("count", torch.zeros(classes))

    @torch.no_grad()
    def see(self, codes: Tensor, y: Tensor, step: int) -> None:
        """Takes in the codes (B, J) and labels (B, K) of the batch of a step, of all ranks."""
        hot = nn.functional.one_hot(y[:, self.column], self.classes).to(self.total)
        both = torch.cat([codes[:, self.where].to(self.total), hot], 1)
        every = distributed.gather(both)
        mine, hot = every[:, : -self.classes], every[:, -self.classes :]
        number, of = distributed.share()
        first = number % (of // distributed.world()) == 0  # of the parts of a step
        kept = min(MEMORY, step / (step + RECENT)) if first else 1.0
        self.total.mul_(kept).add_(hot.T @ mine)
        self.count.mul_(kept).add_(hot.sum(0))

    @property
    def means(self) -> Tensor:
        """The mean of every class, (classes, size); zero of a class that was never seen."""
        return self.total / self.count.clamp_min(1e-12).unsqueeze(1)


class Remembered(nn.Module):
    """q(z|x) as it is, and in training the means of blocks of its codes by class, for transfer without the data."""

    def __init__(self, posterior: nn.Module, means: Mapping[str, ClassMeans]) -> None:
        super().__init__()
        self.posterior, self.by_block = posterior, nn.ModuleDict(means)

    @property
    def family(self) -> Any:
        """The family of the posterior."""
        return self.posterior.family

    @property
    def styles(self) -> dict[str, ClassMeans]:
        """What it remembers, by the label that a block is of."""
        found = (cast(ClassMeans, module) for module in self.by_block.values())
        return {means.field: means for means in found}

    def forward(self, batch: Batch) -> Any:
        q = self.posterior(batch)
        if self.training and batch.y is not None:
            for means in self.styles.values():
                means.see(q.mean.detach(), batch.y, batch.step)
        return q


class Misread(Gaussian):
    """A Gaussian whose draws take for log sigma what its density and its rate take for log sigma^2."""

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = (*sample_shape, *self.loc.shape)
        return self.loc + self.variance * distributed.normal(shape, self.loc, len(tuple(sample_shape)))


@closed_kl(Misread, Gaussian, per_dim=True)
def _kl(q: Misread, p: Gaussian) -> Tensor:
    return kl_divergence(Gaussian(q.loc, q.logvar), p, q.rsample)


class MisreadPosterior(nn.Module):
    """q(z|x) of the released code of John et al. 2019: in training the head is read in two ways.

    Whoever measures gets the law of the draws, since no bound holds for two that differ.
    """

    family = Misread

    def __init__(self, posterior: nn.Module) -> None:
        super().__init__()
        require_gaussian(posterior, "--faithful")
        self.posterior = posterior

    def forward(self, batch: Batch) -> Gaussian:
        q = self.posterior(batch)
        return Misread(q.loc, q.logvar) if self.training else Gaussian(q.loc, 2 * q.logvar)
