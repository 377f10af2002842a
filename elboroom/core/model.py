"""LatentModel: the three conditional distributions of a latent-variable model."""

from __future__ import annotations

from typing import Any

from torch import nn


class LatentModel(nn.Module):
    """Three conditional distributions: posterior(batch) -> q(z|x,u), prior(batch) -> p(z|u), likelihood(z, batch) -> p(x|z,u).

    Posterior and prior modules name the family that they return as `family`.
    """

    def __init__(self, posterior: nn.Module, prior: nn.Module, likelihood: nn.Module) -> None:
        super().__init__()
        self.posterior, self.prior, self.likelihood = posterior, prior, likelihood

    @property
    def families(self) -> tuple[Any, Any]:
        """The families of q and p, on which depends what can be asked of them."""
        return self.posterior.family, self.prior.family

    def with_posterior(self, posterior: nn.Module) -> LatentModel:
        """Another posterior beside the same prior and likelihood."""
        return LatentModel(posterior, self.prior, self.likelihood)

    def with_prior(self, prior: nn.Module) -> LatentModel:
        """Another prior beside the same posterior and likelihood."""
        return LatentModel(self.posterior, prior, self.likelihood)
