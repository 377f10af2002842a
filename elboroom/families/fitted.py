"""Proposals for q(z|x) that can only be sampled: Gaussians fitted to its draws, and importance weights by any proposal."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, MultivariateNormal

from elboroom.core.batch import Batch
from elboroom.core.kl import has_density
from elboroom.core.law import capabilities, law_of
from elboroom.core.model import LatentModel
from elboroom.families.gaussian import NoPrior
from elboroom.families.point import Point

WIDER = 1.2  # scale of a proposal, in scales of q(z|x)
Fit = Callable[[Any], Distribution]


def is_sampled(model: LatentModel) -> bool:
    """Whether q(z|x) is a law that can be sampled and has no density, and is held against a prior."""
    q = model.families[0]
    is_point = isinstance(q, type) and issubclass(q, Point)
    return not has_density(q) and not is_point and not isinstance(model.prior, NoPrior)


def around(q: Any, fit: Fit) -> Any:
    """The proposal for q(z|x): on the ball it is wrapped, fitted to the tangent vectors."""
    return law_of(type(q)).around(q, fit)


def some_draws(q: Any, each: int = 32) -> Tensor:
    """Draws of q(z|x), `each` for a dimension, so many that a covariance can be read off them, (S, B, J)."""
    drawn: Tensor = q.sample((each * max(8, q.event_shape[-1]),)).double()
    return drawn


def gaussian(q: Any, each: int = 32) -> MultivariateNormal:
    """N(m, (1.2)^2 S) of the mean and covariance of draws of q(z|x), for every x."""
    z = some_draws(q, each)
    mean = z.mean(0)
    left = z - mean
    cov = torch.einsum("sbi,sbj->bij", left, left) / (len(z) - 1)
    floor = 1e-6 * cov.diagonal(dim1=-2, dim2=-1).mean(-1) + 1e-12  # draws that all but agree have a density too
    root = torch.linalg.cholesky(cov + floor[:, None, None] * torch.eye(cov.shape[-1]).to(cov))
    return MultivariateNormal(mean, scale_tril=WIDER * root, validate_args=False)


def proposed(model: LatentModel, batch: Batch, r: Any, samples: int) -> Tensor:
    """log p(x, z) / m(z|x), (K, B): draws of r, and `of_prior` of them of p(z); m is the mixture of both in these parts.

    A q(z|x) much narrower than p(z|x) would leave a bound by r alone far below log p(x), whatever K; since m(z|x) is no less
    than the part of p(z), no weight is lost by more than that part.
    """
    p, nets, own = model.p(batch), next(model.parameters()).dtype, of_prior(samples)
    on_ball, log_weights = capabilities(r).space == "ball", []
    for law, count in ((r, samples - own), (p, own)):
        if not count:
            continue
        z = law.sample((count,) if law.batch_shape else (count, len(batch.x)))
        wide, seen = (z, z) if on_ball else (z.double(), z.to(nets))  # the ball has a precision of its own
        log_x, log_p = model.px(seen, batch).log_prob(batch.x).double(), p.log_prob(seen).double()
        log_m = r.log_prob(wide).double() + math.log(1 - own / samples)
        if own:
            log_m = torch.logaddexp(log_m, log_p + math.log(own / samples))
        log_weights.append(log_x + log_p - log_m)
    return torch.cat(log_weights)


def of_prior(samples: int) -> int:
    """How many of so many draws of a proposal are of p(z): a tenth, of two or more at least one."""
    return 0 if samples < 2 else max(1, round(0.1 * samples))
