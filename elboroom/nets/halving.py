"""Convolutions that halve an image and transposed ones that double it: 4x4 kernels of stride 2 and padding 1.

They are the plain layers of PyTorch, weights and values, computed the way that a CPU likes best:

* in channels_last, also with one channel, where PyTorch by itself would not;
* the gradient of the bias as a sum, which inside a transposed layer costs as much as all the other gradients;
* a transposed convolution to a few channels as one 2x2 convolution of stride 1 to four times as many, the even and odd
  rows and columns of the image, which are then put in their places.

All three are faces of one sum over images x, maps y and kernels w, `sum y * convolution(x, w)`, and its derivative with
respect to one of them is a function of the other two. So the derivatives of each function below are the others.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional as F

FEW = 8  # channels up to which the 2x2 convolution is the faster


class Halve(nn.Conv2d):
    """A 4x4 convolution of stride 2: (B, C, 2h, 2w) -> (B, O, h, w)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 4, stride=2, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        if torch.is_autocast_enabled(x.device.type):  # casts the plain layer only
            return super().forward(channels_last(x))
        return _apply(_Halved, x, self.weight, self.bias)


class Double(nn.ConvTranspose2d):
    """A transposed 4x4 convolution of stride 2: (B, O, h, w) -> (B, C, 2h, 2w)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 4, stride=2, padding=1)

    def forward(self, x: Tensor, output_size: list[int] | None = None) -> Tensor:
        if torch.is_autocast_enabled(x.device.type):  # casts the plain layer only
            return super().forward(channels_last(x))
        return _apply(_Doubled, x, self.weight, self.bias)


class Tile(nn.Conv2d):
    """A 2x2 convolution of stride 2, which sees every pixel once: (B, C, 2h, 2w) -> (B, O, h, w)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 2, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(channels_last(x))


class _Halved(Function):
    """The convolution: images (B, C, 2h, 2w) and kernels (O, C, 4, 4) -> maps (B, O, h, w)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kernel: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, kernel)
        return F.conv2d(channels_last(x), kernel, bias, stride=2, padding=1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, kernel = ctx.saved_tensors
        needs = ctx.needs_input_grad
        return (
            _apply(_Doubled, grad, kernel, None) if needs[0] else None,
            _apply(_Kernel, x, grad) if needs[1] else None,
            grad.sum((0, 2, 3)) if needs[2] else None,
        )


class _Doubled(Function):
    """The transposed convolution: maps (B, O, h, w) and kernels (O, C, 4, 4) -> images (B, C, 2h, 2w)."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, kernel: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(y, kernel)
        if kernel.shape[1] > FEW or y.device.type != "cpu":
            return F.conv_transpose2d(channels_last(y), kernel, bias, stride=2, padding=1)
        return interleaved(y, kernel, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        y, kernel = ctx.saved_tensors
        needs = ctx.needs_input_grad
        return (
            _apply(_Halved, grad, kernel, None) if needs[0] else None,
            _apply(_Kernel, grad, y) if needs[1] else None,
            grad.sum((0, 2, 3)) if needs[2] else None,
        )


class _Kernel(Function):
    """The gradient of the kernels: images (B, C, 2h, 2w) and maps (B, O, h, w) -> kernels (O, C, 4, 4)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        like = x.new_empty(y.shape[1], x.shape[1], 4, 4)
        grads = torch.ops.aten.convolution_backward(
            channels_last(y), channels_last(x), like, None,
            (2, 2), (1, 1), (1, 1), False, (0, 0), 1, (False, True, False),
        )  # fmt: skip
        kernel: Tensor = grads[1]
        return kernel.contiguous()  # as the weights are, so that optimisers can fuse

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, y = ctx.saved_tensors
        needs = ctx.needs_input_grad
        return (
            _apply(_Doubled, y, grad, None) if needs[0] else None,
            _apply(_Halved, x, grad, None) if needs[1] else None,
        )


def interleaved(y: Tensor, kernel: Tensor, bias: Tensor | None) -> Tensor:
    """The transposed convolution as a 2x2 one: (B, O, h, w), (O, C, 4, 4) -> (B, C, 2h, 2w).

    Counted from the padding, row 2t of the image is y[t] w[0] + y[t-1] w[2], row 2t + 1 is y[t] w[1] + y[t-1] w[3]. Hence
    kernels of two taps, w[2], w[0] and w[3], w[1], slide over the padded maps and make the even and the odd rows.
    """
    inputs, channels = kernel.shape[:2]
    taps = kernel.view(inputs, channels, 2, 2, 2, 2).flip(2, 4)  # (O, C, tap, phase, tap, phase)
    pairs = taps.permute(3, 5, 1, 0, 2, 4).reshape(4 * channels, inputs, 2, 2)
    phases = F.conv2d(channels_last(y), pairs, None if bias is None else bias.repeat(4), padding=1)
    batch, _, height, width = phases.shape  # (B, 4C, h+1, w+1)
    phases = phases.permute(0, 2, 3, 1).reshape(batch, height, width, 2, 2, channels)
    images = phases.permute(0, 1, 3, 2, 4, 5).reshape(batch, 2 * height, 2 * width, channels)
    return images[:, 1:-1, 1:-1].permute(0, 3, 1, 2).contiguous()


def channels_last(x: Tensor) -> Tensor:
    """The tensor in channels_last, also where one channel leaves it undecided: (B, C, H, W)."""
    if x.shape[1] > 1:
        return x.contiguous(memory_format=torch.channels_last)
    batch, _, height, width = x.shape
    return x.reshape(batch, height, width, 1).permute(0, 3, 1, 2)


def _apply(function: type[Function], *tensors: Tensor | None) -> Tensor:
    return function.apply(*tensors)  # type: ignore[no-any-return, no-untyped-call]
