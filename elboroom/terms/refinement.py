"""Terms of a refined posterior: the encoder's own q(z|x) beside the one that gradient steps have made of it."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from elboroom.core.draw import Draw
from elboroom.core.kl import kl_divergence
from elboroom.core.objective import Term


def unrefined(term: Term) -> Term:
    """The same term of the encoder's own q(z|x)."""

    def make(draw: Draw) -> Draw:
        first = Draw(draw.model, draw.batch, draw.samples)
        first.q = draw.q.first
        return first

    def value(draw: Draw) -> Tensor:
        return term(draw.keep("unrefined", lambda: make(draw)))

    return replace(term, name=f"{term.name}_first", f=value)


def amortised() -> Term:
    """KL(q_0 || q_K) of the encoder's own q from the refined one, a constant: what it descends to save refinement."""

    def value(draw: Draw) -> Tensor:
        first = draw.q.first
        refined = type(first)(draw.q.loc.detach(), draw.q.logvar.detach())
        return kl_divergence(first, refined, lambda: draw.z)

    return Term("kl_refined", value)
