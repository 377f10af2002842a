"""Reference: a module that one part of a model reads and another part owns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from torch import nn

M = TypeVar("M", bound=nn.Module)


class Reference(Generic[M]):
    """A module of another part: read through `module` here; registered, trained, moved and saved there, and only there."""

    def __init__(self, module: M) -> None:
        self.module = module


def require_parts(modules: Iterable[nn.Module]) -> None:
    """Refuses a reference to what is none of these modules: it would be neither trained nor saved."""
    parts = set(modules)
    for part in parts:
        for value in vars(part).values():
            if isinstance(value, Reference) and value.module not in parts:
                raise ValueError(
                    f"{type(part).__name__} reads a {type(value.module).__name__} that is no part of the method"
                )
