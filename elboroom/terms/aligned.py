"""Terms of the cross-aligned autoencoder: critics of the states in which a decoder reads real text and writes its own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from elboroom.core.draw import Draw
from elboroom.core.objective import Term
from elboroom.core.problem import Problem


def aligned(draw: Draw, critics: Any, temperature: float) -> Any:
    """The states of a batch, read and written, worked out once a Draw; critics are those of nets/critics.py."""

    def make() -> Any:
        y = draw.batch.y
        if y is None or y.shape[1] <= critics.column:
            raise Problem(f"there is no label '{critics.field}' in this data")
        decoder, style = draw.model.likelihood.net, y[:, critics.column]
        return critics.aligned(decoder, draw.first, draw.batch.x, style, temperature)

    return draw.keep((critics, temperature), make)


def cross_critic(critics: Any, temperature: float) -> Term:
    """The losses of all critics, 2 log 2 each where the two kinds of states agree; states are constants."""
    return Term("critic", lambda draw: critics.losses(aligned(draw, critics, temperature)).sum(), couples=True)


def cross_aligned(critics: Any, temperature: float, gate: float, saturating: bool = False) -> Term:
    """sum over styles k of the mean of -log D_k, or log (1 - D_k), of states written in style k.

    It has a gradient only while every critic's loss is below the gate: one that knows nothing has nothing to teach.
    """

    def value(draw: Draw) -> Tensor:
        states = aligned(draw, critics, temperature)
        logits = critics(states.written, states.other)
        told: Tensor = critics.per_style(-F.softplus(logits) if saturating else F.softplus(-logits), states.other).sum()
        with torch.no_grad():
            knows = bool(critics.losses(states).max() < gate)
        return told if knows else told.detach()

    return Term("aligned", value, couples=True)
