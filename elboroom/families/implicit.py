"""The implicit posterior: samples of a net of x and noise, without a density."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from elboroom.core import ranks
from elboroom.core.draw import Batch
from elboroom.families.gaussian import Gaussian


class Implicit(Distribution):
    """The law of G(h, e), e ~ N(0, I)."""

    arg_constraints: ClassVar[dict[str, Any]] = {}
    has_rsample = True
    has_density = False
    few = 32  # samples from which moments are estimated

    def __init__(self, features: Tensor, generator: nn.Module, noise: int, latent: int) -> None:
        self.features, self.generator, self.noise = features, generator, noise
        super().__init__(features.shape[:-1], torch.Size([latent]), validate_args=False)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        rows = len(tuple(sample_shape))
        e = ranks.normal((*sample_shape, *self.features.shape[:-1], self.noise), self.features, rows)
        h = self.features.expand(*sample_shape, *self.features.shape)
        z: Tensor = self.generator(torch.cat([h, e], -1))
        return z

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with torch.no_grad():
            return self.rsample(sample_shape)

    @property
    def mean(self) -> Tensor:
        """The mean over a few noises that are always the same: a code does not depend on when it is asked for."""
        noise = torch.randn(self.few, self.noise, generator=torch.Generator().manual_seed(0)).to(self.features)
        shape = (self.few, *self.features.shape[:-1])
        e = noise.view(self.few, *([1] * (len(shape) - 1)), self.noise).expand(*shape, self.noise)
        z: Tensor = self.generator(torch.cat([self.features.expand(self.few, *self.features.shape), e], -1))
        return z.mean(0)

    def moments(self) -> Gaussian:
        """The Gaussian of the mean and variance of a few samples, without gradient."""
        z = self.sample((self.few,))
        return Gaussian(z.mean(0), (z.var(0) + 1e-6).log())


class ImplicitPosterior(nn.Module):
    """q(z|x) by sampling: z = G(h(x), e)."""

    family = Implicit

    def __init__(self, net: nn.Module, features: int, noise: int, latent: int, width: int = 256) -> None:
        super().__init__()
        self.net, self.noise, self.latent = net, noise, latent
        self.generator = nn.Sequential(
            nn.Linear(features + noise, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, latent)
        )

    def forward(self, batch: Batch) -> Implicit:
        return Implicit(self.net(batch.x, batch.u), self.generator, self.noise, self.latent)
