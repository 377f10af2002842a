"""Likelihoods of images and real vectors: Bernoulli, Gaussian, discretised logistic."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elboroom.core.batch import Batch
from elboroom.core.law import Law
from elboroom.families.gaussian import LOG_2PI


class Pixels(Law, ABC):
    """A distribution whose event is an image (C, H, W) or a vector (D,), its coordinates independent given z."""

    def __init__(self, centre: Tensor, event: int) -> None:
        self.event = event
        super().__init__(centre.shape[:-event], centre.shape[-event:])

    @abstractmethod
    def log_prob_per_pixel(self, x: Tensor) -> Tensor:
        """One value a pixel and channel."""

    def log_prob(self, x: Tensor) -> Tensor:
        return self.log_prob_per_pixel(x).flatten(-self.event).sum(-1)


class Bernoulli(Pixels):
    """Bernoulli(sigmoid(logits)), straight from logits. Grey targets are taken as probabilities."""

    levels = 2

    def __init__(self, logits: Tensor, event: int) -> None:
        self.logits = logits
        super().__init__(logits, event)

    @property
    def mean(self) -> Tensor:
        return torch.sigmoid(self.logits)

    def log_prob_per_pixel(self, x: Tensor) -> Tensor:
        return -F.binary_cross_entropy_with_logits(self.logits, x.expand_as(self.logits), reduction="none")

    def log_prob(self, x: Tensor) -> Tensor:
        """The same, with one pass less over the pixels."""
        nll = F.binary_cross_entropy_with_logits(self.logits, x.expand_as(self.logits), reduction="none")
        return -nll.flatten(-self.event).sum(-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return torch.bernoulli(self.mean.detach().expand(*sample_shape, *self.logits.shape))


class Normal(Pixels):
    """N(mean, exp(2 log_sigma)), constant kept, so that values of different sigma compare."""

    def __init__(self, mean: Tensor, log_sigma: Tensor, event: int) -> None:
        self.loc, self.log_sigma = mean, log_sigma
        super().__init__(mean, event)

    @property
    def mean(self) -> Tensor:
        return self.loc

    def log_prob_per_pixel(self, x: Tensor) -> Tensor:
        return -0.5 * ((x - self.loc) * torch.exp(-self.log_sigma)).square() - self.log_sigma - 0.5 * LOG_2PI

    def sample(self, sample_shape: Any = ()) -> Tensor:
        loc = self.loc.detach().expand(*sample_shape, *self.loc.shape)
        return loc + self.log_sigma.detach().exp() * torch.randn_like(loc)


class DiscretisedLogistic(Pixels):
    """A logistic density integrated over each of 256 grey levels; the ends take the tails. x = level / 255."""

    levels = 256

    def __init__(self, mean: Tensor, log_scale: Tensor, event: int) -> None:
        self.loc, self.log_scale = mean, log_scale
        super().__init__(mean, event)

    @property
    def mean(self) -> Tensor:
        return self.loc.clamp(0, 1)

    def log_prob_per_pixel(self, x: Tensor) -> Tensor:
        inverse = torch.exp(-self.log_scale)
        high = (x + 0.5 / 255 - self.loc) * inverse
        low = (x - 0.5 / 255 - self.loc) * inverse
        # sigmoid(high) - sigmoid(low) = sigmoid(high) sigmoid(-low) (1 - exp(low - high)), with no cancellation
        below, above = F.logsigmoid(high), F.logsigmoid(-low)
        inner = below + above + torch.log(-torch.expm1(-inverse / 255))
        return torch.where(x < 0.25 / 255, below, torch.where(x > 1 - 0.25 / 255, above, inner))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        loc = self.loc.detach().expand(*sample_shape, *self.loc.shape)
        u = torch.rand_like(loc).clamp(1e-6, 1 - 1e-6)
        value = loc + self.log_scale.detach().exp() * (u.log() - (-u).log1p())
        return (value * 255).round().clamp(0, 255) / 255


class PixelLikelihood(nn.Module):
    """p(x|z,u) from a decoder: z of shape (K, B, J) -> a Pixels distribution of batch shape (K, B)."""

    family: type[Pixels]
    channels: int  # values that the net emits for a channel
    options: tuple[str, ...] = ()  # of the model, by the names of its further arguments
    learns_sigma = False

    def __init__(self, net: nn.Module, event: int) -> None:
        super().__init__()
        self.net, self.event = net, event

    def decode(self, z: Tensor, batch: Batch) -> Tensor:
        """What the net emits, (K, B, *event)."""
        k, b = z.shape[:2]
        u = None if batch.u is None else batch.u.expand(k, *batch.u.shape).flatten(0, 1)
        out: Tensor = self.net(z.flatten(0, 1), u)
        return out.view(k, b, *out.shape[1:])


class BernoulliLikelihood(PixelLikelihood):
    """p(x|z) = Bernoulli from logits."""

    family = Bernoulli
    channels = 1

    def forward(self, z: Tensor, batch: Batch) -> Bernoulli:
        return Bernoulli(self.decode(z, batch), self.event)


class GaussianLikelihood(PixelLikelihood):
    """p(x|z) = N(f(z), sigma^2) with one sigma for all pixels, fixed or learned."""

    family = Normal
    channels = 1
    options = ("sigma",)
    log_sigma: Tensor

    def __init__(self, net: nn.Module, event: int, sigma: float = 1.0, learned: bool = False) -> None:
        super().__init__(net, event)
        log_sigma, self.learns_sigma = torch.tensor(math.log(sigma)), learned
        if learned:
            self.log_sigma = nn.Parameter(log_sigma)
        else:
            self.register_buffer("log_sigma", log_sigma, persistent=False)

    def forward(self, z: Tensor, batch: Batch) -> Normal:
        return Normal(self.decode(z, batch), self.log_sigma, self.event)


class LearnedGaussianLikelihood(GaussianLikelihood):
    """p(x|z) = N(f(z), sigma^2) with one sigma for all pixels, learned from where it starts."""

    def __init__(self, net: nn.Module, event: int, sigma: float = 1.0) -> None:
        super().__init__(net, event, sigma, learned=True)


class OptimalGaussianLikelihood(PixelLikelihood):
    """p(x|z) = N(f(z), sigma^2) with one sigma that follows the error: learned ten times as fast as the weights.

    Its best value is the root mean squared error. At the pace of the weights it comes there after thousands of steps, in which
    the rate counts for too much.
    """

    family = Normal
    channels = 1
    options = ("sigma",)
    learns_sigma = True
    pace = 10.0

    def __init__(self, net: nn.Module, event: int, sigma: float = 1.0) -> None:
        super().__init__(net, event)
        self.slow_log_sigma = nn.Parameter(torch.tensor(math.log(sigma) / self.pace))

    def forward(self, z: Tensor, batch: Batch) -> Normal:
        return Normal(self.decode(z, batch), self.pace * self.slow_log_sigma, self.event)


class GaussianPerPixelLikelihood(PixelLikelihood):
    """p(x|z) = N(f(z), sigma(z)^2), a sigma for every pixel, bounded below by e^-5."""

    family = Normal
    channels = 2
    learns_sigma = True

    def forward(self, z: Tensor, batch: Batch) -> Normal:
        mean, raw = self.decode(z, batch).chunk(2, dim=2)
        shape = mean.shape[:2] + batch.x.shape[1:]  # vectors come as (K, B, 1, D)
        return Normal(mean.reshape(shape), F.softplus(raw.reshape(shape) + 5) - 5, self.event)


class LogisticLikelihood(PixelLikelihood):
    """p(x|z) = discretised logistic over 256 levels, mean and scale for every pixel."""

    family = DiscretisedLogistic
    channels = 2
    learns_sigma = True

    def forward(self, z: Tensor, batch: Batch) -> DiscretisedLogistic:
        mean, raw = self.decode(z, batch).chunk(2, dim=2)
        return DiscretisedLogistic(mean + 0.5, F.softplus(raw + 5) - 7, self.event)
