"""A likelihood for encoders without a density: a Gaussian is put around each code after training, and named as such."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

from elboroom.core.batch import Batch
from elboroom.evaluate.likelihood.dealt import Weigh
from elboroom.evaluate.likelihood.weighted import Weighted
from elboroom.evaluate.result import Result
from elboroom.evaluate.split import Split
from elboroom.families.fitted import of_prior, proposed
from elboroom.families.gaussian import Gaussian, NoPrior

FITTED = 10_000  # training codes that a Gaussian is fitted to
NARROW, WIDE = -8, 3  # tau, as powers of two of the standard deviation of the codes
RIDGE = 1e-6  # of the mean variance of the codes, in the directions that they do not use


def posthoc(split: Split, samples: int = 100, until: float | None = None) -> Result:
    """log (1/K) sum_k p(x|z_k) p(z_k) / r(z_k|x), r proportional to p(z) N(z; E[z|x], tau^2 I), tau chosen on the tuning rows.

    The prior is the model's own, or where it has none, the Gaussian of the codes of training rows; where it is no Gaussian, r
    is N(E[z|x], tau^2 I), and a tenth of the draws is of the prior. In directions that codes do not use r is p, and nothing
    is counted. A valid bound of the likelihood of that decoder under that prior, not a number that the method was trained for.
    """
    tuning = split.tuning
    assert tuning is not None
    codes = Split.of(split.model, split.data, "train", split.given, FITTED, split.seed).codes[0]
    fitted = gaussian_of(codes.to(split.device)) if isinstance(split.model.prior, NoPrior) else None
    mixed = fitted is None and not issubclass(split.model.families[1], Gaussian)
    axes = None if fitted is None else torch.linalg.eigh(fitted.covariance_matrix)
    scale = max(codes.double().var(0).mean().sqrt().item(), 1e-6)
    most = max(scale, 1.0) if fitted is None else scale  # codes may be narrower than the prior they stand under
    widths = [scale * 2.0**k for k in range(NARROW, WIDE + 1 + math.ceil(math.log2(most / scale)))]

    def bound(split: Split, samples: int, tau: float, until: float | None = None) -> Weighted:
        def weights_of(batch: Batch) -> Weigh:
            code = split.model.q(batch).mean
            p = fitted or split.model.p(batch)
            r = _around(code, tau, p) if axes is None else _along(axes, code, tau, p.mean)
            if mixed:
                return lambda count: proposed(split.model, batch, r, count)

            def weigh(count: int) -> Tensor:
                z = r.sample((count,))  # (count, B, J)
                told = split.model.px(z.to(code), batch).log_prob(batch.x)
                weights: Tensor = told + p.log_prob(z) - r.log_prob(z)
                return weights

            return weigh

        return Weighted(split, samples, weights_of, until)

    few = min(samples, 16)
    tau = max(widths, key=lambda t: bound(tuning, few, t).each.mean().item())
    name, whose = ("", "own") if fitted is None else (", prior of codes", "gaussian of codes")
    found = bound(split, samples, tau, until)
    name += " + prior" * bool(mixed and of_prior(found.samples))
    return found.number(f"posthoc iw-{found.samples}{name}", tau=tau, prior=whose)


def gaussian_of(codes: Tensor) -> MultivariateNormal:
    """The Gaussian of these codes (n, J), in double precision: the prior of a model that has none."""
    codes = codes.double()
    spread = torch.cov(codes.T).reshape(codes.shape[1], -1)
    ridge = (RIDGE * spread.diagonal().mean()).clamp_min(1e-12)
    return MultivariateNormal(codes.mean(0), spread + ridge * torch.eye(len(spread)).to(spread))


def _around(code: Tensor, tau: float, p: Any) -> Gaussian:
    """N(code, tau^2 I), times p where that is a Gaussian of independent dimensions."""
    if not isinstance(p, Gaussian):
        return Gaussian(code, torch.full_like(code, 2 * math.log(tau)))
    share = p.variance / (p.variance + tau**2)  # of the way from the mean of p to the code
    return Gaussian(p.mean + share * (code - p.mean), torch.log(share * tau**2).expand_as(code))


def _along(axes: tuple[Tensor, Tensor], code: Tensor, tau: float, mean: Tensor) -> MultivariateNormal:
    """The same where p has these variances (J,) along these axes (J, J)."""
    variances, turn = axes
    share = variances / (variances + tau**2)
    loc = mean + (code.to(mean) - mean) @ (turn * share) @ turn.T
    return MultivariateNormal(loc, (turn * (share * tau**2)) @ turn.T)
