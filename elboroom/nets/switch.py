"""One decoder a label: which of them decodes a row is said by the first columns of u, one-hot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from elboroom.core.batch import Memory
from elboroom.core.problem import Problem
from elboroom.nets.autoregressive import State


def _chosen(u: Tensor | None, decoders: int) -> Tensor:
    """The decoder of every row, (N,)."""
    if u is None or u.shape[1] < decoders:
        raise Problem(f"this model has a decoder for each of {decoders} labels; it needs u, which says which one")
    return u[:, :decoders].argmax(1)


def _rest(u: Tensor | None, decoders: int) -> Tensor | None:
    """What is given beside the label, to every decoder: the vector of a context."""
    return None if u is None or u.shape[1] == decoders else u[:, decoders:]


class SwitchedNet(nn.Module):
    """Decoders of images or vectors side by side; each row is taken from that of its label.

    All of them decode all rows, so that noise and updates do not depend on which labels a batch has.
    """

    def __init__(self, nets: Sequence[nn.Module]) -> None:
        super().__init__()
        self.nets = nn.ModuleList(nets)

    def forward(self, z: Tensor, u: Tensor | None = None) -> Tensor:
        which = _chosen(u, len(self.nets))
        made = torch.stack([net(z, _rest(u, len(self.nets))) for net in self.nets])  # (labels, N, ...)
        return made[which, torch.arange(which.shape[0], device=which.device)]


class SwitchedWriter(nn.Module):
    """Decoders of sentences side by side; each row is written by that of its label. All attend to a memory, or none."""

    def __init__(self, nets: Sequence[nn.Module]) -> None:
        super().__init__()
        self.nets, self.head = nn.ModuleList(nets), nn.Identity()  # a step gives logits already
        self.attends = any(getattr(net, "attends", False) for net in nets)

    def log_prob(self, z: Tensor, x: Tensor, u: Tensor | None = None, memory: Memory | None = None) -> Tensor:
        """log p(x|z), (K, B)."""
        which, rest = _chosen(u, len(self.nets)), _rest(u, len(self.nets))
        made = torch.stack([net.log_prob(z, x, rest, memory) for net in self._writers])  # (labels, K, B)
        return made[which, :, torch.arange(which.shape[0], device=which.device)].T

    def hidden(self, z: Tensor, x_in: Tensor, u: Tensor | None = None, memory: Memory | None = None) -> Tensor:
        """Logits of what comes after every word, teacher forcing: (N, latent), (N, T) -> (N, T, V)."""
        which, rest = _chosen(u, len(self.nets)), _rest(u, len(self.nets))
        made = torch.stack([net.head(net.hidden(z, x_in, rest, memory)) for net in self._writers])
        return made[which, torch.arange(len(which), device=which.device)]

    @property
    def _writers(self) -> list[Any]:
        return list(self.nets)

    def start(self, z: Tensor, u: Tensor | None = None, memory: Memory | None = None) -> State:
        """The label of each row, then what every decoder remembers."""
        which, rest = _chosen(u, len(self.nets)), _rest(u, len(self.nets))
        return which, *(t for net in self._writers for t in net.start(z, rest, memory))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits of the next word by the decoder of each row, (N, V)."""
        which, *memory = state
        logits, after, each = [], [which], len(memory) // len(self.nets)
        for number, net in enumerate(self._writers):
            features, now = net.step(tokens, tuple(memory[number * each : (number + 1) * each]))
            logits.append(net.head(features))
            after += now
        rows = torch.arange(which.shape[0], device=which.device)
        return torch.stack(logits)[which, rows], tuple(after)
