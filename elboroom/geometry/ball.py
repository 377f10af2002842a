"""Ball: the arithmetic of the Poincare ball, in double precision and smooth where two points meet.

Differences of points are never formed from sums that nearly cancel, so that what is said of two points holds up to the
boundary. Beyond what coordinates can tell, a point that was made here carries how far from the boundary it is, by its
logarithm: no sample is too far out for its density. As c goes to 0 everything here becomes the arithmetic of the plane.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from elboroom.geometry.point import Point

MARGIN = 1e-5  # where centres lie: |z| <= (1 - MARGIN) / sqrt(c)
EDGE = 1e-12  # how near double precision lets the coordinates of a sample come
DEEP = -60.0  # log of 1 - c |z|^2 below which asinh is a logarithm
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


def log_cosh(s: Tensor) -> Tensor:
    """log cosh(x) of s = x^2; nothing overflows."""
    return _square_root(
        s,
        lambda s: s / 2 - s**2 / 12 + s**3 / 45,
        lambda x: x + torch.log1p(torch.exp(-2 * x)) - math.log(2),
    )


def _squared(x: Tensor) -> Tensor:
    return x.square().sum(-1, keepdim=True)


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
        """1 - c |x|^2 = 2 / lambda_x, (..., 1); of a point that is very far out it underflows to 0."""
        return x.log_gap.exp() if isinstance(x, Point) else 1 - self.c * _squared(x.double())

    def log_gap(self, x: Tensor) -> Tensor:
        """log(1 - c |x|^2), (..., 1): what the point carries, or from its coordinates."""
        return x.log_gap if isinstance(x, Point) else torch.log1p(-self.c * _squared(x.double()))

    def inside(self, x: Tensor) -> Tensor:
        """A point that was made here as it is, others no further out than their precision can tell."""
        return x if isinstance(x, Point) else self.clip(x, EDGE if x.dtype == torch.float64 else ROUNDED)

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

    def centre(self, u: Tensor) -> Tensor:
        """exp_0(u), no further out than the margin. A u beyond is pulled in, and still moved by what moves its image."""
        u, reach = u.double(), math.atanh(1 - MARGIN)
        size = (self.c * _squared(u.detach())).clamp_min(reach**2).sqrt()  # held before the root: no slope at 0
        u = u * (reach / size)
        return tanhc(self.c * _squared(u)) * u

    def wrap(self, v: Tensor, at: Tensor) -> Point:
        """exp_at of v carried there from the origin: at (+) tanh(sqrt(c) |v|) v / (sqrt(c) |v|)."""
        v, at, c = v.double(), at.double(), self.c
        s = c * _squared(v)
        y = tanhc(s) * v  # and 1 - c |y|^2 = 1 / cosh^2
        below = 1 + 2 * c * (at * y).sum(-1, keepdim=True) + c * c * _squared(at) * _squared(y)
        log_gap = self.log_gap(at) - 2 * log_cosh(s) - below.clamp_min(EDGE**2).log()
        return Point.of(self.clip(self.add(at, y), EDGE), log_gap)

    def unwrap(self, z: Tensor, at: Tensor) -> Tensor:
        """The v that is wrapped to z: artanh(sqrt(c) |k|) k / (sqrt(c) |k|), k = (-at) (+) z."""
        step, c, log_gaps = z.double() - at.double(), self.c, self.log_gap(z) + self.log_gap(at)
        size, here, gaps = _squared(step), self.gap(at), log_gaps.exp()
        k = (here * step - c * size * at.double()) / (gaps + c * size).clamp_min(1e-300)
        deep = log_gaps < DEEP  # there |k| is one by all that can be told
        s = c * size / torch.where(deep, torch.ones_like(gaps), gaps)  # sinh^2 of sqrt(c) |v|
        length = _squared(torch.where(deep, k, torch.ones_like(k))).clamp_min(1e-300).sqrt()
        far = self._asinh(size, log_gaps, deep) / (c.sqrt() * length)
        return torch.where(deep, far, asinhc(s) * torch.sqrt(1 + s)) * k

    def _asinh(self, size: Tensor, log_gaps: Tensor, deep: Tensor) -> Tensor:
        """asinh(sqrt(c size / gaps)) where the gaps are too small for anything but their logarithm."""
        size = torch.where(deep, size, torch.ones_like(size)).clamp_min(1e-300)
        return math.log(2) + 0.5 * ((self.c * size).log() - log_gaps)

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
        step, c, log_gaps = x.double() - y.double(), self.c, self.log_gap(x) + self.log_gap(y)
        deep = log_gaps < DEEP
        gaps = torch.where(deep, torch.ones_like(log_gaps), log_gaps.exp())
        near = asinhc(c * _squared(step) / gaps) * torch.rsqrt(gaps) * step.norm(dim=-1, keepdim=True)
        far: Tensor = 2 * torch.where(deep, self._asinh(_squared(step), log_gaps, deep) / c.sqrt(), near)
        return far.squeeze(-1)

    def log_volume(self, v: Tensor) -> Tensor:
        """How much wider the ball is at wrap(v) than the plane at v: d log 2 + (d - 1) log(sinh(r) / r), r = 2 sqrt(c) |v|."""
        d = v.shape[-1]
        return d * math.log(2) + (d - 1) * log_sinhc(4 * self.c * _squared(v.double())).squeeze(-1)
