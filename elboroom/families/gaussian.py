"""The diagonal Gaussian: as posterior, as fixed prior and as prior given u."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.kl import called, closed_kl
from elboroom.core.law import Law
from elboroom.core.problem import Problem

LOG_2PI = math.log(2 * math.pi)


class Gaussian(Law):
    """N(loc, diag(exp(logvar))) over the last dimension."""

    has_rsample = True
    factorises = True
    diagonal = True
    has_parts = True

    def __init__(self, loc: Tensor, logvar: Tensor) -> None:
        self.loc, self.logvar = loc, logvar
        super().__init__(loc.shape[:-1], loc.shape[-1:])

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return torch.exp(0.5 * self.logvar)

    @property
    def variance(self) -> Tensor:
        return self.logvar.exp()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """loc + sigma * eps, (*sample_shape, B, D)."""
        shape = (*sample_shape, *self.loc.shape)
        rows = len(tuple(sample_shape)) if self.loc.dim() > 1 else 0
        return self.loc + self.stddev * distributed.normal(shape, self.loc, rows)

    def log_prob_per_dim(self, z: Tensor) -> Tensor:
        """log N(z_j), one value a dimension."""
        return -0.5 * (((z - self.loc) * torch.exp(-0.5 * self.logvar)).square() + self.logvar + LOG_2PI)

    def log_prob(self, z: Tensor) -> Tensor:
        return self.log_prob_per_dim(z).sum(-1)

    def entropy(self) -> Tensor:
        """1/2 sum_j log(2 pi e sigma_j^2)."""
        return 0.5 * (self.logvar + LOG_2PI + 1).sum(-1)

    def part(self, where: slice) -> Gaussian:
        """The law of some of its dimensions."""
        return Gaussian(self.loc[..., where], self.logvar[..., where])

    def gathered(self) -> Gaussian:
        """The same distributions for the rows of all ranks."""
        return Gaussian(distributed.gather(self.loc), distributed.gather(self.logvar))


@closed_kl(Gaussian, Gaussian, per_dim=True)
def _kl(q: Gaussian, p: Gaussian) -> Tensor:
    """1/2 ((mu - m)^2 / s^2 + sigma^2 / s^2 - log(sigma^2 / s^2) - 1), (B, D)."""
    log_ratio = q.logvar - p.logvar
    return 0.5 * ((q.loc - p.loc).square() * torch.exp(-p.logvar) + log_ratio.exp() - log_ratio - 1)


def require_gaussian(posterior: nn.Module, what: str) -> None:
    """Refuses, in a sentence, a posterior that is no diagonal Gaussian."""
    if posterior.family is not Gaussian:
        raise Problem(f"{what} needs a Gaussian q(z|x), not {called(posterior.family)}; use --posterior gaussian")


def widened(out: Tensor) -> Tensor:
    """In single precision at least: in less, a z is rounded by as much as a narrow q(z|x) is wide."""
    return out.to(torch.promote_types(out.dtype, torch.float32))


class GaussianPosterior(nn.Module):
    """q(z|x,u) = N(mu, sigma^2), both read off one net that emits (mu, log sigma^2)."""

    family = Gaussian

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def law(self, out: Tensor) -> Gaussian:
        """q(z|x) of what the net emits, in no less than single precision, whatever that of the net."""
        loc, logvar = widened(out).chunk(2, dim=-1)  # (B, J) each
        return Gaussian(loc, logvar)

    def forward(self, batch: Batch) -> Gaussian:
        return self.law(self.net(batch.x, batch.u))


class StandardNormal(nn.Module):
    """p(z) = N(0, I)."""

    family = Gaussian
    zero: Tensor

    def __init__(self, latent: int) -> None:
        super().__init__()
        self.register_buffer("zero", torch.zeros(latent), persistent=False)

    def forward(self, batch: Batch) -> Gaussian:
        return Gaussian(self.zero, self.zero)


class ScaledNormal(nn.Module):
    """p(z) = N(0, sigma^2 I)."""

    family = Gaussian
    zero: Tensor

    def __init__(self, latent: int, sigma: float) -> None:
        super().__init__()
        self.register_buffer("zero", torch.zeros(latent), persistent=False)
        self.logvar = 2 * math.log(sigma)

    def forward(self, batch: Batch) -> Gaussian:
        return Gaussian(self.zero, torch.full_like(self.zero, self.logvar))


class Unmatched(Gaussian):
    """The family of a prior that no code was matched to: it has no density that would mean something."""

    has_density = False


class NoPrior(StandardNormal):
    """Stands where a method has no prior: nothing was matched to it, so to sample is to fit a density to the codes."""

    family = Unmatched


class ConditionalNormal(nn.Module):
    """p(z|u) = N(mu(u), sigma^2(u)), linear in a one-hot u, or through a hidden layer; starts as N(0, I)."""

    family = Gaussian
    of_labels = True

    def __init__(self, latent: int, given: int, hidden: int = 0) -> None:
        super().__init__()
        self.deep = nn.Sequential(nn.Linear(given, hidden), nn.Tanh()) if hidden else nn.Identity()
        self.table = nn.Linear(hidden or given, 2 * latent)
        nn.init.zeros_(self.table.weight)
        nn.init.zeros_(self.table.bias)

    def spread(self, std: float = 0.1) -> ConditionalNormal:
        """The same with means that differ from the start, as what divides them by their deviation needs."""
        torch.nn.init.normal_(self.table.weight.data[: self.table.out_features // 2], std=std)
        return self

    def forward(self, batch: Batch) -> Gaussian:
        loc, logvar = widened(self.table(self.deep(batch.u))).chunk(2, dim=-1)
        return Gaussian(loc, logvar)


class NoLatent(nn.Module):
    """Stands where there is no z: a Gaussian of no dimensions, whose rate is zero."""

    family = Gaussian

    def forward(self, batch: Batch) -> Gaussian:
        none = torch.zeros(len(batch.x), 0, device=batch.x.device)
        return Gaussian(none, none)
