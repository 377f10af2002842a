"""The split of the rate: E KL(q(z|x) || p(z)) = I(x; z) + TC + sum_j KL(q(z_j) || p(z_j)), on the aggregate posterior.

q(z) = 1/N sum_n q(z|x_n) is summed over the whole code table (`full`), or for most samples over a part of it (`subset`).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elboroom.core.problem import Problem
from elboroom.evaluate.disentanglement.factors import Floats
from elboroom.evaluate.disentanglement.interval import NORMAL, Again, span
from elboroom.evaluate.disentanglement.registry import metric
from elboroom.evaluate.disentanglement.source import Rows, Source
from elboroom.evaluate.result import Result
from elboroom.families.gaussian import StandardNormal

Mode = Literal["full", "subset"]
LOG_2PI = math.log(2 * math.pi)
CHUNK = 512  # components at a time: the (S, CHUNK) block stays in the cache
REACH = 10.0  # standard deviations beyond which a component adds less than 1e-21 of its peak


@dataclass(frozen=True)
class RateSplit:
    """The three parts in nats with their standard errors. Estimates of what is >= 0 may be negative: nothing is clamped."""

    mi: float
    tc: float
    dwkl: float
    errors: dict[str, float]  # of mi, tc, dwkl and rate
    rate: float  # mean of log q(z|x) - log p(z) over the samples, the sum of the three
    rate_analytic: float  # mean KL over all rows: differs from `rate` by Monte Carlo error only
    dimensions: list[float]  # KL(q(z_j) || p(z_j)), their sum is dwkl
    ceiling: float  # log N: more than that MI cannot be
    samples: int
    components: int

    def __str__(self) -> str:
        parts = (f"{name} {getattr(self, name):.3f} ± {self.errors[name]:.2g}" for name in ("mi", "tc", "dwkl", "rate"))
        return f"{', '.join(parts)} nats; MI is at most log N = {self.ceiling:.2f}"


def rates(mu: Floats, logvar: Floats) -> NDArray[np.float64]:
    """Mean KL(q(z_j|x) || N(0, 1)) of each dimension, (J,)."""
    total = np.zeros(mu.shape[1])
    for at in range(0, len(mu), 65_536):
        m, v = (np.asarray(array[at : at + 65_536], dtype=np.float64) for array in (mu, logvar))
        total += 0.5 * (m**2 + np.exp(v) - v - 1).sum(0)
    return total / len(mu)


def rate_split(
    mu: Floats,
    logvar: Floats,
    mode: Mode = "full",
    seed: int | np.random.Generator = 0,
    samples: int = 2000,
    components: int = 10_000,
    checked: int = 200,
) -> RateSplit:
    """The split for Gaussian codes (N, J) against the prior N(0, I), by `samples` draws of z.

    `subset` sums over `components` rows: 1/N for the row that z was drawn from, (N - 1) / (N (M - 1)) for the others. The log
    of such a sum is too low (Jensen), most of all that of the joint density, so that MI would come out too high and TC too low.
    Therefore the first `checked` samples are summed over all rows too, and the mean difference is added: unbiased for any
    choice of rows, at a fraction of the sums. The errors are those of the samples and of that difference.
    """
    if mu.shape != logvar.shape or mu.ndim != 2 or not len(mu):
        raise Problem(f"means and log-variances must have the same shape (N, J), not {mu.shape} and {logvar.shape}")
    if samples < 2 or components < 2:
        raise Problem(f"the split of the KL needs at least 2 samples and 2 components, not {samples} and {components}")
    if checked < 2:
        raise Problem(f"the sums over a part of the rows are checked with at least 2 samples, not {checked}")
    per_dimension = rates(mu, logvar)
    if not np.isfinite(per_dimension).all():
        bad = ", ".join(map(str, np.flatnonzero(~np.isfinite(per_dimension))))
        raise Problem(f"means or log-variances are NaN or infinite in dimensions {bad}")
    rng, n = np.random.default_rng(seed), len(mu)
    is_part = mode == "subset" and components < n and checked < samples
    rows = np.sort(rng.choice(n, components, replace=False)) if is_part else None
    own = rng.integers(n, size=samples)
    noise, own_logvar = _tensor(rng.standard_normal((samples, mu.shape[1]))), _tensor(logvar[own])
    z = _tensor(mu[own]) + (0.5 * own_logvar).exp() * noise  # (S, J)
    drawn = _Drawn(z, own, -0.5 * (noise.square() + own_logvar + LOG_2PI))
    found, missed = drawn.parts(mu, logvar, rows), {}
    if rows is not None:
        missed = {name: whole - found[name][:checked] for name, whole in drawn.first(checked).parts(mu, logvar).items()}
    means, errors = _corrected(found, missed)
    dims = means.pop("dims")
    return RateSplit(
        **{name: value.item() for name, value in means.items()},
        errors={name: errors[name].item() for name in means},
        rate_analytic=float(per_dimension.sum()),
        dimensions=dims.tolist(),
        ceiling=math.log(n),
        samples=samples,
        components=n if rows is None else len(rows),
    )


@dataclass(frozen=True)
class _Drawn:
    """Samples of q(z), each with the row that it was drawn from and log q(z_j|x) of that row."""

    z: Tensor  # (S, J)
    own: NDArray[np.int64]  # (S,)
    own_dims: Tensor  # (S, J)

    def first(self, count: int) -> _Drawn:
        """The first of them."""
        return _Drawn(self.z[:count], self.own[:count], self.own_dims[:count])

    def parts(self, mu: Floats, logvar: Floats, rows: NDArray[np.int64] | None = None) -> dict[str, Tensor]:
        """The terms of every sample, (S,), and log q(z_j) - log p(z_j), (S, J): by sums over all rows, or over some."""
        n, inside = len(mu), np.ones(len(self.own), np.bool_)
        if rows is not None:
            inside, mu, logvar = np.isin(self.own, rows), mu[rows], logvar[rows]
        own_joint, is_in = self.own_dims.sum(1), torch.from_numpy(inside)
        joint = _weighted(_log_sum_joint(self.z, mu, logvar), own_joint, is_in, n, len(mu))  # log q(z), (S,)
        sums = [_log_sum_marginal(self.z[:, j], mu[:, j], logvar[:, j]) for j in range(self.z.shape[1])]
        marginals = _weighted(torch.stack(sums, 1), self.own_dims, is_in.unsqueeze(1), n, len(mu))  # log q(z_j), (S, J)
        prior = -0.5 * (self.z.square() + LOG_2PI)
        return {
            "mi": own_joint - joint,
            "tc": joint - marginals.sum(1),
            "dwkl": (marginals - prior).sum(1),
            "rate": own_joint - prior.sum(1),
            "dims": marginals - prior,
        }


def _corrected(found: dict[str, Tensor], missed: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Means over all samples and their standard errors, with the mean of what was missed in the first of them."""
    means = {name: values.mean(0) for name, values in found.items()}
    variances = {name: values.var(0) / len(values) for name, values in found.items()}
    for name, less in missed.items():
        means[name] = means[name] + less.mean(0)
        here = found[name][: len(less)]
        shared = ((here - here.mean(0)) * (less - less.mean(0))).sum(0) / (len(less) - 1)
        total = variances[name] + less.var(0) / len(less) + 2 * shared / len(found[name])  # the two means share samples
        variances[name] = total.clamp_min(0)
    return means, {name: variance.sqrt() for name, variance in variances.items()}


