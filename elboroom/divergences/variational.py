"""f-divergences by their variational bound: D_f(P||Q) >= E_P T - E_Q f*(T), tight at T* = f'(dP/dQ)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from elboroom.core.problem import unknown

LOG2 = math.log(2)
Map = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class FDivergence:
    """A row of the table: f, its conjugate f*, the optimal critic T*, and the map of a free output v into f*'s domain."""

    name: str
    title: str
    f: Map  # of u = dP/dQ
    conjugate: Map  # f*(t)
    optimum: Map  # T*(r)
    output: Map  # t of v
    dual: Map  # f*(t of v), in a form that does not overflow
    unit: str = ""
    limits: Callable[[float], tuple[float, float]] = lambda n: (-math.inf, math.inf)  # v where T and f*(T) stay below n


def _jsd(u: Tensor) -> Tensor:
    return 0.5 * (torch.xlogy(u, u) - (u + 1) * torch.log((u + 1) / 2))


_TABLE = (
    FDivergence(
        "kl", "KL(P, Q)",
        f=lambda u: torch.xlogy(u, u),
        conjugate=lambda t: torch.exp(t - 1),
        optimum=lambda r: 1 + torch.log(r),
        output=lambda v: v,
        dual=lambda v: torch.exp(v - 1),
        unit="nats",
        limits=lambda n: (-math.inf, 1 + math.log(n)),
    ),
    FDivergence(
        "reverse-kl", "KL(Q, P)",
        f=lambda u: -torch.log(u),
        conjugate=lambda t: -1 - torch.log(-t),  # t < 0
        optimum=lambda r: -1 / r,
        output=lambda v: -torch.exp(v),
        dual=lambda v: -1 - v,
        unit="nats",
        limits=lambda n: (-math.inf, math.log(n)),
    ),
    FDivergence(
        "jsd", "Jensen-Shannon",
        f=_jsd,
        conjugate=lambda t: -0.5 * torch.log(2 - torch.exp(2 * t)),  # t < (log 2) / 2
        optimum=lambda r: 0.5 * torch.log(2 * r / (1 + r)),
        output=lambda v: 0.5 * (LOG2 - F.softplus(-v)),
        dual=lambda v: 0.5 * (F.softplus(v) - LOG2),
        unit="nats",
    ),
    FDivergence(
        "gan", "GAN, 2 JSD - log 4",
        f=lambda u: torch.xlogy(u, u) - (u + 1) * torch.log(u + 1),
        conjugate=lambda t: -torch.log(-torch.expm1(t)),  # t < 0
        optimum=lambda r: torch.log(r / (1 + r)),
        output=lambda v: -F.softplus(-v),
        dual=F.softplus,
        unit="nats",
    ),
    FDivergence(
        "total-variation", "total variation",
        f=lambda u: 0.5 * (u - 1).abs(),
        conjugate=lambda t: t,  # |t| <= 1/2
        optimum=lambda r: 0.5 * torch.sign(r - 1),
        output=lambda v: 0.5 * torch.tanh(v),
        dual=lambda v: 0.5 * torch.tanh(v),
    ),
    FDivergence(
        "pearson", "Pearson chi^2",
        f=lambda u: (u - 1).square(),
        conjugate=lambda t: t.square() / 4 + t,
        optimum=lambda r: 2 * (r - 1),
        output=lambda v: v,
        dual=lambda v: v.square() / 4 + v,
        limits=lambda n: (-2, 2 * math.sqrt(n + 1) - 2),
    ),
    FDivergence(
        "neyman", "Neyman chi^2",
        f=lambda u: (1 - u).square() / u,
        conjugate=lambda t: 2 - 2 * torch.sqrt(1 - t),  # t < 1
        optimum=lambda r: 1 - 1 / r.square(),
        output=lambda v: 1 - torch.exp(v),
        dual=lambda v: 2 - 2 * torch.exp(v / 2),
        limits=lambda n: (-math.inf, math.log(n)),
    ),
    FDivergence(
        "hellinger", "squared Hellinger",
        f=lambda u: (torch.sqrt(u) - 1).square(),
        conjugate=lambda t: t / (1 - t),  # t < 1
        optimum=lambda r: 1 - 1 / torch.sqrt(r),
        output=lambda v: 1 - torch.exp(v),
        dual=lambda v: torch.exp(-v) - 1,
        limits=lambda n: (-math.log(n), math.log(n)),
    ),
)  # fmt: skip
DIVERGENCES: dict[str, FDivergence] = {row.name: row for row in _TABLE}


def divergence(name: str) -> FDivergence:
    """A row of the table by its name."""
    if name not in DIVERGENCES:
        raise unknown("divergence", name, DIVERGENCES)
    return DIVERGENCES[name]


def bound(row: FDivergence, vp: Tensor, vq: Tensor) -> Tensor:
    """E_P T - E_Q f*(T) from a critic's free outputs on draws of P and of Q; a critic ascends it, ()."""
    return row.output(vp).mean() - row.dual(vq).mean()
