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
from elboroom.families.gaussian import Gaussian, NoPrior

FITTED = 10_000  # training codes that a Gaussian is fitted to
CHUNK = 1024  # decoded examples at a time
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
    few = min(samples, 16)
    tau = max(
        (w * scale for w in WIDTHS), key=lambda t: _bound(tuning, few, t, None if own else fitted)[0].mean().item()
    )
    value, sizes = _bound(split, samples, tau, None if own else fitted)
    settings = split.settings | {"K": samples, "tau": tau, "prior": "own" if own else "gaussian of codes"}
    spread = value.std().item() / math.sqrt(len(value)) if len(value) > 1 else 0.0
    parts = {"effective_samples": sizes.mean().item()}
    return Number(value.mean().item(), "nats", f"posthoc iw-{samples}", settings, {"sampling": spread}, parts)


@torch.no_grad()
def _bound(split: Split, samples: int, tau: float, prior: Any) -> tuple[Tensor, Tensor]:
    """The bound and the effective number of samples of each row."""
    value, sizes = [], []
    size = max(1, min(64, CHUNK // samples))
    chunk = max(1, min(samples, CHUNK // size))
    for batch in split.batches(size):
        loc = split.model.posterior(batch).mean
        r = Gaussian(loc, torch.full_like(loc, 2 * math.log(tau)))
        done = [_weights(split, batch, r, min(chunk, samples - at), prior) for at in range(0, samples, chunk)]
        log_w = torch.cat(done).double().cpu()  # (K, B)
        value.append(torch.logsumexp(log_w, 0) - math.log(samples))
        sizes.append(1 / torch.softmax(log_w, 0).square().sum(0))
    return torch.cat(value), torch.cat(sizes)


def _weights(split: Split, batch: Batch, r: Gaussian, samples: int, prior: Any) -> Tensor:
    z = r.rsample((samples,))
    p = split.model.prior(batch) if prior is None else prior
    log_p = p.log_prob(z) if prior is None else p.log_prob(z.double().cpu()).to(z)
    weights: Tensor = split.model.likelihood(z, batch).log_prob(batch.x) + log_p - r.log_prob(z)
    return weights
