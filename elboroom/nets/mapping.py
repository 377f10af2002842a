"""Maps of codes to codes: what turns the code of one sentence or image into that of another."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from elboroom.core.problem import Problem

Mapping = Literal["offset", "resnet", "mlp", "identity"]


class Offset(nn.Module):
    """x + W2 SELU(W1 x): a learnt offset. With W2 = 0 it is the identity."""

    def __init__(self, codes: int, width: int) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(codes, width), nn.Linear(width, codes)

    def forward(self, x: Tensor) -> Tensor:
        offset: Tensor = self.out(F.selu(self.into(x)))
        return x + offset


class Residual(Offset):
    """SELU(x + W2 SELU(W1 x))."""

    def forward(self, x: Tensor) -> Tensor:
        return F.selu(super().forward(x))


def mapping(kind: Mapping, codes: int, layers: int = 1, width: int = 0) -> nn.Module:
    """A map of codes of so many dimensions; hidden layers are as wide as the codes where no width is said.

    offset: a learnt offset a layer (OffsetNet). resnet: the same with an activation after each layer, and a linear one at the
    end. mlp: hidden layers and a linear one, which forget where they came from. identity: nothing is learnt.
    """
    if kind == "identity" and (layers, width) != (1, 0):
        raise Problem("the identity has no layers; remove --layers and --width")
    wide = width or codes
    if kind == "identity":
        return nn.Identity()
    if kind == "offset":
        return nn.Sequential(*(Offset(codes, wide) for _ in range(layers)))
    if kind == "resnet":
        return nn.Sequential(*(Residual(codes, wide) for _ in range(layers)), nn.Linear(codes, codes))
    sizes = [codes, *[wide] * layers]
    hidden = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.SELU())]
    return nn.Sequential(*hidden, nn.Linear(wide, codes))
