"""Blocks: a term looked at through a named part of z, `of("style", kl())`."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

from torch import Tensor

from elboroom.core.draw import Draw
from elboroom.core.law import law_of
from elboroom.core.model import WHOLE, LatentModel
from elboroom.core.objective import Term
from elboroom.core.problem import Problem


class Part(Draw):
    """A Draw seen through a block of z: q, p, z and rate are those of its dimensions; x and p(x|z) are of the whole."""

    def __init__(self, whole: Draw, name: str) -> None:
        super().__init__(whole.model, whole.batch, whole.samples)
        self.whole, self.name, self.where = whole, name, whole.model.block(name)

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
        return self.whole.rate[:, self.where]

    @cached_property
    def other(self) -> Draw:
        return Part(self.whole.other, self.name)


def of(block: str, term: Term) -> Term:
    """The same term on a part of z, its name suffixed; `of("z", term)` is the term."""
    if block == WHOLE:
        return term

    def value(draw: Draw) -> Tensor:
        return term.f(draw.keep((Part, block), lambda: Part(draw, block)))

    def check(model: LatentModel) -> None:
        model.block(block)
        for family in model.families:
            if not law_of(family).has_parts:
                raise Problem(
                    f"{term.name} of the block '{block}' needs q(z|x) and p(z) with independent dimensions; "
                    "use --posterior gaussian with --prior normal"
                )
        term.check(model)

    return replace(term, name=f"{term.name}_{block}", f=value, check=check)
