"""Point: a tensor of points of the ball that carries what its coordinates cannot tell, how near the boundary each lies."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

RESHAPED = {"view", "view_as", "reshape", "reshape_as", "flatten", "unflatten", "squeeze", "unsqueeze"}
EXPANDED = {"expand", "expand_as", "broadcast_to"}
COPIED = {"detach", "clone"}
MOVED = {"to", "cpu", "cuda", "type", "type_as", "double", "contiguous", "pin_memory"}
SET = {"requires_grad_", "retain_grad"}  # what changes no value


class Point(Tensor):
    """Points z, (..., J), with log_gap = log(1 - c |z|^2), (..., 1).

    Another shape, choice, copy or device of points is a Point. What is computed of their coordinates is a plain tensor, and so
    are they in another precision, where they are other points.
    """

    log_gap: Tensor

    @staticmethod
    def of(z: Tensor, log_gap: Tensor) -> Point:
        """These coordinates with their gap; gradients pass to both."""
        point = z.as_subclass(Point)
        point.log_gap = log_gap
        return point

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name, z = func.__name__, args[0]
        if (name == "__setitem__" or (name[-1] == "_" != name[-2])) and isinstance(z, Point) and name not in SET:
            raise TypeError(f"{name}: points of the ball are not changed in place")
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
            if not isinstance(z, Point) or result is z or not isinstance(result, Tensor):
                return result
            log_gap = _gap(name, z, result, args[1:])
            return result if log_gap is None else Point.of(result, log_gap)

    def __deepcopy__(self, memo: dict[int, Any]) -> Point:
        return Point.of(deepcopy(self.as_subclass(Tensor), memo), deepcopy(self.log_gap, memo))


def _gap(name: str, z: Point, result: Tensor, args: tuple[Any, ...]) -> Tensor | None:
    """The gap of what an operation made of z, None where that is no longer z."""
    if result.dim() == 0 or result.shape[-1] != z.shape[-1] or result.dtype != z.dtype:
        return None
    if name == "__getitem__":
        return z.log_gap[args[0]] if _of_rows(args[0], z.dim()) else None
    if name in RESHAPED:  # coordinates stay together wherever J is the last size still
        return z.log_gap.reshape(*result.shape[:-1], 1)
    if name in EXPANDED:
        return z.log_gap.expand(*result.shape[:-1], 1)
    if name in COPIED:
        return z.log_gap.detach() if name == "detach" else z.log_gap.clone()
    return z.log_gap.to(result.device) if name in MOVED else None


def _of_rows(index: Any, dims: int) -> bool:
    """Whether an index chooses among points, and none of their coordinates."""
    items = index if isinstance(index, tuple) else (index,)
    last = items[-1] if items else ...
    if last is ... or (isinstance(last, slice) and last == slice(None)):
        return True
    return not any(item is ... for item in items) and sum(map(_consumed, items)) < dims


def _consumed(item: Any) -> int:
    """How many dimensions an item of an index is about."""
    if item is None or isinstance(item, bool):
        return 0
    return item.dim() if isinstance(item, Tensor) and item.dtype == torch.bool else 1
