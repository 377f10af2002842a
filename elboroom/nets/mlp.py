"""Fully connected encoders, decoders and critics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod, sqrt

import torch
from torch import Tensor, nn

from elboroom.core.problem import Problem
from elboroom.nets.initial import SMALL

WIDE = 16  # inputs of a linear map from which on they count less


def dense(widths: Sequence[int], activation: nn.Module) -> nn.Sequential:
    """Linear layers of these widths with the activation between them; the last layer is linear."""
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [activation, nn.Linear(before, after)]
    return nn.Sequential(*layers[1:])


class Gated(nn.Module):
    """A layer with gates, (A x + a) * sigmoid(G x + g), in the place of a linear layer and its activation."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear, self.gate = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        opened: Tensor = self.linear(x) * torch.sigmoid(self.gate(x))
        return opened


def gated(widths: Sequence[int]) -> nn.Sequential:
    """Gated layers of these widths; the last layer is linear."""
    *hidden, last = pairwise(widths)
    return nn.Sequential(*(Gated(before, after) for before, after in hidden), nn.Linear(*last))


Layers = Callable[[Sequence[int]], nn.Sequential]  # from the widths of a net, its input and output among them


def beside(h: Tensor, u: Tensor | None, given: int) -> Tensor:
    """Features with what is given beside them: (B, F), (B, given) -> (B, F + given); `u` is ignored if given is 0."""
    if given == 0:
        return h
    if u is None:
        raise Problem(f"this net is conditional; it needs u, {given} values per example, beside its input")
    if u.shape != (len(h), given):
        raise Problem(f"this net needs u of {given} values per example, not of shape {tuple(u.shape)}")
    return torch.cat([h, u.to(h.dtype)], 1)


class MLPEncoder(nn.Module):
    """Fully connected layers on the flattened input; u joins the input."""

    def __init__(self, shape: tuple[int, ...], hidden: Sequence[int], outputs: int, given: int, layers: Layers) -> None:
        super().__init__()
        self.shape, self.given = shape, given
        self.dense = layers([prod(shape) + given, *hidden, outputs])

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        if tuple(x.shape[1:]) != self.shape:
            raise Problem(f"this encoder was built for data of shape {self.shape}, not {tuple(x.shape[1:])}")
        outputs: Tensor = self.dense(beside(x.flatten(1), u, self.given))
        return outputs  # (B, outputs)


class MLPDecoder(nn.Module):
    """Fully connected layers to (N, *event); u joins z."""

    def __init__(self, event: tuple[int, ...], latent: int, hidden: Sequence[int], given: int, layers: Layers) -> None:
        super().__init__()
        self.event, self.given = event, given
        self.dense = layers([latent + given, *hidden, prod(event)])

    def forward(self, z: Tensor, u: Tensor | None = None) -> Tensor:
        outputs: Tensor = self.dense(beside(z, u, self.given))
        return outputs.view(-1, *self.event)  # (N, *event)


class LinearBeside(nn.Module):
    """A net with a linear map of the same input beside it: net(x, u) + A (x, u), A small at the start.

    A step of Adam moves all the weights of an output at once, the output by as much as their inputs add up to; so those of a
    wide input count less, and codes of large images do not run away.
    """

    def __init__(self, net: nn.Module, inputs: int, event: tuple[int, ...], given: int) -> None:
        super().__init__()
        self.net, self.event, self.given = net, event, given
        self.linear = nn.Linear(inputs + given, prod(event))
        self.pace = 1 / sqrt(max(1, (inputs + given) / WIDE))
        nn.init.normal_(self.linear.weight, std=SMALL / sqrt(min(inputs + given, WIDE)))
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        line: Tensor = self.linear(beside(x.flatten(1), u, self.given) * self.pace)
        outputs: Tensor = self.net(x, u)
        return outputs + line.view(-1, *self.event)  # (N, *event)
