"""Points: codes that carry what their coordinates cannot tell, how far from the boundary of their space they lie."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor


def carrying(z: Tensor, log_gap: Tensor | None) -> Tensor:
    """A point that carries log(1 - c |z|^2), (..., 1), which its coordinates cannot tell at the boundary."""
    if log_gap is not None:
        z.log_gap = log_gap  # type: ignore[attr-defined]
    return z


def carried(z: Tensor) -> Tensor | None:
    """What a point carries, None where it was not made here."""
    return getattr(z, "log_gap", None)


def along(z: Tensor, f: Callable[[Tensor], Tensor]) -> Tensor:
    """f(z), f another shape, choice or place of points, with what they carry."""
    log_gap = carried(z)
    return carrying(f(z), None if log_gap is None else f(log_gap))


def beside_others(z: Tensor) -> Tensor:
    """(..., J) -> (..., 1, J), with what it carries."""
    return along(z, lambda t: t.unsqueeze(-2))


def constant(z: Tensor) -> Tensor:
    """The same points without a gradient, with what they carry."""
    return along(z, Tensor.detach)
