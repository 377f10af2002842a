"""Terms of the evidence: distortion, rate and the importance-weighted bound."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from elboroom.core.draw import Draw
from elboroom.core.kl import require_density, require_kl
from elboroom.core.law import law_of
from elboroom.core.model import LatentModel
from elboroom.core.objective import Term


def nll() -> Term:
    """Distortion: -E_q log p(x|z)."""
    return Term("nll", lambda draw: draw.nll.mean(0))


def nll_of_mean() -> Term:
    """-log p(x|z) at z = E[z|x] of a diagonal Gaussian, as if it were a point; of any other posterior at a draw."""

    def value(draw: Draw) -> Tensor:
        if not law_of(draw.model.families[0]).diagonal:
            return draw.nll.mean(0)
        log_prob: Tensor = draw.model.px(draw.q.mean.unsqueeze(0), draw.batch).log_prob(draw.batch.x)
        return -log_prob[0]

    return Term("nll", value)


def kl() -> Term:
    """Rate: KL(q(z|x) || p(z)), per dimension where the pair allows it."""
    return Term("kl", lambda draw: draw.rate, check=lambda model: require_kl(*model.families), is_rate=True)


def log_weights(draw: Draw) -> Tensor:
    """log w_k = log p(x|z_k) + log p(z_k) - log q(z_k|x), (K, B)."""
    weights: Tensor = draw.p.log_prob(draw.z) - draw.q.log_prob(draw.z) - draw.nll
    return weights


def iw_bound(samples: int) -> Term:
    """-log (1/K) sum_k w_k, an upper bound of -log p(x) in expectation that falls with K."""

    def check(model: LatentModel) -> None:
        for family in model.families:
            require_density(family, "the importance-weighted bound")

    def value(draw: Draw) -> Tensor:
        return math.log(samples) - torch.logsumexp(log_weights(draw)[:samples], 0)

    return Term("iw_bound", value, samples=samples, check=check)
