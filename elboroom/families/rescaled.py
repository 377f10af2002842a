"""Rescaled: a Gaussian likelihood whose net works in standardised units, and whose density is of the data as it came."""

from __future__ import annotations

from torch import Tensor, nn

from elboroom.core.batch import Batch
from elboroom.families.pixels import Normal, PixelLikelihood


class Rescaled(nn.Module):
    """p(x|z) = N(m + s f(z), (s sigma)^2) where the likelihood inside is N(f(z), sigma^2) of (x - m) / s.

    The log-Jacobian -sum log s is in the widths, so that nats are of x itself, and its mean is in the units of x.
    """

    family = Normal
    centre: Tensor
    scale: Tensor

    def __init__(self, likelihood: PixelLikelihood, centre: Tensor, scale: Tensor) -> None:
        super().__init__()
        self.likelihood = likelihood
        self.learns_sigma, self.event = likelihood.learns_sigma, likelihood.event
        self.register_buffer("centre", centre)
        self.register_buffer("scale", scale)

    def forward(self, z: Tensor, batch: Batch) -> Normal:
        px: Normal = self.likelihood(z, batch)
        return Normal(self.centre + self.scale * px.loc, px.log_sigma + self.scale.log(), self.event)


class Standardised(nn.Module):
    """A net that reads (x - m) / s: net(x, u) -> what the net inside makes of it."""

    centre: Tensor
    scale: Tensor

    def __init__(self, net: nn.Module, centre: Tensor, scale: Tensor) -> None:
        super().__init__()
        self.net = net
        self.register_buffer("centre", centre)
        self.register_buffer("scale", scale)

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        out: Tensor = self.net((x - self.centre) / self.scale, u)
        return out
