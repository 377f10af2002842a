"""Paths through the latent space: along one dimension, and from one code to another."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from elboroom.core.problem import Problem

MANY = 100_000  # points, all of which are decoded


def check_points(points: int, what: str) -> None:
    """Refuses a way of fewer points than its two ends, or of more than anybody looks at."""
    if points < 2:
        raise Problem(f"{what} needs at least 2 points, not {points}")
    if points > MANY:
        raise Problem(f"{what} has at most {MANY:,} points")


def spread(points: int = 10, reach: float = 3.0) -> Tensor:
    """Equally spaced points on [-reach, reach], (points,)."""
    check_points(points, "a traversal")
    if not 0 < reach < math.inf:
        raise Problem(f"the reach of a traversal must be a finite number above 0, not {reach:g}")
    return torch.linspace(-reach, reach, points)


def along(z: Tensor, dims: list[int], values: Tensor) -> Tensor:
    """From one code (J,): each of `dims` in turn at each of the values (P,), all others kept, (len(dims), P, J)."""
    grid = z.expand(len(dims), len(values), -1).clone()
    for row, dim in enumerate(dims):
        grid[row, :, dim] = values.to(z)
    return grid


def line(a: Tensor, b: Tensor, points: int = 10) -> Tensor:
    """(1 - t) a + t b for t from 0 to 1, (points, J)."""
    check_points(points, "an interpolation")
    t = torch.linspace(0, 1, points, device=a.device, dtype=a.dtype).unsqueeze(1)
    return (1 - t) * a + t * b


def arc(a: Tensor, b: Tensor, points: int = 10) -> Tensor:
    """The great circle between the directions of a and b, with the norm going linearly, (points, J)."""
    t = torch.linspace(0, 1, points, device=a.device, dtype=a.dtype).unsqueeze(1)
    u, v = a / a.norm().clamp_min(1e-12), b / b.norm().clamp_min(1e-12)
    angle = torch.arccos((u @ v).clamp(-1, 1))
    if angle < 1e-4 or angle > torch.pi - 1e-4:
        return line(a, b, points)
    direction = (torch.sin((1 - t) * angle) * u + torch.sin(t * angle) * v) / torch.sin(angle)
    path: Tensor = direction * ((1 - t) * a.norm() + t * b.norm())
    return path
