"""Agreement over many models: rank correlation of scores, regret of selection rules, variance explained by the method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import kendalltau, rankdata

from elboroom.core.problem import Problem, unknown
from elboroom.evaluate.result import plain

Rank = Literal["spearman", "kendall"]


@dataclass(frozen=True)
class Ranks:
    """Rank correlation of each row with each column, with two-sided permutation p-values and the number of models.

    A constant score has no ranks: its entries are NaN, None in JSON.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    correlation: NDArray[np.float64]  # (rows, columns)
    p: NDArray[np.float64]
    n: NDArray[np.int64]  # models that have both scores
    mode: str
    settings: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """As kept beside a study."""
        return {name: plain(value) for name, value in vars(self).items()}


def rank_agreement(
    rows: Mapping[str, ArrayLike],
    columns: Mapping[str, ArrayLike] | None = None,
    mode: Rank = "spearman",
    permutations: int = 10_000,
    seed: int = 0,
) -> Ranks:
    """How two sets of scores of the same models order them, every score (models,); columns default to the rows.

    Models that lack a score (NaN) are left out of its pairs. ELBO up is good; nll and KL are taken as they are.
    """
    if mode not in ("spearman", "kendall"):
        raise unknown("rank correlation", mode, ("spearman", "kendall"))
    left = {name: np.asarray(score, dtype=np.float64) for name, score in rows.items()}
    right = left if columns is None else {name: np.asarray(s, dtype=np.float64) for name, s in columns.items()}
    lengths = {score.shape for score in (*left.values(), *right.values())}
    if len(lengths) != 1 or len(next(iter(lengths))) != 1:
        raise Problem(f"scores must be of the same models; their lengths are {sorted(lengths)}")
    shape = len(left), len(right)
    correlation, p, n = np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape, np.int64)
    for i, a in enumerate(left.values()):
        for j, b in enumerate(right.values()):
            both = np.isfinite(a) & np.isfinite(b)
            n[i, j] = both.sum()
            rng = np.random.default_rng(seed)  # the same for every pair: the order of scores changes nothing
            correlation[i, j], p[i, j] = _correlation(a[both], b[both], mode, permutations, rng)
    settings = {"permutations": permutations, "seed": seed}
    return Ranks(tuple(left), tuple(right), correlation, p, n, mode, settings)


def _correlation(
    a: NDArray[np.float64], b: NDArray[np.float64], mode: Rank, permutations: int, rng: np.random.Generator
) -> tuple[float, float]:
    """The rank correlation and the share of permutations, itself counted, that reach its magnitude."""
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return np.nan, np.nan
    order = rng.permuted(np.tile(np.arange(len(b)), (permutations, 1)), axis=1)
    if mode == "kendall":
        found = float(kendalltau(a, b).statistic)
        x, y = (np.sign(v[:, None] - v) for v in (a, b))  # (n, n): tau is their product, up to a constant
        each = np.array([np.vdot(x, y[np.ix_(rows, rows)]) for rows in order])
        reached = np.abs(each) >= abs(np.vdot(x, y)) - 1e-9
    else:
        x, y = (_centred(rankdata(v)) for v in (a, b))
        found = float(x @ y)
        reached = np.abs(y[order] @ x) >= abs(found) - 1e-12
    return found, (int(reached.sum()) + 1) / (permutations + 1)


def _centred(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of mean 0 and length 1."""
    centred = values - values.mean()
    return np.asarray(centred / np.sqrt(np.square(centred).sum()))


@dataclass(frozen=True)
class Regret:
    """What a selection rule loses: the score of the best model minus that of the model it picks, with the rank of that."""

    value: float
    picked: int
    rank: float  # 1 is the best; equal scores share their mean rank
    n: int


def selection_regret(score: ArrayLike, rule: ArrayLike, lower_is_better: bool = False) -> Regret:
    """Regret of picking the model with the highest (or lowest) `rule`, both (models,); models that lack either are out."""
    s, r = (np.asarray(values, dtype=np.float64) for values in (score, rule))
    if s.shape != r.shape or s.ndim != 1:
        raise Problem(f"a score and a rule must be of the same models; their shapes are {s.shape} and {r.shape}")
    both = np.flatnonzero(np.isfinite(s) & np.isfinite(r))
    if not len(both):
        raise Problem("no model has both the score and a value of the rule")
    picked = int(both[np.argmin(r[both]) if lower_is_better else np.argmax(r[both])])
    rank = float(rankdata(-s[both])[both == picked][0])
    return Regret(float(s[both].max() - s[picked]), picked, rank, len(both))


def variance_explained(score: ArrayLike, *groups: Sequence[object]) -> float | None:
    """R^2 of a one-way ANOVA: the share of the variance between the cells that the groups span; None for a constant score.

    variance_explained(mig, method) is that of the method, variance_explained(mig, method, strength) that of both together.
    """
    s = np.asarray(score, dtype=np.float64)
    if not groups or any(len(group) != len(s) for group in groups):
        raise Problem(f"give one group for each of the {len(s)} models")
    cells = list(zip(*groups, strict=True))
    known = np.isfinite(s)
    names = {cell: c for c, cell in enumerate(dict.fromkeys(cells))}
    which, s = np.array([names[cell] for cell in cells])[known], s[known]
    if len(s) < 2 or np.ptp(s) == 0:
        return None
    count = np.bincount(which)
    mean = np.bincount(which, weights=s) / np.maximum(count, 1)
    return float(np.sum(count * (mean - s.mean()) ** 2) / np.sum((s - s.mean()) ** 2))
