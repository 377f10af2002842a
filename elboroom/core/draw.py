"""Batch, LatentModel and Draw: what a model is given, what it is, and the random variables of one forward pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from elboroom.core import pairs
from elboroom.core.ball import along


@dataclass(frozen=True)
class Batch:
    """What a model is given: x, and what is observed beside it."""

    x: Tensor  # pixels in [0, 1] of shape (B, C, H, W), real vectors (B, D), or token ids (B, T)
    u: Tensor | None = None  # labels or context, (B, U)
    lengths: Tensor | None = None  # text lengths, (B,)
    index: Tensor | None = None  # rows in the data set, (B,)
    step: int = 0

    def to(self, device: torch.device) -> Batch:
        """The same batch on another device."""
        moved: dict[str, Any] = {
            name: tensor.to(device, non_blocking=True)
            for name, tensor in vars(self).items()
            if isinstance(tensor, Tensor) and tensor.device != device
        }
        return replace(self, **moved) if moved else self


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


class Draw:
    """The random variables of one forward pass. Lazy: each is computed when first asked for, then kept."""

    def __init__(
        self, model: LatentModel, batch: Batch, samples: int = 1, another: Callable[[], Draw] | None = None
    ) -> None:
        self.model, self.batch, self.samples = model, batch, samples
        self._another = another
        self._kept: dict[Any, Any] = {}

    @cached_property
    def q(self) -> Any:
        """q(z|x,u)."""
        return self.model.posterior(self.batch)

    @cached_property
    def p(self) -> Any:
        """p(z|u)."""
        return self.model.prior(self.batch)

    @cached_property
    def z(self) -> Tensor:
        """Reparametrised samples of q, (K, B, *event)."""
        z: Tensor = self.q.rsample((self.samples,))
        return z

    @cached_property
    def first(self) -> Tensor:
        """The first sample of each row, (B, *event)."""
        return along(self.z, lambda z: z[0])

    @cached_property
    def px(self) -> Any:
        """p(x|z,u) at every sample."""
        return self.model.likelihood(self.z, self.batch)

    @cached_property
    def nll(self) -> Tensor:
        """-log p(x|z) at every sample, (K, B)."""
        nll: Tensor = -self.px.log_prob(self.batch.x)
        return nll

    @cached_property
    def rate(self) -> Tensor:
        """KL(q || p), (B, D) where the pair knows it per dimension, else (B,)."""
        return pairs.rate(self.q, self.p, lambda: self.z)

    @cached_property
    def log_q_pairs(self) -> Tensor:
        """log q(z_ij | x_m): the first sample of each row under the posterior of every row of the global batch, (B, M, D)."""
        pairs_: Tensor = self.q.gathered().log_prob_per_dim(self.first.unsqueeze(1))
        return pairs_

    @cached_property
    def other(self) -> Draw:
        """An independent Draw on another batch, for players that compare two."""
        if self._another is None:
            raise RuntimeError("this Draw was made without a second batch")
        return self._another()

    def keep(self, key: Any, make: Callable[[], Any]) -> Any:
        """What `make` returns, computed once per Draw: for what several terms share."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]
