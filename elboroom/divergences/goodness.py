"""Goodness of fit: a sample against models with a density, by held-out log-density and by MMD against their draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.distributions import Categorical, Independent, MixtureSameFamily, MultivariateNormal, Normal

from elboroom.core.problem import Problem, unknown
from elboroom.divergences.mmd import Kernel, two_sample
from elboroom.divergences.samples import rows, thinned


class Density(Protocol):
    """What a model must have; every torch Distribution has it."""

    def log_prob(self, value: Any) -> Any: ...

    def sample(self, sample_shape: torch.Size) -> Any: ...


Maker = Callable[[Tensor], Density]  # fits a model to rows (n, d)


@dataclass(frozen=True)
class Fit:
    """One model: mean log-density of held-out rows in nats, and the MMD test of those rows against its draws."""

    log_density: float
    error: float
    behind: float  # of the best model, a paired mean over the same rows
    behind_error: float
    mmd2_u: float
    p: float


@dataclass(frozen=True)
class Goodness:
    """How well each model fits a sample, with the best one and a verdict."""

    fits: dict[str, Fit]
    best: str
    verdict: str
    settings: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The same as a plain dict."""
        return asdict(self)


def goodness(
    sample: ArrayLike | Tensor, models: Mapping[str, Density | Maker], *, kernel: str = "rbf", permutations: int = 1000,
    most: int = 2000, level: float = 0.05, seed: int = 0,
) -> Goodness:  # fmt: skip
    """Which model fits a sample best, and which can be told from it.

    A model is a distribution, or a function that fits one to rows, e.g. `gaussians(2)`: if there is any such, all are
    fitted on one half of the rows and held against the other.
    """
    if not models:
        raise Problem("at least one model is needed")
    x = rows(sample, "the sample")
    noise = torch.Generator().manual_seed(seed)
    makers = any(callable(model) for model in models.values())
    order = torch.randperm(len(x), generator=noise)
    seen, held = (x[order[: len(x) // 2]], x[order[len(x) // 2 :]]) if makers else (x[:0], x)
    made = {name: model(seen) if callable(model) else model for name, model in models.items()}
    scores = {name: _log_density(model, held, name) for name, model in made.items()}  # each (n,)
    best = max(scores, key=lambda name: float(scores[name].mean()))
    few = thinned(held, most, noise)
    fits = {}
    for place, (name, model) in enumerate(made.items()):
        drawn = _draw(model, few, name, seed + place)
        test, found = two_sample(few, drawn, Kernel.of(kernel, few, drawn), permutations, seed)
        mean, error = _mean(scores[name])
        behind, behind_error = _mean(scores[best] - scores[name])
        fits[name] = Fit(mean, error, behind, behind_error, found["mmd2_u"], test.p)
    settings = {"fitted_on": len(seen), "held_out": len(held), "tested_rows": len(few), "kernel": kernel,
                "permutations": permutations, "level": level, "seed": seed}  # fmt: skip
    return Goodness(fits, best, _verdict(fits, best, level), settings)


def gaussians(components: int = 1, seed: int = 0) -> Maker:
    """Fits a mixture of Gaussians with full covariances, by EM."""

    def fit(x: Tensor) -> Density:
        from sklearn.mixture import (
            GaussianMixture,
        )  # training imports kernels of this package: it need not wait for this

        if len(x) < 2 * components:
            raise Problem(f"fitting {components} Gaussians needs at least {2 * components} rows, not {len(x)}")
        found = GaussianMixture(components, random_state=seed, n_init=3).fit(x.numpy())
        weights, means, covariances = map(torch.from_numpy, (found.weights_, found.means_, found.covariances_))
        return MixtureSameFamily(Categorical(weights), MultivariateNormal(means, covariances))

    return fit


def standard_normal(x: Tensor) -> Density:
    """N(0, I), to which nothing is fitted."""
    zero = torch.zeros(x.shape[1], dtype=x.dtype)
    return Independent(Normal(zero, torch.ones_like(zero)), 1)


def model(name: str) -> Maker:
    """A model by its name: normal is N(0, I), gaussian one that is fitted, gaussians-K a mixture of K."""
    stem, _, count = name.partition("-")
    if stem == "gaussians" and count.isdigit() and int(count):
        return gaussians(int(count))
    known = {"normal": standard_normal, "gaussian": gaussians(1)}
    if name not in known:
        raise unknown("model", name, [*known, "gaussians-2", "gaussians-3"])
    return known[name]


def _log_density(model: Density, x: Tensor, name: str) -> Tensor:
    """log p of each row, (n,)."""
    try:
        values: Tensor = model.log_prob(x)
    except (ValueError, RuntimeError) as error:
        raise Problem(f"model '{name}' has no density for rows of {x.shape[1]} columns: {_first(error)}") from error
    if values.numel() != len(x):
        raise Problem(
            f"model '{name}' gives log-densities of shape {tuple(values.shape)}, not one per row; "
            "wrap it in torch.distributions.Independent"
        )
    values = values.detach().reshape(len(x)).double()
    if not bool(torch.isfinite(values).all()):
        raise Problem(
            f"model '{name}' gives {int((~torch.isfinite(values)).sum())} rows a log-density that is NaN or infinite"
        )
    return values


def _draw(model: Density, like: Tensor, name: str, seed: int) -> Tensor:
    """As many draws of the model as there are rows, (n, d); torch's own noise is left where it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        drawn: Tensor = model.sample(torch.Size([len(like)]))
    if drawn.numel() != like.numel():
        raise Problem(f"model '{name}' draws samples of shape {tuple(drawn.shape)}; they must be {tuple(like.shape)}")
    return drawn.detach().reshape(like.shape).to(like)


def _mean(values: Tensor) -> tuple[float, float]:
    """The mean and its standard error."""
    return float(values.mean()), float(values.std()) / math.sqrt(len(values))


def _verdict(fits: Mapping[str, Fit], best: str, level: float) -> str:
    fit = fits[best]
    if len(fits) == 1:
        said = f"The mean log-density under {best} is {fit.log_density:.4g} ± {fit.error:.2g} nats"
    else:
        second = min((name for name in fits if name != best), key=lambda name: fits[name].behind)
        gap = fits[second]
        how = "better than" if gap.behind > 2 * gap.behind_error else "about as well as"
        said = f"{best} fits {how} {second}, by {gap.behind:.3g} ± {gap.behind_error:.2g} nats per row"
    told = "can still be told" if fit.p <= level else "cannot be told"
    return f"{said}, and its draws {told} from the sample (p = {fit.p:.3g})."


def _first(error: Exception) -> str:
    """The first line of what went wrong."""
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
