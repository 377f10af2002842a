"""The KL in its dual form, max over nu of E_q nu - E_p e^nu + 1. Any critic gives less: an ELBO made of it is no bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elboroom.core.draw import Draw
from elboroom.core.model import LatentModel
from elboroom.core.objective import Term
from elboroom.core.problem import Problem
from elboroom.terms.adversarial import prior_draws

MOST = 300.0  # nu is held below this, so that neither e^nu nor its square overflows
STEEP = 30.0  # above any rate; from here e^nu goes on as its tangent for those who learn from it


def dual(nu_q: Tensor, nu_p: Tensor) -> Tensor:
    """nu(z) - e^nu(z') + 1, z ~ q, z' ~ p: in expectation at most KL(q || p), and equal to it at nu = log q / p."""
    return nu_q.double().clamp_max(MOST) - torch.exp(nu_p.double().clamp_max(MOST)) + 1


def learned_dual(nu_q: Tensor, nu_p: Tensor) -> Tensor:
    """The same up to nu(z') = 30, and beyond it with a slope that can be descended."""
    held = nu_p.clamp_max(STEEP)
    return nu_q - torch.exp(held) * (1 + nu_p - held) + 1


Lesson = Literal["dual", "logistic"]
LESSONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "dual": lambda nu_q, nu_p: -learned_dual(nu_q, nu_p),
    "logistic": lambda nu_q, nu_p: F.softplus(-nu_q) + F.softplus(nu_p),
}


def _check(critic: nn.Module) -> Callable[[LatentModel], None]:
    """Refuses a posterior without the features that a critic of (x, z) reads."""

    def check(model: LatentModel) -> None:
        if critic.joint and not getattr(model.posterior, "features", 0):
            raise Problem(
                "nu(x, z) uses the features of an implicit posterior, and this one has none; "
                "remove --posterior, and choose with --generator"
            )

    return check


def _features(draw: Draw, critic: nn.Module) -> Tensor | None:
    """h(x), detached: nu is a function of x, and no way for the encoder to please it. None where it reads z alone."""
    return draw.q.features.detach() if critic.joint else None


def dual_rate(critic: nn.Module, prior: bool = False) -> Term:
    """E_q nu(x, z) - E_p e^nu(x, z) + 1 for KL(q(z|x) || p), or with nu(z) for KL(q(z) || p).

    Draws of p are constants, unless the prior depends on what the model learns. One made of the encoder does: were its draws
    constants, q would go after a prior that goes along with it, and both without end.
    """

    def value(draw: Draw) -> Tensor:
        z, h = draw.first, _features(draw, critic)
        return learned_dual(critic(z, h), critic(prior_draws(draw, moves=prior), h))

    return Term("dual", value, check=_check(critic))


def dual_critic(critic: nn.Module, prior: bool = False, by: Lesson = "dual") -> Term:
    """What nu descends: codes and features detached, and draws of p unless the prior moves too.

    The negative of the dual, or by = logistic the cross-entropy of telling q from p, whose optimum is log q / p as well:
    no draw has a slope above one, and where q is singular, its KL without end, nu grows slowly.
    """
    lesson = LESSONS[by]

    def value(draw: Draw) -> Tensor:
        z, h = draw.first.detach(), _features(draw, critic)
        return lesson(critic(z, h), critic(prior_draws(draw, moves=prior), h))

    return Term("critic", value, check=_check(critic))
