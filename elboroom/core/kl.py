"""KL(q || p) of two families of distributions: what is known of it. Terms and evaluators ask here, never by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from elboroom.core.law import capabilities
from elboroom.core.problem import Problem

Family = Any  # a type of Distribution, or a value that states its capabilities: families side by side

_CLOSED: dict[tuple[type[Distribution], type[Distribution]], Callable[[Any, Any], Tensor]] = {}
_PER_DIM: set[tuple[type[Distribution], type[Distribution]]] = set()


def closed_kl(
    q: type[Distribution], p: type[Distribution], per_dim: bool = False
) -> Callable[[Callable[[Any, Any], Tensor]], Any]:
    """Registers f(q, p), in nats, as the closed KL of this pair of families: (B,), or (B, D) where it is per dimension."""

    def register(f: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
        _CLOSED[q, p] = f
        if per_dim:
            _PER_DIM.add((q, p))
        return f

    return register


def is_per_dim(q: Family, p: Family) -> bool:
    """Whether KL(q || p) of this pair comes as a sum over dimensions."""
    return (q, p) in _PER_DIM


def has_density(family: Family) -> bool:
    """Whether log q(z) can be computed, of a family or of a law."""
    return capabilities(family).has_density


def called(family: Family) -> str:
    """A family in words: WrappedImplicit is `wrapped implicit`."""
    name = family.__name__ if isinstance(family, type) else str(family)
    return re.sub("(?<=[a-z])(?=[A-Z])", " ", name).lower()


def require_kl(q: Family, p: Family) -> None:
    """Refuses, in a sentence, a pair that has no KL."""
    if (q, p) not in _CLOSED and not (has_density(q) and has_density(p)):
        lacking = f"q(z|x), which is {called(q)}," if not has_density(q) else f"p(z), which is {called(p)},"
        raise Problem(
            f"KL(q || p) needs the density of both, and {lacking} has none; use --posterior gaussian, on the ball wrapped, or "
            "a method that has no kl or reads it off a critic"
        )


def is_fixed(model: Any) -> bool:
    """Whether KL(q || p) is one number whatever is learned: q of one shape, turned about, against a p that is even."""
    return bool(getattr(model.posterior, "of_one_shape", False) and getattr(model.prior, "even", False))


def require_moving(model: Any, what: str) -> None:
    """Refuses, in a sentence, what acts on a rate that is one number whatever is learned."""
    if is_fixed(model):
        raise Problem(
            f"--kappa fixes the KL of this q(z|x), so {what} has no effect; use --kappa-learned, or a method without it"
        )


def has_many_priors(model: Any) -> bool:
    """Whether p(z|u) is another for other labels."""
    return bool(getattr(model.prior, "of_labels", False))


def require_one_prior(model: Any, what: str) -> None:
    """Refuses, in a sentence, a prior that is another for every label, where q(z) of all labels is held against it."""
    if has_many_priors(model):
        raise Problem(f"{what} needs a single prior, but --given makes one for every label; remove --given")


def require_density(q: Family, what: str) -> None:
    """Refuses, in a sentence, a posterior without a density."""
    if not has_density(q):
        raise Problem(
            f"{what} needs the density of q(z|x), and this one ({called(q)}) has none; use --posterior gaussian"
        )


def require_product(q: Family, what: str) -> None:
    """Refuses, in a sentence, codes of a space where a coordinate is not free of the others: a surface, a ball."""
    if capabilities(q).space != "euclidean":
        raise Problem(f"{what} leaves the space of these codes ({called(q)}); use --posterior gaussian")


def require_variance(q: Family, what: str) -> None:
    """Refuses, in a sentence, a posterior whose variances are not known."""
    if not capabilities(q).diagonal:
        raise Problem(
            f"{what} needs the variances of q(z|x), and this one ({called(q)}) has none; use --posterior gaussian"
        )


def variances(p: Distribution, like: Tensor) -> Tensor:
    """The variance of each dimension of p; ones, shaped like codes, where it is not known."""
    try:
        known: Tensor = p.variance
    except NotImplementedError:
        return torch.ones_like(like)
    return known


def per_example(rate: Tensor) -> Tensor:
    """A rate summed over dimensions, where it comes as one for each, (B,)."""
    return rate.flatten(1).sum(1) if rate.dim() > 1 else rate


def kl_divergence(q: Distribution, p: Distribution, z: Callable[[], Tensor]) -> Tensor:
    """KL(q || p) in nats: closed, (B, D) or (B,), where the pair has a formula; else sampled over z, (B,)."""
    closed = _CLOSED.get((type(q), type(p)))
    if closed is not None:
        return closed(q, p)
    if not (has_density(q) and has_density(p)):
        require_kl(type(q), type(p))
    sample = z()  # (K, B, D)
    return (q.log_prob(sample) - p.log_prob(sample)).mean(0)
