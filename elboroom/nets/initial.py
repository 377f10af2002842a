"""How weights begin; biases begin at zero."""

from __future__ import annotations

from math import sqrt

import torch
from torch import nn

from elboroom.core.problem import unknown

INITS = ("kaiming", "small", "principal", "glorot", "torch")
SMALL = 0.1  # of a last layer


def initialise(net: nn.Module, init: str) -> nn.Module:
    """The net with fresh weights in all its layers, by name.

    kaiming    normal with standard deviation sqrt(2 / n_in)
    small      the same, but the last layer a tenth of it: codes begin near the prior, and images near grey
    principal  small, for nets whose linear maps are set to principal components by whoever has the data
    glorot     uniform on +-sqrt(6 / (n_in + n_out)), all the weights of a kernel counted on both sides
    torch      as PyTorch makes them, biases too
    """
    if init not in INITS:
        raise unknown("initialisation", init, INITS)
    layers = [layer for layer in net.modules() if isinstance(layer, nn.Linear | nn.Conv2d | nn.ConvTranspose2d)]
    for layer in layers:
        if init != "torch":
            if init in ("kaiming", "small", "principal"):
                nn.init.normal_(layer.weight, std=sqrt(2 / fan_in(layer)))
            else:
                nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    if init in ("small", "principal") and layers:
        with torch.no_grad():
            layers[-1].weight.mul_(SMALL)
    return net


def fan_in(layer: nn.Linear | nn.Conv2d | nn.ConvTranspose2d) -> float:
    """How many weights meet in one output of the layer."""
    if isinstance(layer, nn.ConvTranspose2d):
        # with stride 2 an output pixel meets every second tap of a kernel in either direction: 4 of the 16
        return layer.in_channels * layer.weight[0, 0].numel() / (layer.stride[0] * layer.stride[1])
    return layer.weight[0].numel()
