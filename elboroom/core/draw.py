"""Draw: the random variables of one forward pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from torch import Tensor

from elboroom.core.batch import Batch
from elboroom.core.kl import kl_divergence
from elboroom.core.model import LatentModel


class Draw:
    """The random variables of one forward pass. Lazy: each is computed when first asked for, then kept."""

    def __init__(
        self, model: LatentModel, batch: Batch, samples: int = 1, another: Callable[[], Draw] | None = None
    ) -> None:
        self.model, self.batch, self.samples = model, batch, samples
        self._another = another
        self._cache: dict[Any, Any] = {}

    @cached_property
    def seen(self) -> Batch:
        """The batch as the nets see it, what is given worked out once."""
        return self.model.conditioned(self.batch)

    @cached_property
    def q(self) -> Any:
        """q(z|x,u)."""
        return self.model.q(self.seen)

    @cached_property
    def p(self) -> Any:
        """p(z|u)."""
        return self.model.p(self.seen)

    @cached_property
    def z(self) -> Tensor:
        """Reparametrised samples of q, (K, B, *event)."""
        z: Tensor = self.q.rsample((self.samples,))
        return z

    @cached_property
    def first(self) -> Tensor:
        """The first sample of each row, (B, *event)."""
        return self.z[0]

    @cached_property
    def px(self) -> Any:
        """p(x|z,u) at every sample."""
        return self.model.px(self.z, self.seen)

    @cached_property
    def nll(self) -> Tensor:
        """-log p(x|z) at every sample, (K, B)."""
        nll: Tensor = -self.px.log_prob(self.batch.x)
        return nll

    @cached_property
    def rate(self) -> Tensor:
        """KL(q || p), (B, D) where the pair knows it per dimension, else (B,)."""
        return kl_divergence(self.q, self.p, lambda: self.z)

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
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]
