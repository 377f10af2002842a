"""Codes of a frozen run, mapped: in the place of q(z|x), or of what a decoder is told of a context."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from elboroom.core.batch import Batch, Condition
from elboroom.core.law import capabilities
from elboroom.core.problem import Problem
from elboroom.families.point import Point


class Moved(Point):
    """All mass at a code that was mapped; `source` is where it came from."""

    def __init__(self, loc: Tensor, source: Tensor) -> None:
        super().__init__(loc)
        self.source = source


class Mapped(nn.Module):
    """The mean of q(z|x), mapped: to reconstruct with this posterior is to edit."""

    family = Moved

    def __init__(self, posterior: nn.Module, mapping: nn.Module) -> None:
        super().__init__()
        require_flat(posterior)
        self.posterior, self.mapping = posterior, mapping

    def forward(self, batch: Batch) -> Moved:
        source = self.posterior(batch).mean
        return Moved(self.mapping(source), source)


class ContextCode(nn.Module):
    """What a decoder is told of a context of one sentence: its code, mapped."""

    def __init__(self, posterior: nn.Module, mapping: nn.Module) -> None:
        super().__init__()
        require_flat(posterior)
        self.posterior, self.mapping = posterior, mapping

    def forward(self, batch: Batch) -> Condition:
        return Condition(self.mapping(self.posterior(replace(batch, u=None)).mean))


class FromContext(nn.Module):
    """p(x|c) of a decoder of codes: z is the code that the context was turned into."""

    def __init__(self, likelihood: nn.Module) -> None:
        super().__init__()
        self.likelihood = likelihood

    @property
    def family(self) -> Any:
        """The family of the likelihood."""
        return self.likelihood.family

    def forward(self, z: Tensor, batch: Batch) -> Any:
        assert batch.u is not None
        return self.likelihood(batch.u.expand(len(z), *batch.u.shape), replace(batch, u=None, condition=None))


def require_flat(posterior: nn.Module) -> None:
    """Refuses codes that do not live on R^d: a map would take them elsewhere."""
    if capabilities(posterior.family).space != "euclidean":
        raise Problem(
            "the codes of this base lie on a curved space, which a map would leave; use a base with codes in R^d"
        )
