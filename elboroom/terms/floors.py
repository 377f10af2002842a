"""Floors below which a rate costs nothing: free bits."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from elboroom.core import distributed
from elboroom.core.draw import Draw
from elboroom.core.kl import is_per_dim, per_example, require_moving
from elboroom.core.model import LatentModel
from elboroom.core.objective import Term
from elboroom.core.problem import Problem

Unit = Literal["total", "per_dim"]
Reduce = Literal["sample", "batch"]
Form = Literal["hinge", "mask"]


def free_bits(
    term: Term, target: float, unit: Unit = "per_dim", reduce: Reduce = "sample", form: Form = "hinge"
) -> Term:
    """max(floor, D) for a rate D that comes per dimension: the gradient of D above the floor, none below it.

    unit: one floor of `target` nats for the sum over dimensions, or one of target / J for each of them.
    reduce: held against the rate of each example, or against its mean over the global batch.
    form: the hinge, or the mask 1[D > floor] D, which has the same gradient and falls to 0 below the floor.
    """

    def value(draw: Draw) -> Tensor:
        rate = term(draw)  # (B, J), or (B,) where the pair has no KL per dimension
        if unit == "total":
            rate = per_example(rate)  # (B,)
        floor = target if unit == "total" else target / rate.shape[1]
        level = rate if reduce == "sample" else distributed.mean(rate.mean(0))
        return torch.where(level > floor, rate, floor if form == "hinge" else 0.0)

    def check(model: LatentModel) -> None:
        term.check(model)
        require_moving(model, "a floor below it")
        if unit == "per_dim" and not is_per_dim(*model.families):
            raise Problem(
                "a floor for each dimension needs a KL that is a sum over dimensions; "
                "use --posterior gaussian with --prior normal, or free-bits with --unit total"
            )

    return Term(
        f"{term.name}_{form}",
        value,
        samples=term.samples,
        check=check,
        couples=term.couples or reduce == "batch",
    )
