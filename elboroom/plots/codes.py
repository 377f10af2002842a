"""Codes: q(z|x) over many rows of a split, as the figures of one run share it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.law import capabilities
from elboroom.evaluate.split import Split
from elboroom.families.gaussian import NoPrior
from elboroom.runs.run import Run
from elboroom.training.batches import reseed

Floats = NDArray[np.floating[Any]]
ACTIVE = 0.01  # of the variance of the means, as `active_units` has it
ROWS = 200  # over which the density of a prior given labels is averaged


@dataclass(frozen=True)
class Codes:
    """Means and deviations of q(z|x), a draw from each, and the mean rate of each dimension."""

    split: Split
    mean: Floats  # (n, J)
    z: Floats  # (n, J)
    stddev: Floats | None  # (n, J); None where q has no density
    rate: Floats | None  # (J,); None where the rate is not a sum over dimensions

    @classmethod
    @torch.inference_mode()
    def of(cls, run: Run, n: int = 10_000) -> Codes:
        """At most n rows of the split that the run is measured on."""
        run.require_codes()
        split = run.split(most=n)
        mean, z, stddev, rate = [], [], list[Tensor](), list[Tensor]()
        for batch in split.batches():
            draw = Draw(split.model, batch)
            mean.append(draw.q.mean)
            z.append(draw.z[0])
            if capabilities(draw.q).diagonal:
                stddev.append(draw.q.stddev)
            if split.has_density:
                rate += [draw.rate.double()] if draw.rate.dim() == 2 else []
        parts = [torch.cat(part).cpu().numpy() if part else None for part in (stddev, rate)]
        per_dim = None if parts[1] is None else parts[1].mean(0)
        return cls(split, torch.cat(mean).cpu().numpy(), torch.cat(z).cpu().numpy(), parts[0], per_dim)

    @cached_property
    def variance(self) -> Floats:
        """Var_x(E[z_j|x]), (J,)."""
        variance: Floats = self.mean.astype(np.float64).var(0, ddof=1)
        return variance

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which dimensions are active, (J,)."""
        return self.variance > ACTIVE

    @property
    def order(self) -> list[int]:
        """Dimensions by mean rate, highest first; by variance of the means where there is no rate."""
        score = self.variance if self.rate is None else self.rate
        return [int(j) for j in np.argsort(-score, kind="stable")]

    def label(self, j: int) -> str:
        """What stands beside a dimension: its mean rate, or else the variance of its mean."""
        return f"var {self.variance[j]:.2g}" if self.rate is None else f"KL {self.rate[j]:.2f}"

    def _prior(self, rows: NDArray[np.int64]) -> Any:
        """p(z|u) of some rows; None where the model has no prior."""
        split = self.split
        if isinstance(split.model.prior, NoPrior):
            return None
        u = split.data.u(rows, split.given) if split.given else None
        return split.model.p(Batch(torch.empty(len(rows)), u).to(split.device))

    @torch.inference_mode()
    def prior_density(self, at: Floats) -> Floats | None:
        """The density of every dimension of p(z), the mean of p(z|u) over some rows, (m, J); None where it has no such."""
        p = self._prior(self.split.rows[:ROWS])
        if p is None or not capabilities(p).diagonal or not capabilities(p).has_density:
            return None
        z = torch.as_tensor(at, dtype=p.loc.dtype, device=p.loc.device)[:, None, None].expand(-1, 1, p.loc.shape[-1])
        density: Floats = p.log_prob_per_dim(z).exp().mean(1).cpu().numpy()
        return density

    @torch.inference_mode()
    def prior_draws(self, each: int = 8) -> Floats | None:
        """Draws of p(z|u), `each` for every row, (each n, J); None where the model has no prior."""
        split, p = self.split, self._prior(self.split.rows)
        if p is None:
            return None
        reseed(split.seed)
        z = p.sample((each,) if p.batch_shape else (each * len(split.rows),))
        drawn: Floats = z.flatten(0, -2).cpu().numpy()
        return drawn
