"""The stationary AR(1) prior over a sequence of latents: no posterior that factorises can match it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.kl import closed_kl
from elboroom.core.law import Law
from elboroom.core.problem import Problem
from elboroom.families.gaussian import LOG_2PI, Gaussian


class AR1(Law):
    """z_1 ~ N(0, 1), z_t = alpha z_{t-1} + sqrt(1 - alpha^2) e_t in each of K channels; z is flat, (n K,), time first."""

    has_rsample = True

    def __init__(self, alpha: Tensor, length: int) -> None:
        self.alpha, self.length = alpha, length  # (K,)
        super().__init__(torch.Size(), torch.Size([length * len(alpha)]))

    @property
    def mean(self) -> Tensor:
        return self.alpha.new_zeros(self.event_shape)

    @property
    def variance(self) -> Tensor:
        return self.alpha.new_ones(self.event_shape)

    def unrolled(self, z: Tensor) -> Tensor:
        """(..., n K) -> (..., n, K)."""
        return z.reshape(*z.shape[:-1], self.length, len(self.alpha))

    @property
    def variance_of_steps(self) -> Tensor:
        """1 for z_1, then 1 - alpha^2, (n, K)."""
        later = (1 - self.alpha.square()).expand(self.length - 1, -1)
        return torch.cat([torch.ones_like(later[:1]), later])

    def _before(self, z: Tensor) -> Tensor:
        """alpha z_{t-1}, 0 before the first, (..., n, K)."""
        return self.alpha * torch.cat([torch.zeros_like(z[..., :1, :]), z[..., :-1, :]], -2)

    def log_prob_per_dim(self, z: Tensor) -> Tensor:
        """log p(z_t | z_{t-1}), (..., n K)."""
        steps, var = self.unrolled(z), self.variance_of_steps
        return -0.5 * ((steps - self._before(steps)).square() / var + var.log() + LOG_2PI).flatten(-2)

    def log_prob(self, z: Tensor) -> Tensor:
        return self.log_prob_per_dim(z).sum(-1)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """(*sample_shape, n K)."""
        noise = self.unrolled(distributed.normal((*sample_shape, *self.event_shape), self.alpha, 0))
        noise = noise * self.variance_of_steps.sqrt()
        z = [noise[..., 0, :]]
        for t in range(1, self.length):
            z.append(self.alpha * z[-1] + noise[..., t, :])
        return torch.stack(z, -2).flatten(-2)

    @property
    def least_rate(self) -> Tensor:
        """The least KL of a posterior that factorises: 1/2 sum_k [(n - 2) log(1 + alpha_k^2) - log(1 - alpha_k^2)]."""
        a2 = self.alpha.square()
        return 0.5 * ((self.length - 2) * torch.log1p(a2) - torch.log1p(-a2)).sum()


@closed_kl(Gaussian, AR1, per_dim=True)
def _kl(q: Gaussian, p: AR1) -> Tensor:
    """E_q KL(q(z_t) || p(z_t | z_{t-1})), step by step, (B, n K)."""
    loc, var = p.unrolled(q.loc), p.unrolled(q.variance)
    apart = (loc - p._before(loc)).square() + p.alpha * p._before(var)
    ratio = (apart + var) / p.variance_of_steps
    return 0.5 * (ratio - p.unrolled(q.logvar) + p.variance_of_steps.log() - 1).flatten(-2)


class AutoregressivePrior(nn.Module):
    """p(z): `channels` stationary chains of length latent / channels, all with one alpha."""

    family = AR1
    alpha: Tensor

    def __init__(self, latent: int, channels: int, alpha: float) -> None:
        super().__init__()
        if latent % channels or latent < 2 * channels:
            raise Problem(
                f"--latent {latent} does not give chains of two steps or more with --ar1-channels {channels}; "
                "use a multiple of it for --latent, at least twice as large"
            )
        self.length = latent // channels
        self.register_buffer("alpha", torch.full((channels,), alpha), persistent=False)

    def forward(self, batch: Batch) -> AR1:
        return AR1(self.alpha, self.length)
