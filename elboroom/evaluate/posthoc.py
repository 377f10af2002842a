"""A likelihood for encoders without a density: a Gaussian is put around each code after training, and named as such."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

from elboroom.core.draw import Batch
from elboroom.evaluate.number import Number
from elboroom.evaluate.split import Split
from elboroom.evaluate.weighted import Weigh, Weighted
from elboroom.families.gaussian import Gaussian, NoPrior

FITTED = 10_000  # training codes that a Gaussian is fitted to
WIDTHS = [2.0**-k for k in range(9)]  # tau, in standard deviations of the codes


def posthoc(split: Split, samples: int = 100) -> Number:
    """log (1/K) sum_k p(x|z_k) p(z_k) / r(z_k|x), r = N(E[z|x], tau^2 I), tau chosen on the tuning rows.

    The prior is the model's own, or the Gaussian of the codes of training rows where it has none. A valid bound of the
    likelihood of that decoder under that prior, not a number that the method was trained for.
    """
    tuning = split.tuning
    assert tuning is not None
    train = Split.of(split.model, split.data, "train", split.given, FITTED, split.seed)
    codes = train.codes[0].double()
    own = not isinstance(split.model.prior, NoPrior)
    fitted = MultivariateNormal(codes.mean(0), torch.cov(codes.T) + 1e-4 * torch.eye(codes.shape[1]))
    scale = codes.std(0).mean().item()
    prior = None if own else fitted

    def bound(split: Split, samples: int, tau: float) -> Weighted:
        def weights_of(batch: Batch) -> Weigh:
            loc = split.model.posterior(batch).mean
            r = Gaussian(loc, torch.full_like(loc, 2 * math.log(tau)))
            return lambda count: _weights(split, batch, r, count, prior)

        return Weighted(split, samples, weights_of)

    few = min(samples, 16)
    tau = max((w * scale for w in WIDTHS), key=lambda t: bound(tuning, few, t).each.mean().item())
    whose = "own" if own else "gaussian of codes"
    return bound(split, samples, tau).number(f"posthoc iw-{samples}", tau=tau, prior=whose)


def _weights(split: Split, batch: Batch, r: Gaussian, samples: int, prior: Any) -> Tensor:
    z = r.rsample((samples,))
    p = split.model.prior(batch) if prior is None else prior
    log_p = p.log_prob(z) if prior is None else p.log_prob(z.double().cpu()).to(z)
    weights: Tensor = split.model.likelihood(z, batch).log_prob(batch.x) + log_p - r.log_prob(z)
    return weights
