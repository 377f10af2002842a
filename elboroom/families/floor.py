"""A Gaussian posterior whose rate cannot fall below a minimum, by the form of its mean and deviation."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from scipy.special import lambertw
from torch import Tensor, nn

from elboroom.core.batch import Batch
from elboroom.families.gaussian import Gaussian, require_gaussian

Sign = Literal["positive", "learned"]


def deviations(rate: float) -> tuple[float, float]:
    """The sigmas at which a Gaussian with mean 0 costs `rate` nats: the two roots v of log v - v + 2 rate + 1 = 0."""
    low, high = (float(np.sqrt(-lambertw(-np.exp(-2 * rate - 1), branch).real)) for branch in (0, -1))
    return low, high


class Floored(nn.Module):
    """q(z|x) = N(mu, sigma^2) with KL(q || N(0, 1)) = rate + relu(m) / 2 in each dimension, m and a the heads of a net.

    sigma = l + (u - l) sigmoid(a) lies where a mean of 0 costs at most `rate`, and mu^2 = 2 rate + 1 + log sigma^2 -
    sigma^2 + relu(m) adds what is missing. As published mu is positive; with a learned sign mu has that of m, and |m|
    stands for relu(m).
    """

    family = Gaussian

    def __init__(self, posterior: nn.Module, rate: float, sign: Sign = "positive") -> None:
        super().__init__()
        require_gaussian(posterior, "a minimum rate")
        self.posterior, self.rate, self.sign = posterior, rate, sign
        self.low, self.high = deviations(rate)

    def forward(self, batch: Batch) -> Gaussian:
        q = self.posterior(batch)
        m, a = q.loc, q.logvar
        sigma = self.low + (self.high - self.low) * torch.sigmoid(a)
        logvar = 2 * sigma.log()
        more = m.relu() if self.sign == "positive" else m.abs()
        size = (2 * self.rate + 1 + logvar - sigma.square() + more).clamp_min(1e-8).sqrt()
        mu: Tensor = size if self.sign == "positive" else torch.where(m < 0, -size, size)
        return Gaussian(mu, logvar)
