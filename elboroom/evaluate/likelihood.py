"""What every model is measured by: the ELBO and its parts, IW-K, rate per dimension, active units, mutual information.

All in nats per example at weight one, whatever weights trained the model.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from elboroom.core.draw import Draw
from elboroom.evaluate.number import Number
from elboroom.evaluate.split import Split
from elboroom.terms.evidence import log_weights

CHUNK = 1024  # decoded images at a time


def _refused(name: str, unit: str = "nats") -> Number:
    return Number(None, unit, name, reason="q(z|x) has no density")


def _mean(values: Tensor) -> tuple[float, float]:
    """Mean and standard error over examples."""
    error = values.std().item() / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return values.mean().item(), error


@torch.inference_mode()
def evidence(split: Split, samples: int = 1) -> dict[str, Number]:
    """ELBO, distortion and rate with their standard errors over the examples, and the rate of each dimension."""
    nll, rate, per_dim, error, levels = [], [], [], [], None
    for batch in split.batches(max(1, min(256, CHUNK // samples))):
        draw = Draw(split.model, batch, samples)
        nll.append(draw.nll.mean(0).double().cpu())
        levels = getattr(draw.px, "levels", None)
        error.append((draw.px.mean - batch.x).square().mean(0).flatten(1).sum(1).double().cpu())
        if split.has_density:
            kl = draw.rate.double().cpu()
            rate.append(kl.flatten(1).sum(1) if kl.dim() > 1 else kl)
            per_dim += [kl] if kl.dim() == 2 else []
    settings = split.settings | {"samples": samples}
    distortion, spread = _mean(torch.cat(nll))
    squared, squared_spread = _mean(torch.cat(error))
    found = {
        "distortion": Number(distortion, "nats", "E_q -log p(x|z)", settings, {"sampling": spread}),
        "squared_error": Number(squared, "per image", "E_q |x - E[x|z]|^2", settings, {"sampling": squared_spread}),
    }
    if not split.has_density:
        return found | {"elbo": _refused("elbo"), "rate": _refused("rate")}
    elbo = -(torch.cat(nll) + torch.cat(rate))
    for name, values, how in (("rate", torch.cat(rate), "KL(q(z|x) || p(z))"), ("elbo", elbo, "elbo")):
        value, spread = _mean(values)
        found[name] = Number(value, "nats", how, settings, {"sampling": spread})
    if per_dim:
        dims = torch.cat(per_dim).mean(0).tolist()
        found["rate_per_dim"] = Number(sum(dims), "nats", "KL per dimension", settings, parts={"dims": dims})
    if levels == split.data.about.levels:
        bits = -found["elbo"].value / math.log(2) / math.prod(split.data.about.shape)  # type: ignore[operator]
        found["bits_per_dim"] = Number(bits, "bits per pixel and channel", "elbo", settings)
    return found


@torch.inference_mode()
def log_likelihood(split: Split, samples: int = 100) -> Number:
    """log (1/K) sum_k w_k, averaged over the split: a lower bound of log p(x) in expectation that tightens with K.

    Two errors: `importance_noise` is what another K draws would change (delta method), `sampling` what another test set would.
    """
    name = f"iw-{samples}"
    if not split.has_density:
        return _refused(name)
    value, noise, sizes, elbo = [], [], [], []
    size = max(1, min(64, CHUNK // samples))
    chunk = max(1, min(samples, CHUNK // size))
    for batch in split.batches(size):
        done = [log_weights(Draw(split.model, batch, min(chunk, samples - at))) for at in range(0, samples, chunk)]
        log_w = torch.cat(done).double().cpu()  # (K, B)
        value.append(torch.logsumexp(log_w, 0) - math.log(samples))
        elbo.append(log_w.mean(0))
        w = torch.softmax(log_w, 0)
        sizes.append(1 / w.square().sum(0))
        noise.append((samples * w.var(0)) if samples > 1 else torch.full((log_w.shape[1],), torch.nan))
    bound, spread = _mean(torch.cat(value))
    errors = {"sampling": spread}
    if samples > 1:
        errors["importance_noise"] = torch.cat(noise).sum().sqrt().item() / len(split.rows)
    parts = {"effective_samples": torch.cat(sizes).mean().item(), "elbo_of_these_rows": torch.cat(elbo).mean().item()}
    return Number(bound, "nats", name, split.settings | {"K": samples}, errors, parts)


@torch.inference_mode()
def mutual_information(split: Split) -> Number:
    """I(x; z) = E log q(z|x) - log q(z), q(z) the mixture over all rows of the split: it cannot exceed log M."""
    loc, logvar = split.codes
    if logvar is None:
        return Number(None, "nats", "split", reason="q(z|x) is no diagonal Gaussian")
    loc, logvar = loc.double(), logvar.double()
    torch.manual_seed(split.seed)
    z = loc + (0.5 * logvar).exp() * torch.randn_like(loc)
    precision = (-logvar).exp()
    # log q(z_i | x_m), as one matrix product of (z^2, z, 1) with the natural parameters of every x_m
    natural = torch.cat([-0.5 * precision, loc * precision], 1)
    constant = -0.5 * (loc.square() * precision + logvar + math.log(2 * math.pi)).sum(1)
    own, total, m = [], [], len(loc)
    for start in range(0, m, 1000):
        part = z[start : start + 1000]
        pairs = torch.cat([part.square(), part], 1) @ natural.T + constant
        own.append(pairs[torch.arange(len(part)), start + torch.arange(len(part))])
        total.append(torch.logsumexp(pairs, 1) - math.log(m))
    value, spread = _mean(torch.cat(own) - torch.cat(total))
    return Number(value, "nats", "split", split.settings | {"M": m}, {"sampling": spread}, {"ceiling": math.log(m)})


def active_units(split: Split, threshold: float = 0.01) -> Number:
    """How many dimensions have Var_x(E[z_j|x]) > threshold."""
    variance = split.codes[0].double().var(0)
    settings = split.settings | {"threshold": threshold}
    count = int((variance > threshold).sum())
    return Number(count, f"of {len(variance)}", "au-var", settings, parts={"variances": variance.tolist()})


def evaluate(split: Split, samples: int = 100, iw_most: int = 1000) -> dict[str, Number]:
    """All of the above. IW-K, which decodes K times, looks at no more than `iw_most` rows."""
    found = evidence(split)
    found["log_likelihood"] = log_likelihood(split.few(iw_most), samples)
    found["mutual_information"] = mutual_information(split.few(10_000))
    found["active_units"] = active_units(split)
    return found
