"""The angle between z and the mean direction under von Mises-Fisher: its constants, its draws, their gradient in kappa."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elboroom.families.bessel import log_bessel


class _Resultant(torch.autograd.Function):
    """A(kappa) = I_(d/2)(kappa) / I_(d/2-1)(kappa), with A' = 1 - A^2 - (d - 1) A / kappa."""

    @staticmethod
    def forward(ctx: Any, kappa: Tensor, d: int) -> Tensor:
        ratio = log_bessel(d / 2 - 1, kappa)[1]
        ctx.save_for_backward(kappa, ratio)
        ctx.d = d
        return ratio

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        kappa, a = ctx.saved_tensors
        return grads[0] * _slope(kappa, a, ctx.d), None


def _slope(kappa: Tensor, a: Tensor, d: int) -> Tensor:
    """A'(kappa) = 1 - A^2 - (d - 1) A / kappa; where that cancels, its expansion in 1 / kappa."""
    n, far = d - 1, (2.5e15 * d**3) ** 0.25  # where rounding of the one is as large as what the other leaves out
    expanded = n / (2 * kappa.square()) * (1 - (d - 3) / (2 * kappa) - 3 * (d - 3) / (4 * kappa.square()))
    return torch.where(kappa > far, expanded, 1 - a * a - n * a / kappa)


class _LogPeak(torch.autograd.Function):
    """log q(m), the log-density at the mode: kappa + (d/2 - 1) log kappa - d/2 log 2 pi - log I_(d/2-1)(kappa)."""

    @staticmethod
    def forward(ctx: Any, kappa: Tensor, d: int) -> Tensor:
        ctx.save_for_backward(kappa)
        ctx.d, order = d, d / 2 - 1
        return order * kappa.log() - d / 2 * math.log(2 * math.pi) - log_bessel(order, kappa)[0]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (kappa,) = ctx.saved_tensors
        return grads[0] * (1 - resultant(kappa, ctx.d)), None


def resultant(kappa: Tensor, d: int) -> Tensor:
    """E[m.z] = A(kappa)."""
    found: Tensor = _Resultant.apply(kappa, d)  # type: ignore[no-untyped-call]
    return found


def log_peak(kappa: Tensor, d: int) -> Tensor:
    """log q(m)."""
    found: Tensor = _LogPeak.apply(kappa, d)  # type: ignore[no-untyped-call]
    return found


def wood(kappa: Tensor, d: int, shape: tuple[int, ...]) -> Tensor:
    """Cosines of the angle under von Mises-Fisher, for all elements at once by rejection (Wood 1994), float64.

    Proposals (1 - (1 + b) y) / (1 - (1 - b) y), y ~ Beta((d-1)/2, (d-1)/2), of which 2 y - 1 is a coordinate of a uniform
    point on the sphere and is drawn as such from two uniforms. More than half are accepted, so few rounds are needed.
    """
    kappa = kappa.detach().expand(shape).flatten() if kappa.dim() else kappa.detach()
    n = d - 1.0
    b = n / (torch.sqrt(4 * kappa.square() + n * n) + 2 * kappa)
    x0 = (1 - b) / (1 + b)
    c = kappa * x0 + n * torch.log1p(-x0.square())
    found = torch.empty(math.prod(shape), dtype=torch.float64, device=kappa.device)
    left = torch.arange(len(found), device=kappa.device)
    while len(left):
        k, b_, x0_, c_ = (t[left] if t.dim() else t for t in (kappa, b, x0, c))
        u, v, w = torch.rand(3, len(left), dtype=torch.float64, device=kappa.device)
        y = 0.5 + 0.5 * torch.sqrt(1 - u.pow(2 / (d - 2) if d > 2 else math.inf)) * torch.cos(2 * math.pi * v)
        omega = (1 - (1 + b_) * y) / (1 - (1 - b_) * y)
        found[left] = omega
        refused = k * omega + n * torch.log1p(-x0_ * omega) - c_ < torch.log(w)  # false for nan, which is passed on
        left = left[refused]
    return found.view(shape)


class _Pathwise(torch.autograd.Function):
    """omega itself, with d omega / d kappa = -(dF/dkappa) / (dF/domega), F its distribution function: exact, no score.

    In the angle s the density is g(s) = e^(kappa cos s) sin^(d-2) s / Z, so that dF/dkappa is the integral of
    (cos s - A) g(s), taken on the side of the draw where g falls and A - cos s keeps its sign.
    """

    nodes, weights = (torch.from_numpy(part) for part in np.polynomial.legendre.leggauss(64))
    reach = 12.0  # in units of 1 / sqrt(max(kappa, d - 2)), beyond which g has vanished

    @staticmethod
    def forward(ctx: Any, kappa: Tensor, omega: Tensor, d: int) -> Tensor:
        ctx.save_for_backward(kappa, omega)
        ctx.d = d
        return omega.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        kappa, omega = ctx.saved_tensors
        d, a, at = ctx.d, resultant(kappa, ctx.d), torch.arccos(omega.clamp(-1, 1)).clamp(1e-12, math.pi - 1e-12)
        width = _Pathwise.reach / torch.sqrt(kappa.clamp_min(max(d - 2.0, 0.5)))
        above = omega > a
        low = torch.where(above, (at - width).clamp_min(0), at)
        high = torch.where(above, at, (at + width).clamp_max(math.pi))
        half = ((high - low) / 2).unsqueeze(-1)
        s = half * _Pathwise.nodes.to(omega) + ((high + low) / 2).unsqueeze(-1)  # (..., 64)
        k, cosine = kappa.unsqueeze(-1), torch.cos(at).unsqueeze(-1)
        ratio = k * (torch.cos(s) - cosine) + (d - 2) * torch.log(torch.sin(s) / torch.sin(at).unsqueeze(-1))
        inside = (torch.cos(s) - a.unsqueeze(-1)).abs() * ratio.exp() * _Pathwise.weights.to(omega)
        slope = grads[0] * torch.sin(at) * (half * inside).sum(-1)
        return slope.sum_to_size(kappa.shape), None, None


def pathwise(kappa: Tensor, omega: Tensor, d: int) -> Tensor:
    """The draws omega, with their gradient in kappa."""
    found: Tensor = _Pathwise.apply(kappa, omega, d)  # type: ignore[no-untyped-call]
    return found
