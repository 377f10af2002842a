"""How far the aggregate posterior is from the prior: MMD^2 of draws of both, with the p-value of a permutation test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from elboroom.core.draw import Draw
from elboroom.core.law import law_of
from elboroom.divergences.mmd import Kernel, two_sample
from elboroom.evaluate.registry import Quantity, Results, family, named
from elboroom.evaluate.result import Result
from elboroom.families.gaussian import NoPrior
from elboroom.terms.adversarial import prior_draws

if TYPE_CHECKING:
    from elboroom.evaluate.split import Split
    from elboroom.evaluate.subject import Subject

ROWS, PERMUTATIONS = 2000, 500
GIVES = {"mmd": Quantity("MMD² of q(z) and p(z)", "low")}


@family("mmd", "split", GIVES)
def of_run(subject: Subject, split: str | None = None, seed: int = 0) -> Results:
    """MMD^2 of q(z) and the prior: a code and a draw of p(z) for each of 2,000 examples, RBF at their median distance."""
    how = f"U-statistic, rbf at the median distance, {PERMUTATIONS} permutations"
    if not subject.run.latent or isinstance(subject.run.model.prior, NoPrior):
        lacking = "prior" if subject.run.latent else "z"
        return named({"mmd": Result(None, how, reason=f"the model has no {lacking}")})
    part = subject.run.split(split, ROWS, seed)
    codes, prior = draws(part)
    settings = part.settings | {"kernel": "rbf", "permutations": PERMUTATIONS}
    if len(codes) < 5:
        return named({"mmd": Result(None, how, settings=settings, reason="fewer than 5 examples")})
    kernel = Kernel.of("rbf", codes, prior)
    test, found = two_sample(codes, prior, kernel, PERMUTATIONS, seed)
    parts = {"p": test.p, "biased": found["mmd2_v"]}
    note = f"p = {test.p:.3g}" + (": q(z) and p(z) cannot be told apart by it" if test.p > 0.05 else "")
    chance = {"under q(z) = p(z)": float(test.null.std())}
    settings |= {"bandwidth": kernel.scale}
    return named({"mmd": Result(test.statistic, how, "", settings, chance, parts=parts, note=note)})


@torch.no_grad()
def draws(split: Split) -> tuple[Tensor, Tensor]:
    """A code z ~ q(z|x) of each row, and a draw of its prior, (n, J) each; points of the ball by log_0."""
    codes, prior = list[Tensor](), list[Tensor]()
    for batch in split.batches():
        draw = Draw(split.model, batch)
        flat = law_of(type(draw.q)).flat
        codes.append(flat(draw.q, draw.first).double().cpu())
        prior.append(flat(draw.q, prior_draws(draw)).double().cpu())
    return torch.cat(codes), torch.cat(prior)
