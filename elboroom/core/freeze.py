"""Parameters that stand still for a while."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from torch import nn


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
