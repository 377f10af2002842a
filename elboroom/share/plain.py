"""A model in plain layers: what was rewritten to be fast, or to skip padding, put back as a graph can say it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn

from elboroom.core.vocabulary import PAD
from elboroom.nets.fast.halving import Double, Halve, Rectify, Tile
from elboroom.nets.mlp import beside
from elboroom.nets.recurrent import RecurrentEncoder

Net = TypeVar("Net", bound=nn.Module)


def plain(model: Net) -> Net:
    """A copy of a model whose values are the same, of layers that every exporter knows."""
    copy = deepcopy(model).eval().cpu()
    for module in list(copy.modules()):
        for name, child in module.named_children():
            if type(child) in _PLAIN:
                setattr(module, name, _PLAIN[type(child)](child).eval())
            elif isinstance(child, nn.BatchNorm1d) and not child.affine:
                setattr(module, name, Averaged(child).eval())
    return copy.requires_grad_(False)


class PaddedReader(nn.Module):
    """A recurrent encoder of padded sentences, each read to its own end: (B, L) -> (B, outputs)."""

    def __init__(self, encoder: RecurrentEncoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        lengths, steps = (x != PAD).sum(1), torch.arange(x.shape[1], device=x.device)
        turned = (lengths.unsqueeze(1) - 1 - steps).clamp_min(0)  # from the end of each sentence to its start, (B, L)
        last = (lengths - 1).view(-1, 1, 1)
        h, ends, encoder = self.encoder.embedding(x), [], self.encoder
        for number, layer in enumerate(encoder.forth):
            forth = _states(layer.cell, h)  # (B, L, H)
            ends = [_taken(forth, last)]
            if encoder.back is not None:
                back = _states(encoder.back[number].cell, _taken(h, turned.unsqueeze(2)))
                ends.append(_taken(back, last))
                forth = torch.cat([forth, _taken(back, turned.unsqueeze(2))], 2)
            h = forth
        outputs: Tensor = encoder.head(beside(torch.cat(ends, 2).squeeze(1), u, encoder.given))
        return outputs


class Averaged(nn.Module):
    """(h - m) / sqrt(v + eps) with the running averages of a batch normalisation."""

    running_mean: Tensor
    width: Tensor

    def __init__(self, norm: nn.BatchNorm1d) -> None:
        super().__init__()
        assert norm.running_mean is not None
        assert norm.running_var is not None
        self.register_buffer("running_mean", norm.running_mean)
        self.register_buffer("width", (norm.running_var + norm.eps).sqrt())

    def forward(self, h: Tensor) -> Tensor:
        return (h - self.running_mean) / self.width


def _states(cell: Any, h: Tensor) -> Tensor:
    """The states after every step, (B, L, H)."""
    zero = h.new_zeros(1, h.shape[0], cell.hidden_size)
    states: Tensor = cell(h.transpose(0, 1), (zero, zero) if isinstance(cell, nn.LSTM) else zero)[0]
    return states.transpose(0, 1)


def _taken(h: Tensor, places: Tensor) -> Tensor:
    """What stands at these places of every sentence: (B, L, H), (B, M, 1) -> (B, M, H)."""
    return h.gather(1, places.expand(-1, -1, h.shape[2]))


def _convolution(kind: Callable[..., nn.Module]) -> Callable[[Any], nn.Module]:
    def made(layer: Any) -> nn.Module:
        new: Any = kind(
            layer.in_channels, layer.out_channels, layer.kernel_size, stride=layer.stride, padding=layer.padding
        )
        new.weight, new.bias = layer.weight, layer.bias
        return cast(nn.Module, new)

    return made


_PLAIN: dict[type, Callable[[Any], nn.Module]] = {
    Halve: _convolution(nn.Conv2d),
    Tile: _convolution(nn.Conv2d),
    Double: _convolution(nn.ConvTranspose2d),
    Rectify: lambda _: nn.ReLU(),
    RecurrentEncoder: PaddedReader,
}
