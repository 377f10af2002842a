"""A critic of pairs (x, z)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elboroom.nets.mlp import dense


class JointCritic(nn.Module):
    """T(x, z): features of x beside z, through two wide layers, (B,)."""

    def __init__(
        self, features: nn.Module, size: int, latent: int, width: int = 512, chart: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.features, self.chart = features, chart or nn.Identity()
        self.head = dense([size + latent, width, width, 1], nn.LeakyReLU(0.2))

    def forward(self, x: Tensor, z: Tensor, u: Tensor | None = None) -> Tensor:
        out: Tensor = self.head(torch.cat([self.features(x, u), self.chart(z)], -1))
        return out.squeeze(-1)
