"""Distributions on the sphere S^(d-1) in R^d: von Mises-Fisher, power spherical, uniform; densities by its surface."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.kl import closed_kl
from elboroom.core.law import Law
from elboroom.families import fisher
from elboroom.families.gaussian import widened

NOTHING = 1e-10  # a length below which there is no direction


def log_area(d: int) -> float:
    """log |S^(d-1)| = log 2 + d/2 log pi - log Gamma(d/2)."""
    return math.log(2) + d / 2 * math.log(math.pi) - math.lgamma(d / 2)


class Spherical(Law, ABC):
    """A law on the sphere that depends on z through the cosine of its angle with the mean direction, and on kappa > 0.

    Arithmetic is in float64 whatever the type of the directions: kappa multiplies every rounding.
    """

    has_rsample = True
    space = "sphere"

    def __init__(self, loc: Tensor, kappa: Tensor) -> None:
        self.loc, self.kappa = loc, kappa.double()  # (B, d) of norm 1; (B,) or ()
        self.d = loc.shape[-1]
        super().__init__(loc.shape[:-1], loc.shape[-1:])

    @property
    def mean(self) -> Tensor:
        """The mean direction, a point of the sphere; E[z] itself lies inside, `resultant` times as long."""
        return self.loc

    @property
    @abstractmethod
    def resultant(self) -> Tensor:
        """E[m.z], the length of E[z]."""

    @abstractmethod
    def log_prob_of(self, cosine: Tensor) -> Tensor:
        """log q(z) where m.z is this."""

    @abstractmethod
    def negentropy(self) -> Tensor:
        """E log q(z)."""

    @abstractmethod
    def angles(self, kappa: Tensor, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """Draws of the cosine of the angle and of its sine, in float64; with the gradient of kappa where it has one."""

    def entropy(self) -> Tensor:
        return -self.negentropy().expand(self.batch_shape).to(self.loc)

    def log_prob(self, z: Tensor) -> Tensor:
        loc, z64 = F.normalize(self.loc.double(), dim=-1), F.normalize(z.double(), dim=-1)
        cosine = 1 - (z64 - loc).square().sum(-1) / 2  # no rounding of a length, which kappa multiplies
        return self.log_prob_of(cosine).to(z)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """cos m + sin v, v uniform among the directions at right angles to m, (*sample_shape, B, d).

        v is noise without its part along m, of which little is left where the two are nearly parallel: in few dimensions that
        happens, the slope of z in m is large there, and in three or fewer it has no variance.
        """
        shape = (*sample_shape, *self.batch_shape)
        rows = len(tuple(sample_shape)) if self.batch_shape else 0
        cosine, sine = self._own_angles(shape, rows)
        noise, loc = (
            distributed.normal((*shape, self.d), self.loc, rows).double(),
            F.normalize(self.loc.double(), dim=-1),
        )
        along = (noise * loc).sum(-1, keepdim=True)
        across = torch.addcmul(noise, along, loc, value=-1)
        length = torch.linalg.vector_norm(across, dim=-1, keepdim=True).clamp_min(1e-12)
        return torch.addcmul(cosine * loc, sine / length, across).to(self.loc)

    def _own_angles(self, shape: tuple[int, ...], rows: int) -> tuple[Tensor, Tensor]:
        """Angles are drawn for the global batch and sliced, since how much noise a rejection takes is not known before.

        The other parts of a batch that is taken in parts are not known either: this one stands for them.
        """
        share, of = distributed.share()
        if of == 1:
            cosine, sine = self.angles(self.kappa, shape)
        else:
            size, kappa = shape[rows], self.kappa
            if kappa.dim():
                ranks = torch.split(distributed.gather(kappa.detach()), size)
                others = [each for each in ranks for _ in range(of // len(ranks))]
                kappa = torch.cat([*others[:share], kappa, *others[share + 1 :]])
            whole = (*shape[:rows], size * of, *shape[rows + 1 :])
            cosine, sine = (t.narrow(rows, share * size, size) for t in self.angles(kappa, whole))
        return cosine.unsqueeze(-1), sine.unsqueeze(-1)


# -- von Mises-Fisher --------------------------------------------------------------------------------------------------


class VonMisesFisher(Spherical):
    """vMF(m, kappa): log q(z) = kappa m.z + (d/2 - 1) log kappa - d/2 log 2 pi - log I_(d/2-1)(kappa)."""

    @property
    def resultant(self) -> Tensor:
        return fisher.resultant(self.kappa, self.d)

    def log_prob_of(self, cosine: Tensor) -> Tensor:
        return fisher.log_peak(self.kappa, self.d) + self.kappa * (cosine - 1)

    def negentropy(self) -> Tensor:
        return self.log_prob_of(self.resultant)  # it is linear in the cosine

    def angles(self, kappa: Tensor, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        omega = fisher.wood(kappa, self.d, shape)
        if kappa.requires_grad and torch.is_grad_enabled():
            omega = fisher.pathwise(kappa, omega, self.d)
        return omega, torch.sqrt(((1 - omega) * (1 + omega)).clamp_min(1e-30))


# -- power spherical ---------------------------------------------------------------------------------------------------


class PowerSpherical(Spherical):
    """q(z) = (1 + m.z)^kappa / N, N = 2^(a+b) pi^b Gamma(a) / Gamma(a+b), b = (d - 1)/2, a = b + kappa.

    (1 + m.z)/2 ~ Beta(a, b): no Bessel function, no rejection, and gradients of kappa that torch has.
    """

    @property
    def beta(self) -> float:
        """(d - 1) / 2."""
        return (self.d - 1) / 2

    @property
    def resultant(self) -> Tensor:
        return self.kappa / (self.kappa + 2 * self.beta)

    @property
    def _log_constant(self) -> Tensor:
        a, b = self.kappa + self.beta, self.beta
        return (a + b) * math.log(2) + b * math.log(math.pi) + torch.lgamma(a) - torch.lgamma(a + b)

    def log_prob_of(self, cosine: Tensor) -> Tensor:
        return self.kappa * torch.log((1 + cosine).clamp_min(1e-300)) - self._log_constant

    def negentropy(self) -> Tensor:
        a, b = self.kappa + self.beta, self.beta
        return self.kappa * (math.log(2) + torch.digamma(a) - torch.digamma(a + b)) - self._log_constant

    def angles(self, kappa: Tensor, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        a = (kappa + self.beta).expand(shape)
        left, right = torch._standard_gamma(a), torch._standard_gamma(torch.full_like(a, self.beta))
        return (left - right) / (left + right), 2 * torch.sqrt(left * right) / (left + right)


# -- uniform -----------------------------------------------------------------------------------------------------------


class UniformSphere(Law):
    """1 / |S^(d-1)| everywhere; drawn as a normalised Gaussian."""

    space = "sphere"

    def __init__(self, zero: Tensor) -> None:
        self.zero = zero
        super().__init__(torch.Size(), zero.shape)

    @property
    def mean(self) -> Tensor:
        return self.zero

    @property
    def variance(self) -> Tensor:
        return torch.full_like(self.zero, 1 / len(self.zero))

    def log_prob(self, z: Tensor) -> Tensor:
        return torch.full(z.shape[:-1], -log_area(z.shape[-1]), dtype=z.dtype, device=z.device)

    def entropy(self) -> Tensor:
        return torch.full((), log_area(len(self.zero)), dtype=self.zero.dtype, device=self.zero.device)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return F.normalize(distributed.normal((*sample_shape, *self.zero.shape), self.zero, 0), dim=-1)


@closed_kl(VonMisesFisher, UniformSphere)
@closed_kl(PowerSpherical, UniformSphere)
def _kl(q: Spherical, p: UniformSphere) -> Tensor:
    """E log q(z) + log |S^(d-1)|, (B,): it depends on kappa alone."""
    return (q.negentropy() + log_area(q.d)).expand(q.batch_shape).to(q.loc)


# -- modules -----------------------------------------------------------------------------------------------------------


def direction(f: Tensor) -> Tensor:
    """f / |f|, (B, d); the first axis where f is nothing, as an encoder without biases says of a blank image."""
    axis = torch.zeros_like(f[:1])
    axis[:, 0] = 1
    length = torch.linalg.vector_norm(f, dim=-1, keepdim=True)
    return torch.where(length > NOTHING, F.normalize(f, dim=-1), axis)


class SphericalPosterior(nn.Module):
    """q(z|x) on the sphere around f(x) / |f(x)|, with a kappa that is constant, or read off x as well.

    A constant kappa makes the rate a constant and needs no gradient through the angle. Learned, it is
    kappa softplus(r(x) + 0.54), which starts near the constant; its gradient is pathwise through the angle.
    """

    def __init__(self, net: nn.Module, family: type[Spherical], kappa: float, learned: bool = False) -> None:
        super().__init__()
        self.net, self.family, self.kappa, self.learned = net, family, kappa, learned
        self.of_one_shape = not learned

    def forward(self, batch: Batch) -> Spherical:
        return self.law(self.net(batch.x, batch.u))

    def law(self, out: Tensor) -> Spherical:
        """q(z|x) of what the net emits, (B, d), or (B, d + 1)."""
        out = widened(out)
        if not self.learned:
            kappa = torch.tensor(self.kappa, dtype=torch.float64, device=out.device)
            return self.family(direction(out), kappa)
        start = math.log(math.e - 1)  # where softplus is one
        kappa = self.kappa * F.softplus(out[:, -1].double() + start).clamp_min(1e-6)
        return self.family(direction(out[:, :-1]), kappa)


class SpherePrior(nn.Module):
    """p(z) uniform on the sphere."""

    family = UniformSphere
    even = True
    zero: Tensor

    def __init__(self, latent: int) -> None:
        super().__init__()
        self.register_buffer("zero", torch.zeros(latent), persistent=False)

    def forward(self, batch: Batch) -> UniformSphere:
        return UniformSphere(self.zero)
