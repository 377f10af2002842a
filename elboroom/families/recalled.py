"""Codes of an encoder that stands still, worked out once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from elboroom.core.batch import Batch
from elboroom.families.gaussian import Gaussian
from elboroom.families.point import Point

X = "x"


class Recalled(nn.Module):
    """q(z|x) of a frozen posterior: in training gathered by row from a table, where that was filled, else worked out.

    The table has what makes up each q(z|x): its mean, and the logarithm of its variance where it is no point. No state keeps
    it. Other posteriors than Gaussians and points are worked out every time. `of` names the sequence that stands in the place
    of x: of targets it is q(z|target), of contexts q(z|context).
    """

    table: Tensor  # (rows of the data, J or 2J)

    def __init__(self, posterior: nn.Module, of: str = X) -> None:
        super().__init__()
        self.of = of
        self.posterior, self.family = posterior, posterior.family
        self.register_buffer("table", torch.zeros(0, 0), persistent=False)

    @property
    def fits(self) -> bool:
        """Whether its codes can be kept."""
        return self.family in (Gaussian, Point)

    @torch.no_grad()
    def fill(self, batches: Iterable[Batch], rows: int) -> None:
        """Works out the codes of these examples, in single precision; `rows` is how many the data has in all."""
        for batch in batches if self.fits else ():
            q, index = self._worked_out(batch), batch.index
            found = torch.cat([q.loc, q.logvar], -1) if self.family is Gaussian else q.mean
            if not len(self.table):
                self.table = found.new_zeros(rows, found.shape[-1], dtype=torch.float32)
            assert index is not None
            self.table[index] = found.float()

    def _worked_out(self, batch: Batch) -> Any:
        return self.posterior(batch if self.of == X else batch.instead(self.of))

    def forward(self, batch: Batch) -> Any:
        if not self.training or batch.index is None or not len(self.table):
            return self._worked_out(batch)
        found = self.table[batch.index]
        return Gaussian(*found.chunk(2, -1)) if self.family is Gaussian else Point(found)
