"""Parameters that stand still for a while, and modules that do for good."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from typing import Any, Self, TypeVar

from torch import nn

M = TypeVar("M", bound=nn.Module)


@contextmanager
def freeze(parameters: Iterable[nn.Parameter]) -> Iterator[None]:
    """What is computed inside has no gradient in these.

    PyTorch leaves out by itself what nobody asked for, but a function with a gradient of its own only knows which inputs
    could have one: the softmax would work out the gradient of its weights for a player that moves the encoder alone.
    """
    held = [parameter for parameter in parameters if parameter.requires_grad]
    for parameter in held:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in held:
            parameter.requires_grad_(True)


class Held(nn.Module):
    """A module that stands still: always in evaluation mode and without a gradient, whatever `.train()` says.

    Dropout is off and running averages stand. Its tensors are in the state, as others are: what an earlier stage has learnt
    is loaded into it. Made by `held`.
    """

    def train(self, mode: bool = True) -> Self:
        """Itself, as it is."""
        return self


class Frozen(Held):
    """A module that stands still for good and is in no state.

    Its tensors come from elsewhere: `state_dict` leaves them out, and `load_state_dict` leaves them as they are. Made by
    `frozen`.
    """

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Nothing of it."""
        destination = kwargs.get("destination")
        return OrderedDict() if destination is None else destination

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any, **kwargs: Any) -> None:
        """What is to be loaded into it, and below it, is what it has."""
        state_dict.update(super().state_dict(prefix=prefix))
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


def frozen(module: M) -> M:
    """The same module, frozen for good. It stays what it was: others ask which prior or posterior it is.

    Its class becomes one of both, as torch.nn.utils.parametrize does it.
    """
    return _made(module, Frozen)


def held(module: M) -> M:
    """The same module, which stands still from now on, and is kept in the state."""
    return _made(module, Held)


def _made(module: M, still: type[Held]) -> M:
    if not isinstance(module, still):
        module.eval().requires_grad_(False)
        module.__class__ = _both(still, module.__class__)  # type: ignore[assignment, arg-type]
    return module


def thaw(module: M) -> M:
    """A copy of a module that stands still which learns, its weights as they are; what stands still below it stays so."""
    learns = deepcopy(module)
    if isinstance(learns, Held):
        learns.__class__ = next(k for k in type(learns).__mro__ if not issubclass(k, Held))  # type: ignore[assignment]
    for part in thawed(learns):
        part.training = True
        for parameter in part.parameters(recurse=False):
            parameter.requires_grad_(True)
    return learns


@cache
def _both(still: type[Held], kind: type[nn.Module]) -> type[nn.Module]:
    return type(kind.__name__, (still, kind), {"__doc__": kind.__doc__, "__module__": kind.__module__})


def thawed(module: nn.Module) -> Iterator[nn.Module]:
    """A module and all below it that does not stand still."""
    if not isinstance(module, Held):
        yield module
        for child in module.children():
            yield from thawed(child)