def _tensor(array: NDArray[Any]) -> Tensor:
    """A copy in float64: tables may be memory-mapped, and differences of squares need the digits."""
    return torch.from_numpy(np.array(array, dtype=np.float64))


def _weighted(log_sum: Tensor, own: Tensor, inside: Tensor, n: int, m: int) -> Tensor:
    """log (1/n own + (n - 1)/(n k) others), from log_sum over m components, k of them others: m - 1 where own is inside.

    For m = n this is log_sum - log n; for n = 1 it is `own` exactly.
    """
    others = torch.where(inside, log_sum + torch.log1p(-(own - log_sum).clamp(max=0).exp()), log_sum)
    weights = [math.log((n - 1) / (n * k)) if k and n > 1 else -math.inf for k in (m - 1, m)]
    few, all_of_them = (torch.tensor(weight, dtype=own.dtype) for weight in weights)
    weight = torch.where(inside, few, all_of_them)
    return torch.logaddexp(others + weight, own - math.log(n))


def _log_sum_joint(z: Tensor, mu: Floats, logvar: Floats) -> Tensor:
    """log sum_m q(z|x_m), (S,): one matrix product of [z^2, z, 1] with the natural parameters of every x_m."""
    centre = z.mean(0)  # z^2 / sigma^2 cancels against mu^2 / sigma^2: keep both small
    z = z - centre
    basis = torch.cat([z.square(), z, torch.ones_like(z[:, :1])], 1)  # (S, 2J + 1)
    total = torch.full_like(z[:, 0], -math.inf)
    for at in range(0, len(mu), CHUNK):
        loc, v = _tensor(mu[at : at + CHUNK]) - centre, _tensor(logvar[at : at + CHUNK])
        precision = (-v).exp()
        constant = -0.5 * (loc.square() * precision + v + LOG_2PI).sum(1, keepdim=True)
        pairs = basis @ torch.cat([-0.5 * precision, loc * precision, constant], 1).T  # (S, CHUNK)
        top = pairs.amax(1)
        total = torch.logaddexp(total, top + pairs.sub_(top.unsqueeze(1)).exp_().sum(1).log())
    return total


