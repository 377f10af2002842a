"""The networks by name, sized for the data.

name            encoder                                           decoder
burgess         conv 32@4x4/2 x4, FC 256, 256                     FC 256, 256, 512, deconv 32@4x4/2 x3, C
locatello       conv 32@4x4/2 x2, 64@2x2/2 x2, FC 256             FC 256, 1024, deconv 64, 32, 32, C @4x4/2
locatello-4x4   the same with 4x4 kernels throughout              the same
mlp-300         FC 300, ReLU                                      FC 300, ReLU
mlp-300-300     FC 300, 300, ReLU                                 FC 300, 300, ReLU
mlp-1200        FC 1200, 1200, ReLU                               FC 1200, 1200, 1200, tanh
gated-300-300   FC 300, 300, with gates                           FC 300, 300, with gates

A layer with gates is (A x + a) * sigmoid(G x + g), as in Tomczak & Welling 2018; its activations are the gates.
A name that ends in `+linear` is the net with a linear map beside it: encoder(x) + A x, decoder(z) + B z. It has what
principal components have from its first steps on, and the net learns what they leave over.

The rows are for 64x64 pixels. Images of other sizes, up to 128x128, lie in the middle of the next square of 16, 32, 64
or 128 pixels, which is halved 2, 3, 4 or 5 times to a 4x4 map. The locatello nets keep their last two convolutions (64
channels, in `locatello` 2x2) and have fewer or more of the 32-channel ones before them; decoders mirror the encoders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from torch import nn

from elboroom.core.problem import Problem, unknown
from elboroom.nets.conv import ConvDecoder, ConvEncoder, halvings
from elboroom.nets.fast.memory import keep_memory
from elboroom.nets.initial import initialise
from elboroom.nets.mlp import Layers, LinearBeside, MLPDecoder, MLPEncoder, dense, gated


@dataclass(frozen=True)
class Conv:
    """A convolutional net: the channels after n halvings, how many end in 2x2 kernels, the fully connected layers."""

    channels: Callable[[int], list[int]]
    coarse: int
    encoder: Sequence[int]
    decoder: Sequence[int]


@dataclass(frozen=True)
class MLP:
    """A fully connected net: the widths of the hidden layers of its two halves, and how their layers are made."""

    encoder: Sequence[int]
    decoder: Sequence[int]
    layers: tuple[Layers, Layers]


def _relu(widths: Sequence[int]) -> nn.Sequential:
    return dense(widths, nn.ReLU())


def _tanh(widths: Sequence[int]) -> nn.Sequential:
    return dense(widths, nn.Tanh())


def _locatello(n: int) -> list[int]:
    return [32] * (n - 2) + [64, 64]


_NETS: dict[str, Conv | MLP] = {
    "burgess": Conv(lambda n: [32] * n, 0, (256, 256), (256, 256)),
    "locatello": Conv(_locatello, 2, (256,), (256,)),
    "locatello-4x4": Conv(_locatello, 0, (256,), (256,)),
    "mlp-300": MLP((300,), (300,), (_relu, _relu)),
    "mlp-300-300": MLP((300, 300), (300, 300), (_relu, _relu)),
    "mlp-1200": MLP((1200, 1200), (1200, 1200, 1200), (_relu, _tanh)),
    "gated-300-300": MLP((300, 300), (300, 300), (gated, gated)),
}
NETS = tuple(_NETS)
LINEAR = "+linear"


def encoder(name: str, shape: tuple[int, ...], outputs: int, given: int = 0, init: str = "kaiming") -> nn.Module:
    """The encoder `net(x, u=None) -> (B, outputs)` of data of this shape, (C, H, W) for images or (D,) for vectors.

    With `given` > 0 it is conditional and takes u of shape (B, given); otherwise it ignores u.
    """
    net: nn.Module
    if name.endswith(LINEAR):
        net = encoder(name.removesuffix(LINEAR), shape, outputs, given, init)
        return LinearBeside(net, prod(shape), (outputs,), given)
    plan = _plan(name, shape)
    if isinstance(plan, Conv):
        channels = plan.channels(halvings(shape))
        net = ConvEncoder(shape, channels, len(channels) - plan.coarse, plan.encoder, outputs, given)
    else:
        net = MLPEncoder(shape, plan.encoder, outputs, given, plan.layers[0])
    return initialise(net, init)


def decoder(
    name: str,
    shape: tuple[int, ...],
    latent: int,
    channels: int | None = None,
    given: int = 0,
    init: str = "kaiming",
) -> nn.Module:
    """The decoder `net(z, u=None)` from z of shape (N, latent) to data of this shape.

    Images come out as (N, channels, H, W), where `channels` is C unless said otherwise, for instance 2C. Vectors come
    out as (N, D), or as (N, channels, D) if `channels`, the number of values per coordinate, is more than 1.
    With `given` > 0 it is conditional and takes u of shape (N, given); otherwise it ignores u.
    """
    net: nn.Module
    if name.endswith(LINEAR):
        net = decoder(name.removesuffix(LINEAR), shape, latent, channels, given, init)
        return LinearBeside(net, latent, _event(shape, channels), given)
    plan = _plan(name, shape)
    if isinstance(plan, Conv):
        maps = plan.channels(halvings(shape))[::-1]
        net = ConvDecoder(shape, latent, plan.decoder, [*maps, channels or shape[0]], given)
    else:
        net = MLPDecoder(_event(shape, channels), latent, plan.decoder, given, plan.layers[1])
    return initialise(net, init)


def critic(inputs: int, outputs: int = 1, width: int = 1000, depth: int = 6) -> nn.Module:
    """`critic-1000`, the critic of FactorVAE: `depth` layers of `width` units with leaky ReLU 0.2, then logits."""
    return initialise(dense([inputs, *[width] * depth, outputs], nn.LeakyReLU(0.2, inplace=True)), "kaiming")


def _event(shape: tuple[int, ...], channels: int | None) -> tuple[int, ...]:
    """The shape of one output: (channels, H, W), (D,) or (channels, D)."""
    if len(shape) == 3:
        return channels or shape[0], *shape[1:]
    return (channels, *shape) if channels and channels > 1 else shape


def _plan(name: str, shape: tuple[int, ...]) -> Conv | MLP:
    """What a name stands for, if it can take data of this shape."""
    keep_memory()
    if name not in _NETS:
        raise unknown("net", name, NETS)
    if len(shape) not in (1, 3) or prod(shape) < 1:
        raise Problem(f"data must be images (C, H, W) or vectors (D,), not of shape {shape}")
    if isinstance(_NETS[name], Conv) and len(shape) == 1:
        others = ", ".join(n for n, plan in _NETS.items() if isinstance(plan, MLP))
        raise Problem(f"'{name}' is convolutional and takes images; for vectors use one of {others}")
    return _NETS[name]
