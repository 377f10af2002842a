"""Gaussian posteriors standardised over the batch, whose rate therefore cannot vanish."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.families.gaussian import Gaussian, require_gaussian

LEAST_BATCH = 8  # of fewer examples, mean and variance say little
EPS = 1e-20  # an encoder whose outputs vary by less than this would get past the floor: it must be no way out


def standardised(norm: nn.BatchNorm1d, h: Tensor) -> Tensor:
    """(h - m) / sqrt(v + eps): m and v of the global batch in training, their running averages in evaluation, (B, J).

    The running averages are plain ones over the first ten batches, so that they are of the right size from the start.
    """
    h = h.to(norm.running_mean)
    if not norm.training:
        return norm(h)  # type: ignore[no-any-return]
    everyone, first = distributed.gather(h), distributed.rank() * len(h)
    _follow(norm, everyone.detach())
    return F.batch_norm(everyone, None, None, training=True, eps=norm.eps)[first : first + len(h)]


@torch.no_grad()
def _follow(norm: nn.BatchNorm1d, h: Tensor) -> None:
    """Moves the running averages; nothing is read back from the device."""
    assert norm.num_batches_tracked is not None
    assert norm.running_mean is not None
    assert norm.running_var is not None
    norm.num_batches_tracked += 1
    share = (1 / norm.num_batches_tracked).clamp_min(0.1).to(h)
    norm.running_mean.lerp_(h.mean(0), share)
    norm.running_var.lerp_(h.var(0), share)


class BatchNormed(nn.Module):
    """q(z|x) = N(gamma (mu - m) / s + b, sigma^2), m and s^2 the mean and variance of mu over the batch, b learned.

    E[mean^2] = gamma^2 s^2 / (s^2 + eps) + b^2, so that the mean rate is at least J (gamma^2 + b^2) / 2, whatever the
    encoder does, as long as its means vary by more than eps. Without a shift b is zero; a p(z|c) may be normalised so too.
    """

    family = Gaussian
    couples = True
    least_batch = LEAST_BATCH

    def __init__(self, posterior: nn.Module, latent: int, gamma: float, eps: float = EPS, shifted: bool = True) -> None:
        super().__init__()
        require_gaussian(posterior, "batch normalisation of the means")
        self.posterior, self.gamma = posterior, gamma
        self.norm = nn.BatchNorm1d(latent, eps, affine=False)
        self.shift = nn.Parameter(torch.zeros(latent)) if shifted else None

    def forward(self, batch: Batch) -> Gaussian:
        q = self.posterior(batch)
        mean = self.gamma * standardised(self.norm, q.loc)
        return Gaussian(mean if self.shift is None else mean + self.shift, q.logvar)


class Capped(nn.Module):
    """A Gaussian p(z|c) whose deviations are at most 1."""

    family = Gaussian
    of_labels = True

    def __init__(self, prior: nn.Module) -> None:
        super().__init__()
        self.prior = prior

    def forward(self, batch: Batch) -> Gaussian:
        p = self.prior(batch)
        return Gaussian(p.loc, p.logvar.clamp_max(0.0))


class DifferenceNormed(nn.Module):
    """q(z|x,c) = N(mu_p + gamma (d - m) / s, sigma^2), d = mu - mu_p, m and s^2 its mean and variance over the batch.

    The mean of q is as far from that of p as gamma says, wherever p goes: E[(mu_q - mu_p)^2] = gamma^2 s^2 / (s^2 + eps),
    so that the mean rate of a dimension is at least gamma^2 / (2 max sigma_p^2).
    """

    family = Gaussian
    couples = True
    least_batch = LEAST_BATCH

    def __init__(self, posterior: nn.Module, prior: nn.Module, latent: int, gamma: float, eps: float = EPS) -> None:
        super().__init__()
        require_gaussian(posterior, "batch normalisation of a difference of means")
        self.posterior, self.prior, self.gamma = posterior, prior, gamma
        self.norm = nn.BatchNorm1d(latent, eps, affine=False)

    def forward(self, batch: Batch) -> Gaussian:
        q, p = self.posterior(batch), self.prior(batch)
        return Gaussian(p.loc + self.gamma * standardised(self.norm, q.loc - p.loc), q.logvar)


class BatchNormedBoth(nn.Module):
    """q(z|x) = N(mu, sigma^2) with both heads standardised over the batch, then scaled by gamma_mu and gamma_sigma.

    gamma_mu^2 = tau + (1 - tau) sigmoid(theta) and gamma_sigma^2 = (1 - tau) sigmoid(-theta), theta learned from 0: they
    sum to one, and so do E[mu^2] and E[sigma^2], as the prior has it. The rate is -1/2 E[log sigma^2], and that is at
    least -1/2 log gamma_sigma^2 for each dimension. The second head is sigma itself, of either sign.
    """

    family = Gaussian
    couples = True
    least_batch = LEAST_BATCH
    least_sigma = 1e-3

    def __init__(self, posterior: nn.Module, latent: int, tau: float, eps: float = EPS) -> None:
        super().__init__()
        require_gaussian(posterior, "batch normalisation of means and deviations")
        self.posterior, self.tau = posterior, tau
        self.mean = nn.BatchNorm1d(latent, eps, affine=False)
        self.deviation = nn.BatchNorm1d(latent, eps, affine=False)
        self.theta = nn.Parameter(torch.zeros(latent))

    @property
    def scales(self) -> tuple[Tensor, Tensor]:
        """gamma_mu and gamma_sigma, (J,) each."""
        mean = self.tau + (1 - self.tau) * torch.sigmoid(self.theta)
        return mean.sqrt(), ((1 - self.tau) * torch.sigmoid(-self.theta)).sqrt()

    def forward(self, batch: Batch) -> Gaussian:
        q, (gamma_mu, gamma_sigma) = self.posterior(batch), self.scales
        sigma = gamma_sigma * standardised(self.deviation, q.logvar)
        variance = sigma.square().clamp_min(self.least_sigma**2)
        return Gaussian(gamma_mu * standardised(self.mean, q.loc), variance.log())
