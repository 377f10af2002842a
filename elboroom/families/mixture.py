"""Mixtures of diagonal Gaussians as priors: one that is learned freely, and one of the encoder's own posteriors."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.law import Law
from elboroom.core.reference import Reference
from elboroom.families.gaussian import LOG_2PI, GaussianPosterior
from elboroom.families.pseudo import PseudoInputs


class Mixture(Law):
    """sum_k w_k N(m_k, diag(s_k^2)), its density by one matrix product.

    A draw has the gradient of the mean and variance of its component, none of the weights.
    """

    has_rsample = True

    def __init__(self, log_weights: Tensor, loc: Tensor, logvar: Tensor) -> None:
        self.log_weights, self.loc, self.logvar = log_weights, loc, logvar  # (K,), (K, J), (K, J)
        super().__init__(torch.Size(), loc.shape[1:])

    @property
    def mean(self) -> Tensor:
        return self.log_weights.exp() @ self.loc

    @property
    def variance(self) -> Tensor:
        return self.log_weights.exp() @ (self.logvar.exp() + (self.loc - self.mean).square())

    def log_prob(self, z: Tensor) -> Tensor:
        """log sum_k w_k N(z; m_k, s_k^2); in double precision, since z^2 / s^2 is large where s is small."""
        loc, logvar, wide = self.loc.double(), self.logvar.double(), z.double()
        precision = torch.exp(-logvar)
        natural = torch.cat([-0.5 * precision, loc * precision], 1)  # (K, 2 J), beside (z^2, z)
        constant = self.log_weights.double() - 0.5 * (loc.square() * precision + logvar + LOG_2PI).sum(1)
        each = torch.cat([wide.square(), wide], -1) @ natural.T + constant  # (..., K)
        return torch.logsumexp(each, -1).to(z)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        place = distributed.uniform((*sample_shape, 1), self.loc, 0)[..., 0]
        bounds = self.log_weights.detach().double().exp().cumsum(0)[:-1]
        k = torch.bucketize(place.double(), bounds, right=True)
        noise = distributed.normal((*sample_shape, *self.event_shape), self.loc, 0)
        return self.loc[k] + torch.exp(0.5 * self.logvar[k]) * noise


class MixturePrior(nn.Module):
    """p(z) = sum_k w_k N(m_k, diag(s_k^2)), all learned. Starts as equal parts of variance 1/2 around means of variance 1/2."""

    family = Mixture

    def __init__(self, latent: int, components: int) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(components))
        self.loc = nn.Parameter(math.sqrt(0.5) * torch.randn(components, latent))
        self.logvar = nn.Parameter(torch.full((components, latent), math.log(0.5)))

    def forward(self, batch: Batch) -> Mixture:
        return Mixture(torch.log_softmax(self.logits, 0), self.loc, self.logvar)


class GaussianVampPrior(nn.Module):
    """p(z) = 1/K sum_k q(z|s_k), q(z|x) Gaussian: all pseudo-inputs s_k are read once for every Draw.

    The encoder is that of the posterior, which learns through both.
    """

    family = Mixture
    rows: Tensor

    def __init__(self, posterior: GaussianPosterior, pseudo: PseudoInputs) -> None:
        super().__init__()
        self.posterior = Reference(posterior)
        self.pseudo = pseudo
        self.register_buffer("rows", torch.arange(len(pseudo)), persistent=False)

    def forward(self, batch: Batch) -> Mixture:
        posterior = self.posterior.module
        q = posterior.law(self.pseudo.read(posterior.net, self.rows))
        return Mixture(q.loc.new_full((len(q.loc),), -math.log(len(q.loc))), q.loc, q.logvar)
