"""The recast convolutions are the plain ones: same values, same gradients, same second derivatives."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elboroom.nets.fast.halving import Double, Halve


def plain(layer: nn.Conv2d | nn.ConvTranspose2d, x: Tensor) -> Tensor:
    convolve = F.conv2d if isinstance(layer, nn.Conv2d) else F.conv_transpose2d
    return convolve(x, layer.weight, layer.bias, stride=2, padding=1)


@pytest.mark.parametrize("size", [2, 4, 10, 32])
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 5), (3, 2), (4, 1), (6, 3), (5, 6), (32, 1), (32, 32)])
@pytest.mark.parametrize("kind", [Halve, Double])
def test_values_and_gradients_are_those_of_the_plain_layer(
    kind: type[Halve | Double], inputs: int, outputs: int, size: int
) -> None:
    layer = kind(inputs, outputs).double()
    x = torch.randn(3, inputs, size, size, dtype=torch.float64, requires_grad=True)
    ours, theirs = layer(x), plain(layer, x)
    torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=0)
    cotangent = torch.randn_like(theirs)
    wanted = (x, *layer.parameters())
    for a, b in zip(
        torch.autograd.grad(ours, wanted, cotangent), torch.autograd.grad(theirs, wanted, cotangent), strict=True
    ):
        torch.testing.assert_close(a, b, atol=1e-10, rtol=0)


@pytest.mark.unhurried
@pytest.mark.parametrize(("inputs", "outputs"), [(2, 3), (5, 2), (2, 5)])
@pytest.mark.parametrize("kind", [Halve, Double])
def test_first_and_second_derivatives_by_finite_differences(
    kind: type[Halve | Double], inputs: int, outputs: int
) -> None:
    layer = kind(inputs, outputs).double()
    x = torch.randn(2, inputs, 4, 2, dtype=torch.float64, requires_grad=True)

    def run(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        y: Tensor = torch.func.functional_call(layer, {"weight": weight, "bias": bias}, (x,))
        return y.square()  # so that the second derivatives are not zero

    assert torch.autograd.gradcheck(run, (x, *layer.parameters()))
    assert torch.autograd.gradgradcheck(run, (x, *layer.parameters()))


@pytest.mark.parametrize("kind", [Halve, Double])
def test_the_layout_of_the_input_does_not_matter(kind: type[Halve | Double]) -> None:
    layer = kind(3, 2)
    x = torch.randn(2, 3, 8, 8)
    views = [x.contiguous(memory_format=torch.channels_last), F.pad(x, (1, 2, 3, 4))[..., 3:-4, 1:-2]]
    for view in views:
        torch.testing.assert_close(layer(view), layer(x))
    torch.testing.assert_close(layer(x[:1].expand(2, -1, -1, -1))[1:], layer(x[:1]))


MIXED = """
import torch
from elboroom.nets.fast.halving import Double, Halve
for layer in (Halve(3, 2), Double(3, 2)):
    x = torch.randn(2, 3, 8, 8, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = layer(x)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), layer(x), atol=0.05, rtol=0.05)
    grads = torch.autograd.grad(y.float().square().sum(), (x, *layer.parameters()))
    assert all(bool(grad.abs().sum() > 0) for grad in grads)
"""


@pytest.mark.slow
def test_mixed_precision() -> None:
    # in a process of its own: some virtual machines announce tile instructions that they do not have
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}
    subprocess.run([sys.executable, "-c", MIXED], env=environment, check=True)
