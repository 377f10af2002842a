"""Fully connected encoders, decoders and critics."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

import torch
from torch import Tensor, nn

from elboroom.core.problem import Problem


def dense(widths: Sequence[int], activation: nn.Module) -> nn.Sequential:
    """Linear layers of these widths with the activation between them; the last layer is linear."""
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [activation, nn.Linear(before, after)]
    return nn.Sequential(*layers[1:])


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

    def __init__(
        self, shape: tuple[int, ...], hidden: Sequence[int], outputs: int, given: int, activation: nn.Module
    ) -> None:
        super().__init__()
        self.shape, self.given = shape, given
        self.dense = dense([prod(shape) + given, *hidden, outputs], activation)

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        if tuple(x.shape[1:]) != self.shape:
            raise Problem(f"this encoder was built for data of shape {self.shape}, not {tuple(x.shape[1:])}")
        outputs: Tensor = self.dense(beside(x.flatten(1), u, self.given))
        return outputs  # (B, outputs)


class MLPDecoder(nn.Module):
    """Fully connected layers to (N, *event); u joins z."""

    def __init__(
        self, event: tuple[int, ...], latent: int, hidden: Sequence[int], given: int, activation: nn.Module
    ) -> None:
        super().__init__()
        self.event, self.given = event, given
        self.dense = dense([latent + given, *hidden, prod(event)], activation)

    def forward(self, z: Tensor, u: Tensor | None = None) -> Tensor:
        outputs: Tensor = self.dense(beside(z, u, self.given))
        return outputs.view(-1, *self.event)  # (N, *event)
