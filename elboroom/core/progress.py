"""Progress: long work says how far it is, to whoever listens; where nobody does, it says nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, int, int], None]  # what is done, how much of it is done, of how much

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_stages: ContextVar[tuple[str, ...]] = ContextVar("stages", default=())


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Work done within is told to this listener."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Work done within is a part of that name."""
    before = _stages.set((*_stages.get(), name))
    try:
        tell(0, 0)
        yield
    finally:
        _stages.reset(before)


def tell(done: int, of: int) -> None:
    """So much of the present stage is done; of 0 where nobody knows how much there is."""
    if (listener := _listener.get()) is not None:
        listener(", ".join(_stages.get()), done, of)
