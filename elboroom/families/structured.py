"""Priors with a structure: anisotropic, clustered, sparse. Their KL with a Gaussian posterior is sampled."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import StudentT

from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.law import Law
from elboroom.core.problem import Problem
from elboroom.families.gaussian import LOG_2PI, Gaussian
from elboroom.families.mixture import Mixture


class AnisotropicNormal(nn.Module):
    """p(z) = N(0, diag(s^2)), s^2 from the data's leading variances scaled to mean one, fixed or learned."""

    family = Gaussian
    logvar: Tensor

    def __init__(self, variances: Tensor, learned: bool = False) -> None:
        super().__init__()
        logvar = torch.log(variances / variances.mean())
        self.register_buffer("zero", torch.zeros_like(logvar), persistent=False)
        if learned:
            self.logvar = nn.Parameter(logvar)
        else:
            self.register_buffer("logvar", logvar)

    def forward(self, batch: Batch) -> Gaussian:
        return Gaussian(self.zero, self.logvar)  # type: ignore[arg-type]


class HeavyTailed(Law):
    """A Student-t with 9 degrees of freedom for each dimension."""

    factorises = True

    def __init__(self, scale: Tensor) -> None:
        self.t = StudentT(torch.full_like(scale, 9.0), torch.zeros_like(scale), scale, validate_args=False)
        super().__init__(torch.Size(), scale.shape)

    @property
    def mean(self) -> Tensor:
        mean: Tensor = self.t.mean
        return mean

    @property
    def variance(self) -> Tensor:
        variance: Tensor = self.t.variance
        return variance

    def log_prob(self, z: Tensor) -> Tensor:
        log_prob: Tensor = self.t.log_prob(z)  # type: ignore[no-untyped-call]
        return log_prob.sum(-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        # a normal over the root of a mean of nine squares of others
        scale = self.t.scale
        e = distributed.normal((*sample_shape, *scale.shape, 10), scale, 0)
        return scale * e[..., 0] / e[..., 1:].square().mean(-1).sqrt()


class StudentPrior(AnisotropicNormal):
    """p(z) = prod_j t_9(z_j / s_j) / s_j, the anisotropic prior with heavy tails."""

    family = HeavyTailed  # type: ignore[assignment]

    def forward(self, batch: Batch) -> HeavyTailed:  # type: ignore[override]
        return HeavyTailed(torch.exp(0.5 * self.logvar))


class ClusteredPrior(nn.Module):
    """p(z) = 1/K sum_k N(z; c_k, variance I): four clusters at +-1 on the first two axes, or K on the circle through them."""

    family = Mixture
    centres: Tensor

    def __init__(self, latent: int, variance: float = 0.03, clusters: int = 4) -> None:
        super().__init__()
        centres = torch.zeros(clusters, latent)
        if clusters == 4:  # exactly on the axes
            for k, (axis, sign) in enumerate(((0, 1), (0, -1), (1, 1), (1, -1))):
                centres[k, axis % latent] = sign
        elif latent < 2:
            raise Problem(f"--clusters {clusters} on a circle need two dimensions; use --latent 2 or more")
        else:
            angle = 2 * math.pi * torch.arange(clusters) / clusters
            centres[:, 0], centres[:, 1] = angle.cos(), angle.sin()
        self.register_buffer("centres", centres, persistent=False)
        self.variance = variance

    def forward(self, batch: Batch) -> Mixture:
        count = len(self.centres)
        even = self.centres.new_full((count,), -math.log(count))
        return Mixture(even, self.centres, torch.full_like(self.centres, math.log(self.variance)))


class SpikeAndSlab(Law):
    """prod_j (1 - g) N(z_j; 0, 1) + g N(z_j; 0, spike^2)."""

    factorises = True

    def __init__(self, zero: Tensor, share: float, spike: float) -> None:
        self.zero, self.share, self.spike = zero, share, spike
        super().__init__(torch.Size(), zero.shape)

    @property
    def mean(self) -> Tensor:
        return self.zero

    @property
    def variance(self) -> Tensor:
        return torch.full_like(self.zero, 1 - self.share + self.share * self.spike**2)

    def log_prob_per_dim(self, z: Tensor) -> Tensor:
        slab = -0.5 * (z.square() + LOG_2PI)
        if self.share == 0:
            return slab
        spike = -0.5 * ((z / self.spike).square() + LOG_2PI) - math.log(self.spike)
        both = torch.stack([math.log1p(-self.share) + slab, math.log(self.share) + spike])
        return torch.logsumexp(both, 0)  # whose second derivative, unlike that of logaddexp, does not overflow

    def log_prob(self, z: Tensor) -> Tensor:
        return self.log_prob_per_dim(z).sum(-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = (*sample_shape, *self.zero.shape)
        z = distributed.normal(shape, self.zero, 0)
        return torch.where(distributed.uniform(shape, self.zero, 0) < self.share, self.spike * z, z)


class SparsePrior(nn.Module):
    """p(z) = prod_j (1 - share) N(0, 1) + share N(0, spike^2): most dimensions near zero for any one example."""

    family = SpikeAndSlab
    zero: Tensor

    def __init__(self, latent: int, share: float = 0.8, spike: float = 0.05) -> None:
        super().__init__()
        self.register_buffer("zero", torch.zeros(latent), persistent=False)
        self.share, self.spike = share, spike

    def forward(self, batch: Batch) -> SpikeAndSlab:
        return SpikeAndSlab(self.zero, self.share, self.spike)
