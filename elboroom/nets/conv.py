"""Convolutional encoders and decoders: an image halved to a 4x4 map, and a 4x4 map doubled to an image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elboroom.core.problem import Problem
from elboroom.nets.fast.background import around_objects
from elboroom.nets.fast.halving import Double, Halve, Rectify, Tile
from elboroom.nets.mlp import beside, dense

LARGEST = 128  # pixels
CACHED = 64  # images of which a CPU holds the feature maps in its cache


class Frame:
    """The square of 16, 32, 64 or 128 pixels in whose middle an image lies, with zeros around it."""

    def __init__(self, height: int, width: int) -> None:
        if max(height, width) > LARGEST:
            raise Problem(
                f"convolutional nets take images of up to {LARGEST}x{LARGEST} pixels, not {height}x{width}; "
                "resize them, for example to 64x64"
            )
        self.halvings = next(n for n in (2, 3, 4, 5) if 4 * 2**n >= max(height, width))  # to a map of 4x4
        self.height, self.width, self.size = height, width, 4 * 2**self.halvings
        self.top, self.left = (self.size - height) // 2, (self.size - width) // 2

    def pad(self, x: Tensor) -> Tensor:
        """Images with their margin: (B, C, H, W) -> (B, C, size, size)."""
        if self.height == self.width == self.size:
            return x
        bottom, right = self.size - self.height - self.top, self.size - self.width - self.left
        return F.pad(x, (self.left, right, self.top, bottom))

    def crop(self, x: Tensor) -> Tensor:
        """Images without their margin, so that a likelihood counts real pixels only: the inverse of `pad`."""
        return x[..., self.top : self.top + self.height, self.left : self.left + self.width]


class ConvEncoder(nn.Module):
    """Convolutions of stride 2 down to a 4x4 map, then fully connected layers; u joins the flattened map."""

    def __init__(
        self,
        shape: tuple[int, ...],
        channels: Sequence[int],
        fine: int,
        hidden: Sequence[int],
        outputs: int,
        given: int,
    ) -> None:
        """`channels`, one per halving, are those of the convolutions: the first `fine` are 4x4, the others 2x2."""
        super().__init__()
        self.shape, self.given = shape, given
        self.frame = Frame(*shape[1:])
        layers: list[nn.Module] = []
        for n, (before, after) in enumerate(pairwise([shape[0], *channels])):
            layers += [Halve(before, after) if n < fine else Tile(before, after), Rectify()]
        self.maps = nn.Sequential(*layers)
        self.dense = dense([16 * channels[-1] + given, *hidden, outputs], nn.ReLU(inplace=True))

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        if tuple(x.shape[1:]) != self.shape:
            raise Problem(f"this encoder was built for images of shape {self.shape}, not {tuple(x.shape[1:])}")
        framed = self.frame.pad(x)
        maps = around_objects(framed, self.maps)
        features = (in_parts(self.maps, framed) if maps is None else maps).flatten(1)  # (B, 16 channels)
        outputs: Tensor = self.dense(beside(features, u, self.given))
        return outputs  # (B, outputs)


class ConvDecoder(nn.Module):
    """Fully connected layers to a 4x4 map, then transposed 4x4 convolutions of stride 2; u joins z."""

    def __init__(
        self, shape: tuple[int, ...], latent: int, hidden: Sequence[int], channels: Sequence[int], given: int
    ) -> None:
        """`channels` are those of the 4x4 map and after every doubling; the last are the channels of the output."""
        super().__init__()
        self.given = given
        self.frame = Frame(*shape[1:])
        self.dense = dense([latent + given, *hidden, 16 * channels[0]], nn.ReLU(inplace=True))
        layers: list[nn.Module] = []
        for before, after in pairwise(channels):
            layers += [Rectify(), Double(before, after)]
        self.maps = nn.Sequential(*layers)

    def forward(self, z: Tensor, u: Tensor | None = None) -> Tensor:
        features: Tensor = self.dense(beside(z, u, self.given))
        return in_parts(self._images, features)  # (N, channels, H, W)

    def _images(self, features: Tensor) -> Tensor:
        images: Tensor = self.maps(features.view(-1, features.shape[1] // 16, 4, 4))
        return self.frame.crop(images)


def in_parts(layers: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Convolutional layers on a large batch; without gradients on a CPU in parts, each of which stays in its cache."""
    if torch.is_grad_enabled() or x.device.type != "cpu" or len(x) <= CACHED:
        return layers(x)
    return torch.cat([layers(part) for part in torch.split(x, CACHED)])


def halvings(shape: tuple[int, ...]) -> int:
    """How many halvings take an image of this shape, in its frame, to a 4x4 map."""
    return Frame(*shape[1:]).halvings
