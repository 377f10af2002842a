"""The critic of the dual form of a KL, and a model that keeps the one that it was trained against."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elboroom.core.model import LatentModel
from elboroom.nets.mlp import dense


class DualCritic(nn.Module):
    """nu(h, z) of features h(x) beside z, or nu(z) where there are none: three layers of 512, (..., J) -> (...)."""

    def __init__(self, latent: int, features: int = 0, chart: nn.Module | None = None, width: int = 512) -> None:
        super().__init__()
        self.joint = features > 0
        self.chart = chart or nn.Identity()
        self.head = dense([latent + features, width, width, width, 1], nn.LeakyReLU(0.01))

    def forward(self, z: Tensor, h: Tensor | None = None) -> Tensor:
        flat = self.chart(z)
        out: Tensor = self.head(flat if h is None else torch.cat([flat, h.expand(*flat.shape[:-1], h.shape[-1])], -1))
        return out.squeeze(-1)


class Contested(LatentModel):
    """A latent model beside the critic that its rate is read off, so that whoever measures the model can ask it too."""

    def __init__(self, model: LatentModel, critic: DualCritic) -> None:
        super().__init__(
            model.posterior, model.prior, model.likelihood, model.sizes, dict(model.heads), model.conditioner
        )
        self.critic = critic
