"""Terms of a guide, which tells the style of sentences: of real ones, and of those that a decoder is about to write."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from elboroom.core.draw import Draw
from elboroom.core.objective import Term
from elboroom.core.problem import Problem
from elboroom.core.vocabulary import PAD


def guide_nll(guide: Any) -> Term:
    """-log q(style | x) of real text, (B,)."""
    return Term("guide_nll", lambda draw: _missed(_real(guide, draw), _styles(guide, draw)))


def guide_accuracy(guide: Any) -> Term:
    """How often the likeliest style is the right one: no nats, and so for the log alone, (B,)."""
    return Term("guide_accuracy", lambda draw: (_real(guide, draw).argmax(1) == _styles(guide, draw)).to(torch.float32))


def guided(guide: Any, tau: float) -> Term:
    """-log q(style | soft words), each softmax(logits / tau) of what the decoder says next, teacher forced, (B,).

    The logits are those of the likelihood, which learns from both: no projection of the guide's own comes between.
    """

    def value(draw: Draw) -> Tensor:
        p = torch.softmax(draw.px.logits(draw.batch.x)[0] / tau, -1)  # (B, T, V)
        return _missed(guide.soft(p, draw.batch.x[:, 1:] != PAD), _styles(guide, draw))

    return Term("guided", value)


def _real(guide: Any, draw: Draw) -> Tensor:
    found: Tensor = draw.keep(guide, lambda: guide(draw.batch.x))
    return found


def _styles(guide: Any, draw: Draw) -> Tensor:
    y = draw.batch.y
    if y is None or y.shape[1] <= guide.column:
        raise Problem(f"there is no label '{guide.field}' in this data to be told")
    return y[:, guide.column]


def _missed(log_p: Tensor, styles: Tensor) -> Tensor:
    return -log_p.gather(1, styles.unsqueeze(1)).squeeze(1)
