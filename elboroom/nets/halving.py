"""Convolutions that halve an image and transposed ones that double it, with the weights of the plain layers.

A 4x4 convolution of stride 2 and padding 1 sees an image through its patches: a matrix of 16 C rows and one column per
output pixel. With few channels the plain kernels leave most of a CPU idle, so the product is taken as a matrix product:

    convolution             y = W patches(x)
    transposed              y = overlap(W' x)        overlap is the adjoint of patches

The same sums as the plain layers, in another order. With many channels the plain kernels are the faster ones, in
channels_last; so they are everywhere but on a CPU.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional as F

FEW = 4  # channels up to which the matrix product wins


class Halve(nn.Conv2d):
    """A 4x4 convolution of stride 2: (B, C, 2h, 2w) -> (B, O, h, w)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 4, stride=2, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        if self.in_channels > FEW or x.device.type != "cpu":
            return super().forward(x.contiguous(memory_format=torch.channels_last))
        assert self.bias is not None
        batch, _, height, width = x.shape
        columns = _patches(x).flatten(0, 2).flatten(1)  # (16C, B h w)
        y = torch.addmm(self.bias, columns.t(), self.weight.flatten(1).t())  # (B h w, O)
        return y.view(batch, height // 2, width // 2, -1).permute(0, 3, 1, 2)


class Quarter(nn.Conv2d):
    """A 2x2 convolution of stride 2, which looks at every pixel once: (B, C, 2h, 2w) -> (B, O, h, w)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 2, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.contiguous(memory_format=torch.channels_last))


class Double(nn.ConvTranspose2d):
    """A transposed 4x4 convolution of stride 2: (B, C, h, w) -> (B, O, 2h, 2w)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 4, stride=2, padding=1)

    def forward(self, x: Tensor, output_size: list[int] | None = None) -> Tensor:
        assert self.bias is not None
        x = x.contiguous(memory_format=torch.channels_last)
        if x.device.type != "cpu":
            return super().forward(x)
        bias = self.bias.view(-1, 1, 1)
        if self.out_channels > FEW:
            # the bias apart: its gradient inside the layer takes as long as all the others together
            return F.conv_transpose2d(x, self.weight, stride=2, padding=1).add_(bias)
        batch, inputs, height, width = x.shape
        pixels = x.permute(0, 2, 3, 1).reshape(-1, inputs)  # (B h w, C)
        columns = self.weight.flatten(1).t() @ pixels.t()  # (16O, B h w)
        return _overlap(columns.view(self.out_channels, 4, 4, batch, height, width)).add_(bias)


class _Patches(Function):
    """The 4x4 patches of an image at stride 2, zeros beyond its edge: (B, C, 2h, 2w) -> (C, 4, 4, B, h, w)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        batch, channels, height, width = x.shape
        h, w = height // 2, width // 2
        padded = F.pad(x, (1, 1, 1, 1)).view(batch, channels, h + 1, 2, w + 1, 2)
        phases = padded.permute(1, 3, 5, 0, 2, 4).contiguous()  # (C, 2, 2, B, h+1, w+1): even and odd rows and columns
        columns = x.new_empty(channels, 2, 2, 2, 2, batch, h, w)
        for i in (0, 1):  # tap 2i + phase
            for j in (0, 1):
                columns[:, i, :, j] = phases[..., i : i + h, j : j + w]
        return columns.view(channels, 4, 4, batch, h, w)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return _overlap(grad)


class _Overlap(Function):
    """The adjoint of `_Patches`, every patch added where it lies: (C, 4, 4, B, h, w) -> (B, C, 2h, 2w)."""

    @staticmethod
    def forward(ctx: Any, columns: Tensor) -> Tensor:
        channels, _, _, batch, h, w = columns.shape
        columns = columns.reshape(channels, 2, 2, 2, 2, batch, h, w)
        phases = columns.new_zeros(channels, 2, 2, batch, h + 1, w + 1)
        for i in (0, 1):
            for j in (0, 1):
                phases[..., i : i + h, j : j + w] += columns[:, i, :, j]
        padded = phases.permute(3, 0, 4, 1, 5, 2).reshape(batch, channels, 2 * h + 2, 2 * w + 2)
        return padded[..., 1:-1, 1:-1].contiguous()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return _patches(grad)


def _patches(x: Tensor) -> Tensor:
    return _Patches.apply(x)  # type: ignore[no-any-return, no-untyped-call]


def _overlap(columns: Tensor) -> Tensor:
    return _Overlap.apply(columns)  # type: ignore[no-any-return, no-untyped-call]
