"""Terms that read a critic: the density ratio for the model, the classification loss for the critic itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elboroom.core import distributed
from elboroom.core.draw import Draw
from elboroom.core.kl import require_product
from elboroom.core.law import capabilities
from elboroom.core.model import LatentModel
from elboroom.core.objective import Term
from elboroom.core.problem import Problem
from elboroom.divergences.variational import FDivergence, bound

MOST = 1000.0  # T and f*(T) of a critic stay below this in size: still a lower bound, and nothing overflows


def permuted(z: Tensor) -> Tensor:
    """Each column rearranged on its own across the global batch: a sample of prod_j q(z_j), (B, D)."""
    rows = z.shape[0]
    everyone = distributed.gather(z)
    order = torch.rand(everyone.shape, device=z.device).argsort(0)
    return everyone.gather(0, order)[distributed.rank() * rows : (distributed.rank() + 1) * rows]


def _can_be_shuffled(model: LatentModel) -> None:
    require_product(model.families[0], "shuffling the dimensions of codes")


def density_ratio(critic: nn.Module) -> Term:
    """TC = E_q(z) [l_0(z) - l_1(z)], l the critic's logits for `from q(z)` and `from the product of its marginals`."""

    def value(draw: Draw) -> Tensor:
        logits: Tensor = critic(draw.first)
        return logits[:, 0] - logits[:, 1]

    return Term("tc_critic", value, check=_can_be_shuffled)


def critic_nll(critic: nn.Module) -> Term:
    """1/2 CE(z, 0) + 1/2 CE(permuted z', 1), z' from a second batch; both detached, so nothing reaches the encoder."""

    def value(draw: Draw) -> Tensor:
        codes = draw.first.detach()  # the Draw is shared: its z must keep the graph that other terms need
        with torch.no_grad():
            product = permuted(draw.other.first)
        logits: Tensor = critic(torch.cat([codes, product]))
        truth = torch.arange(2, device=logits.device).repeat_interleave(len(codes))
        return F.cross_entropy(logits, truth)

    return Term("critic", value, check=_can_be_shuffled, couples=True)


def fool(critic: nn.Module) -> Term:
    """-log D(z), z ~ q(z): what an encoder descends to pass its codes off as draws of the prior (non-saturating)."""
    return Term("fool", lambda draw: F.softplus(-critic(draw.first).squeeze(-1)))


def prior_critic(critic: nn.Module) -> Term:
    """-log D(z) - log (1 - D(z')), z ~ p, z' ~ q(z) detached: 2 log 2 where the two agree."""

    def value(draw: Draw) -> Tensor:
        codes = draw.first.detach()
        real = critic(prior_draws(draw)).squeeze(-1)
        return F.softplus(-real) + F.softplus(critic(codes).squeeze(-1))

    return Term("critic", value)


def prior_draws(draw: Draw, moves: bool = False) -> Tensor:
    """One draw of the prior for each row, (B, J): constants, or where the prior moves, with its gradient."""
    p = draw.p  # with its graph, whatever is drawn from it here
    shape = () if p.batch_shape else draw.first.shape[:1]
    sample: Tensor = p.rsample(shape) if moves and p.has_rsample else p.sample(shape)
    return sample


def _has_moments(model: LatentModel) -> None:
    if not capabilities(model.families[0]).has_moments:
        raise Problem(
            "adaptive contrast needs the moments of a sampler on R^d; use --posterior implicit, or --no-adaptive"
        )


def _contrast(draw: Draw, adaptive: bool) -> Any:
    """r(z|x): the moments of the current q(z|x), or nothing."""
    return draw.keep("contrast", draw.q.moments) if adaptive else None


def joint_ratio(critic: nn.Module, adaptive: bool) -> Term:
    """E_q T(x, z), which is KL(q(z|x) || p(z)) at the critic's optimum; with r: E_q [T + log r(z|x) - log p(z)]."""

    def value(draw: Draw) -> Tensor:
        z, r = draw.first, _contrast(draw, adaptive)
        if r is None:
            return critic(draw.batch.x, z, draw.seen.u)  # type: ignore[no-any-return]
        ratio: Tensor = critic(draw.batch.x, (z - r.loc) / r.stddev, draw.seen.u)
        return ratio + r.log_prob(z) - draw.p.log_prob(z)  # type: ignore[no-any-return]

    term = Term("kl_critic", value)
    return replace(term, check=_has_moments) if adaptive else term


def joint_critic(critic: nn.Module, adaptive: bool) -> Term:
    """-log s(T(x, z)) - log (1 - s(T(x, z'))), z ~ q(z|x) detached, z' ~ p(z), or ~ r(z|x)."""

    def value(draw: Draw) -> Tensor:
        x, u, z, r = draw.batch.x, draw.seen.u, draw.first.detach(), _contrast(draw, adaptive)
        if r is None:
            other = prior_draws(draw)
        else:
            z, other = (z - r.loc) / r.stddev, distributed.normal(tuple(z.shape), z, 0)
        return F.softplus(-critic(x, z, u)) + F.softplus(critic(x, other, u))

    return Term("critic", value)


def f_penalty(critic: nn.Module, f: FDivergence) -> Term:
    """E_q(z) T - E_p f*(T), a lower bound of D_f(q(z) || p(z)), T the critic's output mapped into the domain of f*."""

    def value(draw: Draw) -> Tensor:
        mine, other = critic(draw.first), critic(prior_draws(draw, moves=True)).clamp(*f.limits(MOST))
        held = mine.clamp(*f.limits(MOST))
        return bound(f, mine + (held - mine).detach(), other)  # held in value, not in the slope the encoder learns from

    return Term(f"D_{f.name}", value)


def f_critic(critic: nn.Module, f: FDivergence) -> Term:
    """-(E_q T - E_p f*(T)), codes detached: what the critic descends."""

    def value(draw: Draw) -> Tensor:
        both = (draw.first.detach(), prior_draws(draw))
        return -bound(f, *(critic(codes).clamp(*f.limits(MOST)) for codes in both))

    return Term("critic", value)
