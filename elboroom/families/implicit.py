"""Posteriors that are samplers of x and noise: by a net, without a density, or by a linear map, a Gaussian in disguise."""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor, nn

from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.kl import closed_kl
from elboroom.core.law import Law
from elboroom.core.problem import Problem
from elboroom.families.gaussian import LOG_2PI, Gaussian, widened


class Implicit(Law):
    """The law of G(h, e), e ~ N(0, I)."""

    has_rsample = True
    has_density = False
    has_moments = True
    few = 32  # samples from which moments are estimated

    def __init__(self, features: Tensor, generator: nn.Module, noise: int, latent: int) -> None:
        self.features, self.generator, self.noise = features, generator, noise
        super().__init__(features.shape[:-1], torch.Size([latent]))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        rows = len(tuple(sample_shape))
        e = distributed.normal((*sample_shape, *self.features.shape[:-1], self.noise), self.features, rows)
        h = self.features.expand(*sample_shape, *self.features.shape)
        return self._made(h, e)

    def _made(self, h: Tensor, e: Tensor) -> Tensor:
        """G(h, e), in single precision whatever that of the net: else z is rounded by as much as a narrow q is wide."""
        with torch.autocast(h.device.type, enabled=False):
            z: Tensor = self.generator(widened(torch.cat([h, e], -1)))
        return z

    @property
    def mean(self) -> Tensor:
        """The mean over a few noises that are always the same: a code does not depend on when it is asked for."""
        noise = _always(self.few, self.noise).to(self.features)
        shape = (self.few, *self.features.shape[:-1])
        e = noise.view(self.few, *([1] * (len(shape) - 1)), self.noise).expand(*shape, self.noise)
        return self._made(self.features.expand(self.few, *self.features.shape), e).mean(0)

    def moments(self) -> Gaussian:
        """The Gaussian of the mean and variance of a few samples, without gradient."""
        z = self.sample((self.few,))
        return Gaussian(z.mean(0), (z.var(0) + 1e-6).log())


@cache
def _always(rows: int, width: int) -> Tensor:
    """Noise that is the same every time, drawn once."""
    with torch.inference_mode(False):
        return torch.randn(rows, width, generator=torch.Generator().manual_seed(0))


class ImplicitPosterior(nn.Module):
    """q(z|x) by sampling: z = G(h(x), e)."""

    family = Implicit

    def __init__(self, net: nn.Module, features: int, noise: int, latent: int, width: int = 256) -> None:
        super().__init__()
        self.net, self.features, self.noise, self.latent = net, features, noise, latent
        self.generator = nn.Sequential(
            nn.Linear(features + noise, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, latent)
        )

    def law(self, h: Tensor) -> Implicit:
        """q(z|x) of the features h(x)."""
        return Implicit(h, self.generator, self.noise, self.latent)

    def forward(self, batch: Batch) -> Implicit:
        return self.law(self.net(batch.x, batch.u))


class SharedGaussian(Law):
    """N(loc, A A'), a covariance that is the same for every x, A of shape (J, noise). Its density is exact."""

    has_rsample = True

    def __init__(self, loc: Tensor, root: Tensor, features: Tensor | None = None) -> None:
        self.loc, self.root, self.features = loc, root, features
        super().__init__(loc.shape[:-1], loc.shape[-1:])

    @property
    def mean(self) -> Tensor:
        return self.loc

    @cached_property
    def triangle(self) -> Tensor:
        """L with L L' = A A', lower triangular, in double precision, (J, J)."""
        root = self.root.double()
        factor: Tensor
        factor, failed = torch.linalg.cholesky_ex(root @ root.T)
        waits = root.device.type == "cpu" or not torch.is_grad_enabled()  # which no step on a GPU does
        if waits and failed:
            raise Problem("the noise of q(z|x) has collapsed onto fewer dimensions than z has, so it has no density")
        return factor

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """loc + A e, (*sample_shape, B, J)."""
        shape = (*sample_shape, *self.loc.shape[:-1], self.root.shape[1])
        rows = len(tuple(sample_shape)) if self.loc.dim() > 1 else 0
        with torch.autocast(self.loc.device.type, enabled=False):
            return self.loc + distributed.normal(shape, self.loc, rows) @ self.root.T

    def log_prob(self, z: Tensor) -> Tensor:
        left = (z - self.loc).double()
        white = torch.linalg.solve_triangular(self.triangle, left.reshape(-1, left.shape[-1]).T, upper=False)  # (J, n)
        squared: Tensor = white.square().sum(0).view(left.shape[:-1])
        return -0.5 * (squared + left.shape[-1] * LOG_2PI) - self.triangle.diagonal().log().sum()


@closed_kl(SharedGaussian, Gaussian)
def _kl(q: SharedGaussian, p: Gaussian) -> Tensor:
    """1/2 (tr(S^-1 A A') + |mu - m|^2_S - d + log det S - log det A A'), S = diag(s^2), (B,)."""
    spread = q.root.double().square().sum(1)  # (J,)
    logvar = p.logvar.double()
    each = (spread + (q.loc - p.loc).double().square()) * torch.exp(-logvar) - 1 + logvar
    return 0.5 * each.sum(-1) - q.triangle.diagonal().log().sum()


class LinearImplicitPosterior(nn.Module):
    """q(z|x) by sampling from a linear map, z = W_h h(x) + W_e e + b: N(W_h h + b, W_e W_e')."""

    family = SharedGaussian

    def __init__(self, net: nn.Module, features: int, noise: int, latent: int) -> None:
        super().__init__()
        if noise < latent:
            raise ValueError("fewer dimensions of noise than of z leave no density")
        self.net, self.features, self.noise = net, features, noise
        self.generator = nn.Linear(features + noise, latent)

    def law(self, h: Tensor) -> SharedGaussian:
        """q(z|x) of the features h(x)."""
        weight, size = self.generator.weight, h.shape[-1]
        with torch.autocast(h.device.type, enabled=False):
            loc = widened(h) @ weight[:, :size].T + self.generator.bias
        return SharedGaussian(loc, weight[:, size:], h)

    def forward(self, batch: Batch) -> SharedGaussian:
        return self.law(self.net(batch.x, batch.u))
