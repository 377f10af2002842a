"""The flow prior: N(0, I) pushed through affine couplings, with an exact density and fast both ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Transform, constraints
from zuko.lazy import LazyComposedTransform, LazyTransform
from zuko.nn import MLP
from zuko.transforms import CouplingTransform, DependentTransform

from elboroom.core.batch import Batch
from elboroom.core.problem import Problem
from elboroom.families.flow import Flowed
from elboroom.families.gaussian import Gaussian


class InverseAffine(Transform):
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


class Coupling(CouplingTransform):  # type: ignore[misc]
    """A coupling that is told which dimensions are kept and which move: to find them in a mask is to wait for the device."""

    def __init__(self, meta: Callable[[Tensor], Any], kept: Tensor, moved: Tensor) -> None:
        Transform.__init__(self)
        self.meta, self.idx_a, self.idx_b = meta, kept, moved


class AffineCoupling(LazyTransform):  # type: ignore[misc]
    """One half is kept and moves the other: t = net(.), s = a tanh(net(.)), a learned from 0, so the identity at first."""

    kept: Tensor
    moved: Tensor

    def __init__(self, kept: Tensor, moved: Tensor, width: int) -> None:
        super().__init__()
        self.register_buffer("kept", kept, persistent=False)
        self.register_buffer("moved", moved, persistent=False)
        self.net = MLP(len(kept), 2 * len(moved), hidden_features=(width, width), activation=nn.Tanh)
        self.gain = nn.Parameter(torch.zeros(len(moved)))
        with torch.no_grad():
            self.net[-1].weight[: len(moved)] = 0  # the rows of t
            self.net[-1].bias[: len(moved)] = 0

    def meta(self, kept: Tensor) -> Any:
        """How the other half moves."""
        t, raw = self.net(kept).chunk(2, dim=-1)
        return DependentTransform(InverseAffine(t, self.gain * torch.tanh(raw)), 1)

    def forward(self, c: Tensor | None = None) -> Any:
        return Coupling(self.meta, self.kept, self.moved)


class FlowPrior(nn.Module):
    """p(z): e ~ N(0, I) through `layers` affine couplings, which keep the two halves of z in turn; N(0, I) at first."""

    family = Flowed
    zero: Tensor

    def __init__(self, latent: int, layers: int, width: int) -> None:
        super().__init__()
        if latent < 2:
            raise Problem("--prior flow couples two halves of z; use --latent 2 or more")
        first, second = torch.arange(latent).tensor_split([latent // 2])
        turns = (second, first), (first, second)  # kept and moved
        self.flow = LazyComposedTransform(*(AffineCoupling(*turns[i % 2], width) for i in range(layers)))
        self.register_buffer("zero", torch.zeros(latent), persistent=False)

    def forward(self, batch: Batch) -> Flowed:
        return Flowed(Gaussian(self.zero, self.zero), self.flow().inv)
