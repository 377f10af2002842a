"""Samples as handed in: numbers of one row per example, checked, and thinned where there are very many."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from elboroom.core.problem import Problem

LEAST = 5


def rows(values: ArrayLike | Tensor, name: str, least: int = LEAST) -> Tensor:
    """A sample as float64 of shape (n, d); (n,) is (n, 1), and images are flattened."""
    try:
        array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        raise Problem(f"{name} must have one row of numbers per example") from None
    if array.dtype.kind not in "buif":
        raise Problem(f"{name} has values of type {array.dtype}; it must have numbers")
    if not array.ndim or (len(array) and not array.size):
        raise Problem(f"{name} has shape {array.shape}; give one row per example")
    if len(array) < least:
        raise Problem(f"{name} has {len(array)} row{'s' * (len(array) != 1)}; at least {least} are needed")
    flat = array.reshape(len(array), -1).astype(np.float64)
    bad = int((~np.isfinite(flat)).sum())
    if bad:
        raise Problem(f"{name} has {bad:,} value{'s' * (bad > 1)} that are NaN or infinite")
    return torch.from_numpy(flat)


def pair(
    a: ArrayLike | Tensor, b: ArrayLike | Tensor, names: tuple[str, str], least: int = LEAST
) -> tuple[Tensor, Tensor]:
    """Two samples of the same space, (n, d) and (m, d)."""
    x, y = rows(a, names[0], least), rows(b, names[1], least)
    if x.shape[1] != y.shape[1]:
        raise Problem(f"{names[0]} has {x.shape[1]} columns but {names[1]} has {y.shape[1]}; they must be the same")
    return x, y


def thinned(x: Tensor, most: int, noise: torch.Generator) -> Tensor:
    """At most `most` rows, drawn without replacement."""
    return x if len(x) <= most else x[torch.randperm(len(x), generator=noise)[:most]]


def at_least(value: Any, least: int, what: str) -> None:
    """Refuses a count that is too small."""
    if value < least:
        raise Problem(f"{what} must be at least {least}, not {value}")