def _log_sum_marginal(z: Tensor, mu: Floats, logvar: Floats) -> Tensor:
    """log sum_m q(z_j|x_m) for one dimension, (S,).

    Components go in blocks of like width and place, so that a block touches only the samples within its reach. A sample that
    no component reaches, its own being left out, has -inf.
    """
    place, precision = _tensor(mu), _tensor(logvar).mul_(-0.5).exp_()
    order = torch.from_numpy(np.lexsort((mu, precision.log2().floor().numpy())))
    place, precision = place[order], precision[order]
    z, back = torch.sort(z)
    total = torch.zeros_like(z)
    for at in range(0, len(place), CHUNK):
        loc, a = place[at : at + CHUNK], precision[at : at + CHUNK]
        ends = torch.stack([(loc - REACH / a).min(), (loc + REACH / a).max()])
        first, last = torch.searchsorted(z, ends).tolist()
        scale = a * math.sqrt(0.5)
        root = torch.addmm((-loc * scale).unsqueeze(0), z[first:last, None], scale.unsqueeze(0))
        total[first:last].addmv_(root.square_().neg_().exp_(), a)
    return torch.empty_like(total).scatter_(0, back, total.log() - 0.5 * LOG_2PI)


@dataclass(frozen=True)
class _MonteCarlo:
    """The interval of a mean over samples, by its standard error."""

    def __call__(self, score: Result, rows: Rows, seed: int, again: Again) -> dict[str, Any]:
        value, error = float(score.value or 0), float(score.parts["standard_error"])
        return span("Monte Carlo", value - NORMAL * error, value + NORMAL * error, int(score.settings["samples"]))


@lru_cache(maxsize=1)  # the three parts are read off one computation
def _split(source: Source, seed: int, mode: Mode, samples: int, components: int, checked: int) -> RateSplit:
    if source.logvar is None:
        raise Problem("the split of the KL needs the log-variances of q(z|x); none are given")
    return rate_split(source.mu, source.logvar, mode, seed, samples, components, checked)


def _part(part: str, source: Source, seed: int, mode: Mode, samples: int, components: int, checked: int) -> Result:
    found = _split(source, seed, mode, samples, components, checked)
    parts = asdict(found) | {"standard_error": found.errors[part]}
    if part != "mi":
        del parts["ceiling"]  # which is of the information alone
    settings = {"n": len(source), "samples": samples, "components": found.components, "prior": "N(0, I)"}
    settings |= {"checked": checked} if found.components < len(source) else {}
    return Result(getattr(found, part), mode, settings=settings, parts=parts)


@metric(
    "index-code-mi",
    title="Index-code mutual information",
    better="neither",
    modes=("full", "subset"),
    needs="codes",
    interval=_MonteCarlo(),
    draws=1,
)
def measure_index_code_mi(
    source: Source, seed: int, mode: Mode, samples: int = 2000, components: int = 10_000, checked: int = 200
) -> Result:
    """I(x; z) of the aggregate posterior, in nats; at most log N."""
    return _part("mi", source, seed, mode, samples, components, checked)


@metric(
    "total-correlation",
    title="Total correlation",
    better="low",
    modes=("full", "subset"),
    needs="codes",
    interval=_MonteCarlo(),
    draws=1,
)
def measure_total_correlation(
    source: Source, seed: int, mode: Mode, samples: int = 2000, components: int = 10_000, checked: int = 200
) -> Result:
    """KL(q(z) || prod_j q(z_j)) of the aggregate posterior, in nats."""
    return _part("tc", source, seed, mode, samples, components, checked)


@metric(
    "dimension-wise-kl",
    title="Dimension-wise KL",
    better="neither",
    against=StandardNormal,
    modes=("full", "subset"),
    needs="codes",
    interval=_MonteCarlo(),
    draws=1,
)
def measure_dimension_wise_kl(
    source: Source, seed: int, mode: Mode, samples: int = 2000, components: int = 10_000, checked: int = 200
) -> Result:
    """sum_j KL(q(z_j) || p(z_j)) of the aggregate posterior, in nats, p being N(0, I)."""
    return _part("dwkl", source, seed, mode, samples, components, checked)


def active_units(
    mu: Floats,
    logvar: Floats | None = None,
    rule: Literal["au-var", "au-kl", "au-std"] = "au-var",
    threshold: float | None = None,
) -> NDArray[np.bool_]:
    """Which dimensions are active, (J,): Var(mu_j) > 0.01, mean KL_j > 0.01, or std(mu_j) >= 0.05."""
    if rule == "au-kl":
        if logvar is None:
            raise Problem("au-kl needs the log-variances of q(z|x); use au-var or au-std")
        return rates(mu, logvar) > (0.01 if threshold is None else threshold)
    variance = np.var(mu, axis=0, ddof=1, dtype=np.float64) if len(mu) > 1 else np.zeros(mu.shape[1])
    if rule == "au-var":
        return np.asarray(variance > (0.01 if threshold is None else threshold))
    if rule == "au-std":
        return np.asarray(np.sqrt(variance) >= (0.05 if threshold is None else threshold))
    raise Problem(f"active units are counted by au-var, au-kl or au-std, not '{rule}'")


@metric(
    "active-units", title="Active units", better="neither", modes=("au-var", "au-kl", "au-std"), needs="codes", draws=1
)
def measure_active_units(source: Source, seed: int, mode: Literal["au-var", "au-kl", "au-std"]) -> Result:
    """How many dimensions are active: by the variance of their means, by their rate, or by the deviation of their means."""
    mask = active_units(source.mu, source.logvar, mode)
    return Result(float(mask.sum()), mode, settings={"n": len(source), "of": len(mask)}, parts={"mask": mask})
