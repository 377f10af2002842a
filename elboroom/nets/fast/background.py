"""Images on a blank background: the first layers of an encoder, computed only where an image is not blank.

Away from the object every cell of a map is that of an empty image. So each image is cut out around its object, halved three
times, and put in its place on the map of an empty image. The values are those of the plain layers up to rounding.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elboroom.nets.fast.halving import Halve, channels_last

PART = 256  # images at a time
WORTH = 0.6  # of the pixels of an image: what is cut out must be less to save time


def around_objects(x: Tensor, layers: nn.Sequential) -> Tensor | None:
    """The layers of an encoder on framed images, around their objects; None where gradients are wanted or nothing is saved."""
    apart = torch.is_inference_mode_enabled() and x.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
    first = [layer for layer in list(layers)[:6] if isinstance(layer, nn.Conv2d)] if apart else []
    if len(first) < 3 or not isinstance(first[0], Halve) or not isinstance(first[1], Halve):
        return None
    found = []
    for part in torch.split(x, PART):
        maps = third_map(part, *first)
        if maps is None:
            return None
        for layer in list(layers)[6:]:
            maps = layer(maps)
        found.append(maps)
    return torch.cat(found)


def third_map(x: Tensor, first: nn.Conv2d, second: nn.Conv2d, third: nn.Conv2d) -> Tensor | None:
    """What the third layer makes of images x >= 0, (B, O, S/8, S/8); None where objects fill too much of their images.

    Cell k of a row or column of the second map sees pixels 4k - 3 to 4k + 6: through cells 2k - 1 to 2k + 2 of the first.
    """
    if x.amin() < 0:
        return None
    (top, high), (left, wide) = (_seen(x.amax((1, dim))) for dim in (3, 2))
    if (4 * high + 6) * (4 * wide + 6) > WORTH * x[0, 0].numel():
        return None
    cells = x.shape[-1] // 4
    cut = _windows(F.pad(x, (3, 3, 3, 3)), 4 * top, 4 * left, 4 * high + 6, 4 * wide + 6)
    maps = F.conv2d(channels_last(cut), first.weight, first.bias, stride=2).relu_()  # (B, O, 2 high + 2, 2 wide + 2)
    for edge, inside in (
        (maps[:, :, 0], top > 0),
        (maps[:, :, -1], top + high < cells),
        (maps[..., 0], left > 0),
        (maps[..., -1], left + wide < cells),
    ):
        edge *= inside.view(-1, 1, 1)  # around the first map the second layer sees zeros
    found = F.conv2d(maps, second.weight, second.bias, stride=2).relu_()  # (B, O, high, wide)
    empty = second(first(x.new_zeros(1, x.shape[1], 12, 12)).relu_()).relu_()  # (1, O, 3, 3): ends and middle
    ends = [0, *[1] * (cells - 2), 2]
    return _next(found, top, left, empty[:, :, ends][..., ends], third)


def _seen(lines: Tensor) -> tuple[Tensor, int]:
    """The first cell that sees one of the lines of each image that are not 0, (B,), and how many to take of each image."""
    ink, cells = lines != 0, lines.shape[1] // 4
    first, last = ink.int().argmax(1), (ink * torch.arange(lines.shape[1])).amax(1)  # both 0 for an empty image
    low, high = ((first - 3) // 4).clamp_min(0), ((last + 3) // 4).clamp_max(cells - 1)
    count = int((high - low).max()) + 1
    return low.clamp_max(cells - count), count


def _windows(x: Tensor, top: Tensor, left: Tensor, high: int, wide: int) -> Tensor:
    """A window of each image, or for each place of the only one, (B, C, high, wide)."""
    which = torch.arange(len(x)) if len(x) > 1 else torch.zeros_like(top)
    return x.unfold(2, high, 1).unfold(3, wide, 1)[which, :, top, left]


def _next(found: Tensor, top: Tensor, left: Tensor, empty: Tensor, layer: nn.Conv2d) -> Tensor:
    """The map after one more layer, from windows of the map before it that differ from an empty image there."""
    edge, size = int(layer.padding[0]), layer.kernel_size[0]
    cells, each = empty.shape[-1] // 2, torch.arange(len(found))
    counts = [min(cells, (length + size - 2) // 2 + 1) for length in found.shape[2:]]
    starts = [  # the first cell that sees the window
        ((low + edge - size + 2).div(2, rounding_mode="floor")).clamp(0, cells - count)
        for low, count in zip((top, left), counts, strict=True)
    ]
    around = F.pad(channels_last(empty), (edge, edge, edge, edge))
    canvas = _windows(around, 2 * starts[0], 2 * starts[1], *(2 * (count - 1) + size for count in counts))
    place = canvas.unfold(2, found.shape[2], 1).unfold(3, found.shape[3], 1)
    place[each, :, top + edge - 2 * starts[0], left + edge - 2 * starts[1]] = found
    here = F.conv2d(channels_last(canvas), layer.weight, layer.bias, stride=2).relu_()  # (B, O, *counts)
    whole = channels_last(channels_last(layer(empty).relu_()).expand(len(found), -1, -1, -1))  # (B, O, S/2, S/2)
    whole.unfold(2, counts[0], 1).unfold(3, counts[1], 1)[each, :, starts[0], starts[1]] = here
    return whole
