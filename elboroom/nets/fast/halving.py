"""Convolutions that halve an image and transposed ones that double it: 4x4 kernels of stride 2 and padding 1.

They are the plain layers of PyTorch, weights and values, computed the way that a CPU likes best:

* in channels_last, also with one channel, where PyTorch by itself would not;
* the gradient of the bias as a sum, which inside a transposed layer costs as much as all the other gradients;
* a transposed convolution to a few channels as one matrix product, whose 16 taps are then added up in their places;
* ReLU in place, forth and back.

All three are faces of one sum over images x, maps y and kernels w, `sum y * convolution(x, w)`, and its derivative with
respect to one of them is a function of the other two. So the derivatives of each function below are the others.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional as F

FEW = 4  # channels up to which the matrix product is the faster


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


class Rectify(nn.Module):
    """ReLU in place, forth and back: between two of these layers nobody else holds the maps or their gradients."""

    def forward(self, x: Tensor) -> Tensor:
        return _apply(_Rectified, x) if torch.is_grad_enabled() else x.relu_()


class _Rectified(Function):
    """max(x, 0); the gradient is masked where it lies, unless it is differentiated again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y: Tensor = x.relu_()
        ctx.mark_dirty(y)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        y: Tensor = ctx.saved_tensors[0]
        if torch.is_grad_enabled() or grad.stride() != y.stride():
            return grad * (y > 0)
        masked: Tensor = torch.ops.aten.threshold_backward.grad_input(grad, y, 0, grad_input=grad)
        return masked


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
        return folded(y, kernel, bias)

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


def folded(y: Tensor, kernel: Tensor, bias: Tensor | None) -> Tensor:
    """The transposed convolution as one matrix product: (B, O, h, w), (O, C, 4, 4) -> (B, C, 2h, 2w).

    The product gives what every map says through every tap. Row 2m of the image is tap 1 at m and tap 3 at m - 1, row
    2m + 1 is tap 2 at m and tap 0 at m + 1; columns likewise.
    """
    inputs, channels = kernel.shape[:2]
    batch, _, height, width = y.shape
    maps = channels_last(y).permute(0, 2, 3, 1).reshape(-1, inputs)  # (B h w, O)
    taps = kernel.permute(2, 3, 1, 0).reshape(-1, inputs) @ maps.T
    taps = taps.view(4, 4, channels, batch, height, width)
    taps[1, ..., 1:, :] += taps[3, ..., :-1, :]
    taps[2, ..., :-1, :] += taps[0, ..., 1:, :]
    rows = taps[1:3]  # even and odd, (2, 4, C, B, h, w)
    rows[:, 1, ..., 1:] += rows[:, 3, ..., :-1]
    rows[:, 2, ..., :-1] += rows[:, 0, ..., 1:]
    images = rows[:, 1:3].permute(3, 2, 4, 0, 5, 1).reshape(batch, channels, 2 * height, 2 * width)
    return images if bias is None else images.add_(bias.view(-1, 1, 1))


def channels_last(x: Tensor) -> Tensor:
    """The tensor in channels_last, also where one channel leaves it undecided: (B, C, H, W)."""
    if x.shape[1] > 1:
        return x.contiguous(memory_format=torch.channels_last)
    batch, _, height, width = x.shape
    return x.reshape(batch, height, width, 1).permute(0, 3, 1, 2)


def _apply(function: type[Function], *tensors: Tensor | None) -> Tensor:
    return function.apply(*tensors)  # type: ignore[no-any-return, no-untyped-call]
