"""Blocks: a term looked at through a named part of z, `of("style", kl())`."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, cast

from torch import Tensor

from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.kl import is_per_dim, kl_divergence
from elboroom.core.law import capabilities
from elboroom.core.model import WHOLE, LatentModel
from elboroom.core.objective import Term
from elboroom.core.problem import Problem


class Part(Draw):
    """A Draw seen through a block of z: q, p, z and rate are those of its dimensions; x and p(x|z) are of the whole."""

    def __init__(self, whole: Draw, name: str) -> None:
        super().__init__(whole.model, whole.batch, whole.samples)
        self.whole, self.name, self.where = whole, name, whole.model.block(name)

    @cached_property
    def seen(self) -> Batch:
        return self.whole.seen

    @cached_property
    def q(self) -> Any:
        return self.whole.q.part(self.where)

    @cached_property
    def p(self) -> Any:
        return self.whole.p.part(self.where)

    @cached_property
    def z(self) -> Tensor:
        return self.whole.z[..., self.where]

    @cached_property
    def px(self) -> Any:
        return self.whole.px

    @cached_property
    def nll(self) -> Tensor:
        return self.whole.nll

    @cached_property
    def rate(self) -> Tensor:
        if is_per_dim(type(self.whole.q), type(self.whole.p)):
            return self.whole.rate[:, self.where]
        return kl_divergence(self.q, self.p, lambda: self.z)

    @cached_property
    def other(self) -> Draw:
        return Part(self.whole.other, self.name)


class _Through:
    """A model whose families are those of a block, for checks; all else is that of the whole."""

    def __init__(self, model: LatentModel, where: slice) -> None:
        self._model = model
        self.families = tuple(_family(family, where) for family in model.families)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


def _family(family: Any, where: slice) -> Any:
    """The family of some dimensions: what one that is put together of others says, else the family itself."""
    return family if isinstance(family, type) else family.part(where)


def of(block: str, term: Term) -> Term:
    """The same term on a part of z, its name suffixed; `of("z", term)` is the term."""
    if block == WHOLE:
        return term

    def value(draw: Draw) -> Tensor:
        return term.f(draw.keep((Part, block), lambda: Part(draw, block)))

    def check(model: LatentModel) -> None:
        where = model.block(block)
        for family in model.families:
            if not capabilities(family).has_parts:
                raise Problem(
                    f"{term.name} of the block '{block}' needs q(z|x) and p(z) with independent dimensions; "
                    "use --posterior gaussian with --prior normal"
                )
        term.check(cast(LatentModel, _Through(model, where)))

    return replace(term, name=f"{term.name}_{block}", f=value, check=check)
