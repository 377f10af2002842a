"""Base: a trained run that stands frozen under another, as methods see it (training/base.py opens it)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from elboroom.core.model import LatentModel
from elboroom.data.tokens import Tokeniser
from elboroom.families.recalled import Recalled


@dataclass(frozen=True)
class Base:
    """A trained run that stands frozen under another: its model, and its posterior with codes worked out once.

    `model.with_posterior(codes)` reads the codes of training examples off a table, and `targets` are those of their paired
    targets, `contexts` those of their contexts; `spec` is that of the run.
    """

    model: LatentModel
    codes: Recalled
    latent: int
    tokeniser: Tokeniser | None
    spec: Any
    targets: Recalled
    contexts: Recalled
