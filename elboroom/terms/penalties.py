"""Penalties by name, for the general form nll + kl + lam1 R1(q(z|x)) + lam2 R2(q(z)). Users add their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from torch import Tensor

from elboroom.core.draw import Draw
from elboroom.core.objective import Term
from elboroom.core.problem import Problem, unknown
from elboroom.terms.evidence import kl
from elboroom.terms.moments import diagonal, off_diagonal
from elboroom.terms.transport import inclusive_kl, mmd

Of = Literal["example", "aggregate"]

_PENALTIES: dict[tuple[Of, str], Callable[[], Term]] = {
    ("example", "kl"): lambda: replace(kl(), name="kl_penalty"),  # beside the KL of the ELBO
    ("aggregate", "mmd"): lambda: mmd("rbf"),
    ("aggregate", "mmd-imq"): lambda: mmd("imq"),
    ("aggregate", "inclusive-kl"): inclusive_kl,
    ("aggregate", "decorrelated"): lambda: off_diagonal("samples"),
    ("aggregate", "unit-variance"): lambda: diagonal("samples"),
}


def penalty(name: str, of: Of) -> Term:
    """A registered penalty: of each q(z|x), (B,) or (B, D), or of the aggregate, ()."""
    if (of, name) not in _PENALTIES:
        names = [known for kind, known in _PENALTIES if kind == of]
        problem = unknown(f"{of} penalty", name, names)
        raise Problem(f"{problem}; to use your own, import the module that registers it")
    return _PENALTIES[of, name]()


def register(name: str, of: Of = "aggregate") -> Callable[[Callable[[Draw], Tensor]], Callable[[Draw], Tensor]]:
    """Registers f(Draw) -> nats as a penalty of each example, (B,) or (B, D), or of the aggregate, ()."""

    def keep(f: Callable[[Draw], Tensor]) -> Callable[[Draw], Tensor]:
        _PENALTIES[of, name] = lambda: Term(name, f, couples=of == "aggregate")
        return f

    return keep


def place() -> Term:
    """|log_0(mu)|^2 + |E v|^2: how far q(z|x) of the ball lies from its origin, and its draws from its centre, (B,)."""

    def value(draw: Draw) -> Tensor:
        away: Tensor = draw.q.ball.log0(draw.q.loc).square().sum(-1)
        off: Tensor = draw.q.tangent.mean.square().sum(-1)
        return away + off

    return Term("place", value)
