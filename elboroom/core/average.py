"""Weights that are kept beside those of a model: a copy, and the moving average of all since the start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Weights(nn.Module):
    """A copy of a module's weights and buffers, in buffers of its own, so that a checkpoint keeps it."""

    def __init__(self, of: nn.Module) -> None:
        super().__init__()
        for name, tensor in of.state_dict().items():
            self.register_buffer(name.replace(".", "/"), tensor.clone())

    def beside(self, of: nn.Module) -> Iterator[tuple[str, Tensor, Tensor]]:
        """The name, the copy and the original of each."""
        copies = dict(self.named_buffers())
        for name, tensor in of.state_dict().items():
            yield name, copies[name.replace(".", "/")], tensor

    @torch.no_grad()
    def take(self, of: nn.Module) -> None:
        """Copies those of the module."""
        for _, copy, tensor in self.beside(of):
            copy.copy_(tensor)

    @torch.no_grad()
    def give(self, to: nn.Module) -> None:
        """Copies them into the module."""
        for _, copy, tensor in self.beside(to):
            tensor.copy_(copy)


class Average(nn.Module):
    """a <- d a + (1 - d) w after every step, with d = min(decay, n / (n + 9)) after n of them; buffers are copied.

    So it begins as the weights after the first step, and is of about a tenth of the run until that is longer than the decay.
    """

    count: Tensor

    def __init__(self, model: nn.Module, decay: float) -> None:
        super().__init__()
        self.decay, self.weights = decay, Weights(model)
        self.register_buffer("count", torch.tensor(0, device=next(model.parameters()).device))

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """One step more."""
        share = 1 - (self.count / (self.count + 9)).clamp_max(self.decay)  # a tensor, which no device is waited for
        trained = {name for name, _ in model.named_parameters(remove_duplicate=False)}
        for name, average, tensor in self.weights.beside(model):
            average.lerp_(tensor, share.to(tensor)) if name in trained else average.copy_(tensor)
        self.count += 1

    @contextmanager
    def worn_by(self, model: nn.Module) -> Iterator[None]:
        """Inside, the model has the averaged weights."""
        own = Weights(model)
        self.weights.give(model)
        try:
            yield
        finally:
            own.give(model)
