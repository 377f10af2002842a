"""Images on a blank background: what is computed around the object alone is what the plain layers give."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from elboroom import nets
from elboroom.nets.fast import background


def encoder(name: str, shape: tuple[int, int, int]) -> nn.Module:
    net = nets.encoder(name, shape, 6)
    for parameter in net.parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, 0, 0.3)  # an empty image is not mapped to zeros
    return net


def objects(shape: tuple[int, int, int], size: int, count: int = 40) -> Tensor:
    """Random squares at random places; the first ones touch the corners, the last image is empty."""
    rng = np.random.default_rng(size)
    x = torch.zeros(count, *shape)
    span = shape[1] - size
    places = [(0, 0), (0, span), (span, 0), (span, span), *rng.integers(0, span + 1, (count - 5, 2)).tolist()]
    for image, (top, left) in zip(x, places, strict=False):
        image[:, top : top + size, left : left + size] = torch.from_numpy(rng.random((shape[0], size, size)))
    return x


@pytest.mark.parametrize("name", ["burgess", "locatello", "locatello-4x4"])
@pytest.mark.parametrize(
    ("shape", "size"), [((1, 64, 64), 1), ((1, 64, 64), 20), ((3, 64, 64), 9), ((1, 128, 128), 30)]
)
def test_the_object_alone_gives_what_the_plain_layers_give(name: str, shape: tuple[int, int, int], size: int) -> None:
    net, x = encoder(name, shape), objects(shape, size)
    with torch.no_grad():
        plain = net(x)
    calls = []
    third_map = background.third_map
    with torch.inference_mode(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(background, "third_map", lambda *args: calls.append(third_map(*args)) or calls[-1])
        found = net(x)
    assert any(call is not None for call in calls)
    torch.testing.assert_close(found, plain, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("shape", [(1, 28, 28), (1, 16, 16), (3, 32, 32)])
def test_small_images_and_those_that_are_full(shape: tuple[int, int, int]) -> None:
    net = encoder("burgess", shape)
    for x in (objects(shape, 4), torch.rand(8, *shape), torch.randn(8, *shape), torch.zeros(8, *shape)):
        with torch.no_grad():
            plain = net(x)
        with torch.inference_mode():
            torch.testing.assert_close(net(x), plain, rtol=1e-4, atol=2e-5)


def test_full_and_negative_images_take_the_plain_layers() -> None:
    net = encoder("burgess", (1, 64, 64))
    layers = [layer for layer in net.modules() if isinstance(layer, nn.Conv2d)][:3]
    with torch.inference_mode():
        assert background.third_map(torch.ones(4, 1, 64, 64), *layers) is None
        assert background.third_map(-objects((1, 64, 64), 9), *layers) is None
