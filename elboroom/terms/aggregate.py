"""Terms of the aggregate posterior q(z) = 1/N sum_n q(z|x_n): index-code MI, total correlation, dimension-wise KL.

All three read one matrix, log q(z_i | x_m) of shape (B, M, D), so that they add up to log q(z|x) - log p(z) exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from elboroom.core import distributed
from elboroom.core.draw import Draw
from elboroom.core.law import capabilities
from elboroom.core.model import LatentModel
from elboroom.core.objective import Term
from elboroom.core.problem import Problem

Estimator = Literal["mss-sym", "mss", "mws"]


def log_importance(rows: int, batch: int, n: int, estimator: Estimator, first: int = 0) -> Tensor:
    """log W for `rows` samples, the first of which is row `first` of a batch of distinct examples out of n, (rows, batch).

    mss: rows sum to one, 1/n on the sample's own place; one other entry is (n - M) / (n M), the rest 1/M, M = batch - 1.
    mss-sym: all other entries (n - 1) / (n M): the same expectation, less variance. mws: 1 / (n batch) everywhere.
    """
    if estimator == "mws":
        return torch.full((rows, batch), -math.log(n * batch))
    if batch < 2 or batch > n:
        raise Problem(f"stratified sampling needs a batch of 2 to {n} examples, not {batch}; use another --batch-size")
    others = batch - 1
    own = torch.arange(first, first + rows)
    if estimator == "mss-sym":
        weight = torch.full((rows, batch), (n - 1) / (n * others), dtype=torch.float64)
    else:
        weight = torch.full((rows, batch), 1 / others, dtype=torch.float64)
        weight[torch.arange(rows), (own + 1) % batch] = (n - others) / (n * others)
    weight[torch.arange(rows), own] = 1 / n
    return weight.log().float()


def _log_aggregate(draw: Draw, n: int, estimator: Estimator) -> tuple[Tensor, Tensor]:
    """log q(z), (B,), and log q(z_j), (B, D), by the batch."""

    def make() -> tuple[Tensor, Tensor]:
        pairs = draw.log_q_pairs  # (B, M, D)
        rows, batch = pairs.shape[:2]
        weight = log_importance(rows, batch, n, estimator, distributed.rank() * rows).to(pairs)
        return torch.logsumexp(pairs.sum(-1) + weight, 1), torch.logsumexp(pairs + weight.unsqueeze(-1), 1)

    both: tuple[Tensor, Tensor] = draw.keep(("aggregate", n, estimator), make)
    return both


def _log_q(draw: Draw) -> Tensor:
    """log q(z_i|x_i), the diagonal of the shared matrix, (B,)."""
    own = torch.arange(draw.log_q_pairs.shape[0], device=draw.log_q_pairs.device)
    return draw.log_q_pairs[own, own + distributed.rank() * len(own)].sum(-1)


def _check(model: LatentModel) -> None:
    if not capabilities(model.families[0]).diagonal:
        raise Problem(
            "the parts of the aggregate posterior need a factorised posterior with a density; use --posterior gaussian"
        )


def _term(
    name: str, estimator: Estimator, f: Callable[[Draw], Tensor], check: Callable[[LatentModel], None] = _check
) -> Term:
    return Term(f"{name}_{estimator.replace('-', '_')}", f, check=check, couples=True)


def index_code_mi(n: int, estimator: Estimator = "mss-sym") -> Term:
    """I(x; z) = E log q(z|x) - log q(z)."""
    return _term("mi", estimator, lambda draw: _log_q(draw) - _log_aggregate(draw, n, estimator)[0])


def total_correlation(n: int, estimator: Estimator = "mss-sym") -> Term:
    """TC = KL(q(z) || prod_j q(z_j))."""

    def value(draw: Draw) -> Tensor:
        joint, marginals = _log_aggregate(draw, n, estimator)
        return joint - marginals.sum(-1)

    return _term("tc", estimator, value)


def dimwise_kl(n: int, estimator: Estimator = "mss-sym") -> Term:
    """sum_j KL(q(z_j) || p(z_j))."""

    def value(draw: Draw) -> Tensor:
        log_p: Tensor = draw.p.log_prob(draw.first)
        return _log_aggregate(draw, n, estimator)[1].sum(-1) - log_p

    def check(model: LatentModel) -> None:
        _check(model)
        if not capabilities(model.families[1]).factorises:
            raise Problem(
                "the KL of each dimension needs a prior with independent dimensions; "
                "use --prior normal, anisotropic, student or sparse"
            )

    return _term("dwkl", estimator, value, check)
