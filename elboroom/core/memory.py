"""Memory: what would not fit is refused before it is asked for."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from elboroom.core.problem import Problem

VARIABLE = "ELBOROOM_MEMORY"  # the limit in GB, where it is not what the machine has; elbo --memory sets it
GROUP = Path("/sys/fs/cgroup/memory.max")  # what a container may take


def limit() -> int:
    """The bytes that may be asked for: as said, or else all that this machine, or its container, has."""
    if said := os.environ.get(VARIABLE, "").strip():
        try:
            wanted = float(said)
        except ValueError:
            wanted = math.nan
        if not 0 < wanted < 1e9:
            raise Problem(f"{VARIABLE} must be a number of GB, not '{said[:50]}'")
        return int(wanted * 1e9)
    has = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 1 << 62
    try:
        return min(has, int(GROUP.read_text()))
    except (OSError, ValueError):
        return int(has)


def require(count: float, what: str) -> None:
    """Refuses something that takes more bytes than there are."""
    most = limit()
    if count > most:
        raise Problem(
            f"{what} needs {count / 1e9:,.1f} GB of memory, and the limit is {most / 1e9:,.1f} GB; make it smaller, or "
            f"set another limit: elbo --memory GB ..., or {VARIABLE}"
        )


_MADE: frozenset[Callable[..., Any]] = frozenset(
    (torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.eye)
)


class Measured(TorchFunctionMode):
    """Within it, tensors that are made are counted first, and what together would not fit is refused."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what, self.bytes = what, 0

    def __torch_function__(
        self, func: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        if func in _MADE:
            self.bytes += 4 * _numbers(func, args, named)
            require(self.bytes, self.what)
        return func(*args, **named)


def _numbers(func: Any, args: tuple[Any, ...], named: dict[str, Any]) -> int:
    """How many numbers a factory of torch will make."""
    size = named.get("size", args[0] if args and isinstance(args[0], list | tuple) else args)
    sides = [side for side in size if isinstance(side, int)] if isinstance(size, list | tuple) else []
    if func is torch.eye and len(sides) == 1:
        sides *= 2
    return math.prod(sides)
