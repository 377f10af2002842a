"""LatentModel: the three conditional distributions of a latent-variable model, the parts of its z, and what reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from elboroom.core.batch import Batch
from elboroom.core.batch import Condition as Condition
from elboroom.core.problem import Problem, unknown

WHOLE = "z"  # the block that is all of z


class LatentModel(nn.Module):
    """Three conditional distributions: q(batch) -> q(z|x,u), p(batch) -> p(z|u), px(z, batch) -> p(x|z,u).

    They are asked for by these verbs alone. `posterior`, `prior` and `likelihood` are the modules behind them; posterior and
    prior name the family that they return as `family`. `blocks` are named parts of z, `heads` what reads codes and belongs
    to the model: classifiers and the like, saved and loaded with it. `conditioner` turns a batch into the Condition that the
    nets see beside x, a context encoded; without one that is u, the labels that are given.
    """

    def __init__(
        self,
        posterior: nn.Module,
        prior: nn.Module,
        likelihood: nn.Module,
        blocks: Mapping[str, int] | None = None,
        heads: Mapping[str, nn.Module] | None = None,
        conditioner: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.posterior, self.prior, self.likelihood = posterior, prior, likelihood
        self.sizes = dict(blocks or {})  # of the blocks, in the order in which they lie in z
        if WHOLE in self.sizes:
            raise Problem(f"a block is named '{WHOLE}', which is all of z; give it another name")
        self.heads = nn.ModuleDict(heads)
        self.conditioner = conditioner

    @property
    def conditioners(self) -> list[nn.Module]:
        """The conditioner, where there is one: for the group that is to train it."""
        return [] if self.conditioner is None else [self.conditioner]

    def condition(self, batch: Batch) -> Condition:
        """What the nets see beside x."""
        if batch.condition is not None:
            return batch.condition
        return Condition(batch.u) if self.conditioner is None else self.conditioner(batch)

    def conditioned(self, batch: Batch) -> Batch:
        """The batch as the nets see it; what is worked out already is not worked out again."""
        if self.conditioner is None or batch.condition is not None:
            return batch
        condition = self.condition(batch)
        return replace(batch, u=condition.vector, condition=condition)

    def q(self, batch: Batch) -> Any:
        """q(z|x,u)."""
        return self.posterior(self.conditioned(batch))

    def p(self, batch: Batch) -> Any:
        """p(z|u)."""
        return self.prior(self.conditioned(batch))

    def px(self, z: Tensor, batch: Batch) -> Any:
        """p(x|z,u) at every sample, z of shape (K, B, *event)."""
        return self.likelihood(z, self.conditioned(batch))

    @property
    def families(self) -> tuple[Any, Any]:
        """The families of q and p, on which depends what can be asked of them."""
        return self.posterior.family, self.prior.family

    @property
    def blocks(self) -> dict[str, slice]:
        """The named parts of z, with the whole as `z`."""
        ends = [sum(list(self.sizes.values())[: i + 1]) for i in range(len(self.sizes))]
        parts = {name: slice(end - size, end) for (name, size), end in zip(self.sizes.items(), ends, strict=True)}
        return {WHOLE: slice(None)} | parts

    def block(self, name: str) -> slice:
        """Where a named part of z lies."""
        if name not in self.blocks:
            raise unknown("block", name, self.blocks, "z")
        return self.blocks[name]

    def with_heads(self, **heads: nn.Module) -> LatentModel:
        """The same model with these heads beside those that it has."""
        self.heads.update(heads)
        return self

    def with_conditioner(self, conditioner: nn.Module) -> LatentModel:
        """The same model whose nets see what this makes of a batch, beside x."""
        return LatentModel(self.posterior, self.prior, self.likelihood, self.sizes, dict(self.heads), conditioner)

    def with_posterior(self, posterior: nn.Module) -> LatentModel:
        """Another posterior beside the same prior and likelihood."""
        return LatentModel(posterior, self.prior, self.likelihood, self.sizes, dict(self.heads), self.conditioner)

    def with_prior(self, prior: nn.Module) -> LatentModel:
        """Another prior beside the same posterior and likelihood."""
        return LatentModel(self.posterior, prior, self.likelihood, self.sizes, dict(self.heads), self.conditioner)
