"""Terms of maps of codes: where a code should arrive, what it should keep, and that it stays where codes are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elboroom.core.draw import Draw
from elboroom.core.objective import Term
from elboroom.terms.labels import Head

Codes = Callable[[Draw], Tensor]  # (B, J)
Rows = Callable[[Draw], Tensor | float]  # how much each example counts, (B,)


def mapped(draw: Draw) -> Tensor:
    """Codes after the map."""
    codes: Tensor = draw.q.mean
    return codes


def unmapped(draw: Draw) -> Tensor:
    """Codes before the map."""
    codes: Tensor = draw.q.source
    return codes


def of_context(draw: Draw) -> Tensor:
    """Codes of contexts after the map."""
    codes = draw.seen.u
    assert codes is not None
    return codes


def every(draw: Draw) -> float:
    """All examples count."""
    return 1.0


def having(column: int, value: int, share: float, but: bool = False) -> Rows:
    """Examples that have a value of a label, a share of all, or with `but` those that have another: means are over these."""

    def weights(draw: Draw) -> Tensor:
        assert draw.batch.y is not None
        chosen = (draw.batch.y[:, column] == value) != but
        return chosen.float() / (1 - share if but else share)

    return weights


def among(rows: Rows, term: Term) -> Term:
    """A term of one number an example, (B,), in which each counts as much as said."""
    return replace(term, f=lambda draw: rows(draw) * term(draw))


def cosine(codes: Codes, others: Codes, name: str) -> Term:
    """1 - cos of two codes, (B,)."""
    return Term(name, lambda draw: 1 - F.cosine_similarity(codes(draw), others(draw), dim=-1))


def told_as(head: Head, value: int) -> Term:
    """-log p(y = value | mapped code) by a head that stands still, (B,)."""
    return Term("style", lambda draw: -torch.log_softmax(head(mapped(draw)), -1)[:, value])


def natural(critic: nn.Module, codes: Codes) -> Term:
    """-log D(code), D the chance that nobody mapped it (non-saturating), (B,)."""
    return Term("natural", lambda draw: F.softplus(-critic(codes(draw)).squeeze(-1)))


def map_critic(critic: nn.Module, codes: Codes, real: Codes, moved: Rows = every, models: Rows = every) -> Term:
    """-log D(real) - log (1 - D(mapped)), codes detached: 2 log 2 where the two agree, (B,)."""

    def value(draw: Draw) -> Tensor:
        true = F.softplus(-critic(real(draw).detach()).squeeze(-1))
        false = F.softplus(critic(codes(draw).detach()).squeeze(-1))
        return models(draw) * true + moved(draw) * false

    return Term("critic", value)
