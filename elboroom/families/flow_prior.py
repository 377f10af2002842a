"""The flow prior: N(0, I) pushed through affine couplings, with an exact density and fast both ways."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Transform, constraints
from zuko.lazy import LazyComposedTransform, LazyTransform
from zuko.nn import MLP
from zuko.transforms import CouplingTransform, DependentTransform

from elboroom.core.draw import Batch
from elboroom.core.problem import Problem
from elboroom.families.flow import Flowed
from elboroom.families.gaussian import Gaussian


class Unscaled(Transform):
    """z -> (z - t) e^-s: a coupling of real-NVP as its density needs it, from z to the noise."""

    domain = constraints.real
    codomain = constraints.real
    bijective = True
    sign = +1

    def __init__(self, t: Tensor, s: Tensor) -> None:
        super().__init__()
        self.t, self.s = t, s

    def _call(self, x: Tensor) -> Tensor:
        return (x - self.t) * torch.exp(-self.s)

    def _inverse(self, y: Tensor) -> Tensor:
        return y * torch.exp(self.s) + self.t

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self.s.expand(x.shape)


class Coupling(LazyTransform):  # type: ignore[misc]
    """One half is kept and moves the other: t = net(.), s = a tanh(net(.)), a learned from 0, so the identity at first."""

    mask: Tensor

    def __init__(self, kept: Tensor, width: int) -> None:
        super().__init__()
        self.register_buffer("mask", kept, persistent=False)
        moved = int((~kept).sum())
        self.net = MLP(len(kept) - moved, 2 * moved, hidden_features=(width, width), activation=nn.Tanh)
        self.gain = nn.Parameter(torch.zeros(moved))
        with torch.no_grad():
            self.net[-1].weight[:moved] = 0  # the rows of t
            self.net[-1].bias[:moved] = 0

    def meta(self, kept: Tensor) -> Any:
        """How the other half moves."""
        t, raw = self.net(kept).chunk(2, dim=-1)
        return DependentTransform(Unscaled(t, self.gain * torch.tanh(raw)), 1)

    def forward(self, c: Tensor | None = None) -> Any:
        return CouplingTransform(self.meta, self.mask)


class FlowPrior(nn.Module):
    """p(z): e ~ N(0, I) through `layers` affine couplings, which keep the two halves of z in turn; N(0, I) at first."""

    family = Flowed
    zero: Tensor

    def __init__(self, latent: int, layers: int, width: int) -> None:
        super().__init__()
        if latent < 2:
            raise Problem("--prior flow couples one half of z with the other: use --latent 2 or more")
        first = torch.arange(latent) < latent // 2
        self.flow = LazyComposedTransform(*(Coupling(first if i % 2 else ~first, width) for i in range(layers)))
        self.register_buffer("zero", torch.zeros(latent), persistent=False)

    def forward(self, batch: Batch) -> Flowed:
        return Flowed(Gaussian(self.zero, self.zero), self.flow().inv)
