"""Ball: the arithmetic of the Poincare ball, in double precision and smooth where two points meet.

Differences of points are never formed from sums that nearly cancel, so that what is said of two points holds up to the
boundary. Beyond what coordinates can tell, a point that was made here carries how far from the boundary it is. As c goes
to 0 everything here becomes the arithmetic of the plane.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

MARGIN = 1e-5  # where centres lie: |z| <= (1 - MARGIN) / sqrt(c)
EDGE = 1e-12  # how near double precision lets the coordinates of a sample come
FAR = 75.0  # how far out samples are followed: sqrt(c) |log_0 z|, beyond which squares overflow
ROUNDED = 1e-7  # how near single precision lets a code come


def _square_root(s: Tensor, near: Callable[[Tensor], Tensor], far: Callable[[Tensor], Tensor]) -> Tensor:
    """far(sqrt s), or near(s), its series, where s is small: so its gradient is finite at 0."""
    small = s < 1e-4
    x = torch.where(small, torch.ones_like(s), s).sqrt()
    return torch.where(small, near(s), far(x))


def tanhc(s: Tensor) -> Tensor:
    """tanh(x) / x of s = x^2."""
    return _square_root(s, lambda s: 1 - s / 3 + 2 / 15 * s**2 - 17 / 315 * s**3, lambda x: torch.tanh(x) / x)


def asinhc(s: Tensor) -> Tensor:
    """asinh(x) / x of s = x^2."""
    return _square_root(s, lambda s: 1 - s / 6 + 3 / 40 * s**2 - 5 / 112 * s**3, lambda x: torch.asinh(x) / x)


def log_sinhc(s: Tensor) -> Tensor:
    """log(sinh(x) / x) of s = x^2; nothing overflows."""
    return _square_root(
        s,
        lambda s: s / 6 - s**2 / 180 + s**3 / 2835,
        lambda x: x + torch.log(-torch.expm1(-2 * x) / (2 * x)),
    )


def _squared(x: Tensor) -> Tensor:
    return x.square().sum(-1, keepdim=True)


def carrying(z: Tensor, gap: Tensor | None) -> Tensor:
    """A point that carries 1 - c |z|^2, (..., 1), which its coordinates cannot tell at the boundary."""
    if gap is not None:
        z.gap = gap  # type: ignore[attr-defined]
    return z


def along(z: Tensor, f: Callable[[Tensor], Tensor]) -> Tensor:
    """f(z), f another shape, choice or place of points, with what they carry."""
    gap: Tensor | None = getattr(z, "gap", None)
    return carrying(f(z), None if gap is None else f(gap))


def beside_others(z: Tensor) -> Tensor:
    """(..., J) -> (..., 1, J), with what it carries."""
    return along(z, lambda t: t.unsqueeze(-2))


def constant(z: Tensor) -> Tensor:
    """The same points without a gradient, with what they carry."""
    return along(z, Tensor.detach)


class Ball(nn.Module):
    """The ball c |z|^2 < 1 with the metric lambda_z^2 |dz|^2, lambda_z = 2 / (1 - c |z|^2): curvature -c, fixed or learned."""

    raw: Tensor

    def __init__(self, c: float = 1.0, learned: bool = False) -> None:
        super().__init__()
        self.learned = learned
        if learned:
            self.raw = nn.Parameter(torch.tensor(c).log())
        else:
            self.register_buffer("raw", torch.tensor(c), persistent=False)

    @property
    def c(self) -> Tensor:
        """Minus the curvature, ()."""
        return self.raw.double().exp() if self.learned else self.raw.double()

    def gap(self, x: Tensor) -> Tensor:
        """1 - c |x|^2 = 2 / lambda_x, (..., 1): what the point carries, or from its coordinates."""
        carried: Tensor | None = getattr(x, "gap", None)
        return 1 - self.c * _squared(x.double()) if carried is None else carried

    def inside(self, x: Tensor) -> Tensor:
        """A point that was made here as it is, others no further out than their precision can tell."""
        return x if hasattr(x, "gap") else self.clip(x, EDGE if x.dtype == torch.float64 else ROUNDED)

    def clip(self, x: Tensor, margin: float = MARGIN) -> Tensor:
        """The same point, or the one below it at the margin."""
        x = x.double()
        size, most = _squared(x), (1 - margin) ** 2 / self.c
        outside = size > most
        return torch.where(outside, x * (most / torch.where(outside, size, torch.ones_like(size))).sqrt(), x)

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x (+) y, Moebius addition."""
        x, y, c = x.double(), y.double(), self.c
        dot, x2, y2 = (x * y).sum(-1, keepdim=True), _squared(x), _squared(y)
        return ((1 + 2 * c * dot + c * y2) * x + (1 - c * x2) * y) / (1 + 2 * c * dot + c * c * x2 * y2)

    def within(self, v: Tensor) -> Tensor:
        """The same tangent vector, or one of its direction at FAR, which still pulls on what made it."""
        v = v.double()
        size = (self.c * _squared(v.detach())).sqrt()
        return v * (FAR / size.clamp_min(FAR))

    def wrap(self, v: Tensor, at: Tensor) -> Tensor:
        """exp_at of v carried there from the origin: at (+) tanh(sqrt(c) |v|) v / (sqrt(c) |v|)."""
        v, at, c = v.double(), at.double(), self.c
        y = tanhc(c * _squared(v)) * v
        far = (2 * (c * _squared(v)).clamp_min(1e-300).sqrt()).clamp_max(2 * FAR)
        small = 4 * torch.exp(-far) / (1 + torch.exp(-far)).square()  # 1 - c |y|^2 = sech^2
        below = 1 + 2 * c * (at * y).sum(-1, keepdim=True) + c * c * _squared(at) * _squared(y)
        return carrying(self.clip(self.add(at, y), EDGE), self.gap(at) * small / below)

    def unwrap(self, z: Tensor, at: Tensor) -> Tensor:
        """The v that is wrapped to z: artanh(sqrt(c) |k|) k / (sqrt(c) |k|), k = (-at) (+) z."""
        z, at, c = z.double(), at.double(), self.c
        step = z - at
        size, here, there = _squared(step), self.gap(at), self.gap(z)
        k = (here * step - c * size * at) / (here * there + c * size)
        s = c * size / (here * there)  # sinh^2 of sqrt(c) |v|
        return asinhc(s) * torch.sqrt(1 + s) * k

    def transport(self, v: Tensor, to: Tensor) -> Tensor:
        """A tangent vector of the origin carried along the geodesic: (lambda_0 / lambda_to) v."""
        return self.gap(to) * v.double()

    def exp(self, u: Tensor, at: Tensor) -> Tensor:
        """exp_at(u): where the geodesic that leaves `at` with velocity u is after a unit of time."""
        return self.wrap(u.double() / self.gap(at), at)

    def log(self, z: Tensor, at: Tensor) -> Tensor:
        """The inverse of exp_at."""
        return self.gap(at) * self.unwrap(z, at)

    def exp0(self, u: Tensor) -> Tensor:
        """exp_0(u)."""
        return self.wrap(u, torch.zeros_like(u))

    def log0(self, z: Tensor) -> Tensor:
        """The inverse of exp_0."""
        return self.unwrap(z, torch.zeros_like(z))

    def distance(self, x: Tensor, y: Tensor) -> Tensor:
        """(2 / sqrt(c)) asinh(sqrt(c) |x - y| / sqrt((1 - c |x|^2) (1 - c |y|^2))), (...)."""
        step, gaps = x.double() - y.double(), self.gap(x) * self.gap(y)
        far: Tensor = 2 * asinhc(self.c * _squared(step) / gaps) * torch.rsqrt(gaps) * step.norm(dim=-1, keepdim=True)
        return far.squeeze(-1)

    def log_volume(self, v: Tensor) -> Tensor:
        """How much wider the ball is at wrap(v) than the plane at v: d log 2 + (d - 1) log(sinh(r) / r), r = 2 sqrt(c) |v|."""
        d = v.shape[-1]
        return d * math.log(2) + (d - 1) * log_sinhc(4 * self.c * _squared(v.double())).squeeze(-1)
