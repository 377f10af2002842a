"""Modified Bessel functions of the first kind, by their logarithm: any order and any argument, in float64."""

from __future__ import annotations

import math
from functools import cache, lru_cache

import torch
from numpy.polynomial import Polynomial
from torch import Tensor

LEAST = 30  # the order from which these terms of the uniform expansion are exact to rounding
TERMS = 10


@cache
def _debye(order: float) -> tuple[float, ...]:
    """sum_k U_k(p) / v^k as one polynomial in p, less its leading 1, highest power first.

    U_0 = 1, U_k+1 = p^2 (1 - p^2) U_k' / 2 + 1/8 int_0^p (1 - 5 t^2) U_k dt.
    """
    u, total = Polynomial([1.0]), Polynomial([0.0])
    for k in range(1, TERMS + 1):
        u = Polynomial([0, 0, 0.5, 0, -0.5]) * u.deriv() + (Polynomial([0.125, 0, -0.625]) * u).integ()
        total = total + u / order**k
    return tuple(total.coef[::-1].tolist())


def _uniform(order: float, x: Tensor) -> Tensor:
    """log(e^-x I_v(x)) by the expansion that is uniform in x, for v >= LEAST; no difference of large numbers in it."""
    root = torch.sqrt(x.square() + order * order)
    p = order / root
    series = torch.zeros_like(p)
    for coefficient in _debye(order):
        series = series * p + coefficient
    away = order * order / (root + x) - order * torch.asinh(order / x)  # v eta - x
    return away - 0.5 * torch.log(2 * math.pi * root) + torch.log1p(series)


def _recurred(order: float, x: Tensor) -> tuple[Tensor, Tensor]:
    steps = max(0, math.ceil(LEAST - order))
    log_i = _uniform(order + steps, x)
    ratio = torch.exp(_uniform(order + steps + 1, x) - log_i)
    passed, twice = [], 2 / x
    for step in range(steps, 0, -1):
        ratio = (twice * (order + step) + ratio).reciprocal()
        passed.append(ratio)
    return log_i - torch.stack(passed).log().sum(0) if passed else log_i, ratio


@lru_cache(maxsize=64)
def _constant(order: float, x: float) -> tuple[float, float]:
    log_i, ratio = _recurred(order, torch.tensor([x], dtype=torch.float64))
    return log_i.item(), ratio.item()


def log_bessel(order: float, x: Tensor) -> tuple[Tensor, Tensor]:
    """log(e^-x I_v(x)) and I_v+1(x) / I_v(x) for x > 0, v >= 0, in float64; those of one number are kept.

    Low orders are reached from a high one by I_v / I_v+1 = 2 (v + 1) / x + I_v+2 / I_v+1, a sum of positive numbers.
    """
    x = x.detach().double()
    if x.dim():
        return _recurred(order, x)
    log_i, ratio = _constant(order, float(x))
    return x.new_tensor(log_i), x.new_tensor(ratio)
