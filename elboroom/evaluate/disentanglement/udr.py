"""UDR and model centrality: which of several runs agrees with the others, no factor being known.

The runs share everything but the seed and encode the same images.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from elboroom.core.problem import Problem, unknown
from elboroom.evaluate.disentanglement.factors import Floats, checked_codes
from elboroom.evaluate.disentanglement.registry import score
from elboroom.evaluate.disentanglement.source import THRESHOLD as ACTIVE
from elboroom.evaluate.registry import Quantity, described, family
from elboroom.evaluate.result import Result, plain

if TYPE_CHECKING:
    from elboroom.evaluate.subject import Subject

Correlation = Literal["lasso", "spearman"]
ALPHA = 0.1  # penalty of the lasso
THRESHOLD = 0.01  # nats: dimensions of a lower mean KL count as dead


@dataclass(frozen=True)
class RunScores:
    """A score for each run, the scores of the pairs behind them, and how they were made."""

    values: list[float]  # (R,)
    pairs: NDArray[np.float64]  # (R, R): from run i to run j; the diagonal is 0
    metric: str
    mode: str
    settings: dict[str, Any]

    @property
    def results(self) -> list[Result]:
        """The score of each run."""
        found = (Result(value, self.mode, settings=self.settings, metric=self.metric) for value in self.values)
        return [described(self.metric, result) for result in found]

    @property
    def best(self) -> int:
        """The run that it would pick."""
        return int(np.argmax(self.values))

    def to_json(self) -> dict[str, Any]:
        """As kept beside a study."""
        return {name: plain(value) for name, value in vars(self).items()}


def udr(runs: Sequence[tuple[ArrayLike, ArrayLike]], correlation: Correlation = "lasso") -> RunScores:
    """UDR of R runs, each a pair (codes (n, J), mean KL of each dimension (J,)) of the same n images (Duan 2020).

    A run's score is the median over the others of how one-to-one their codes map to its codes.
    """
    codes, live = _runs(runs)
    standard = [_standardised(z) * mask for z, mask in zip(codes, live, strict=True)]
    if correlation == "lasso":
        matrices = _lasso_all(standard)
    elif correlation == "spearman":
        matrices = _spearman_all(standard)
    else:
        raise unknown("correlation", correlation, ("lasso", "spearman"))
    pairs = np.zeros((len(codes), len(codes)))
    for (i, j), matrix in matrices.items():
        pairs[i, j] = relative_strength(matrix[live[i]][:, live[j]])
    values = [float(np.median(np.delete(pairs[:, i], i))) for i in range(len(codes))]
    settings: dict[str, Any] = {"n": len(codes[0]), "runs": len(codes), "kl_threshold": THRESHOLD}
    settings["live"] = [int(mask.sum()) for mask in live]
    settings |= {"alpha": ALPHA} if correlation == "lasso" else {}
    return RunScores(values, pairs, "udr", correlation, settings)


@family("udr", "several runs", {"udr": Quantity("Agreement with other seeds (UDR)", "high")}, by_name=True)
def of_runs(subjects: Sequence[Subject], n: int = 10_000) -> dict[str, Result]:
    """UDR of each of several runs that differ in their seed only, on the same examples, by their folders."""
    runs = [subject.run for subject in subjects]
    if len(runs) < 2:
        raise Problem("udr compares runs; give at least two")
    if len({run.data.hash for run in runs}) > 1:
        raise Problem("udr needs runs on the same data")
    if len({run.data.split_hash for run in runs}) > 1:
        raise Problem("udr needs runs with the same training split; some of these hold out a different share")
    found = udr([(run.split("train", n).codes[0].numpy(), run.kl_per_dim("train")) for run in runs])
    return {str(run.folder): result for run, result in zip(runs, found.results, strict=True)}


def model_centrality(codes: Sequence[ArrayLike], seed: int = 0, mode: str = "dlib") -> RunScores:
    """Mean similarity of each of R runs to the others, their codes (n, J) being of the same n images (Lin 2020).

    The similarity of two runs is the FactorVAE score of one with the codes of the other as factors, the mean of both ways.
    """
    tables, _ = _runs([(z, np.ones(np.shape(z)[1:])) for z in codes])
    count = len(tables)
    pairs = np.zeros((count, count))
    for i in range(count):
        for j in range(count):
            if i != j:
                pairs[i, j] = votes(tables[j], tables[i], seed, mode)
    pairs = (pairs + pairs.T) / 2
    values = (pairs.sum(1) / (count - 1)).tolist()
    return RunScores(values, pairs, "model-centrality", mode, {"n": len(tables[0]), "runs": count, "seed": seed})


def votes(codes: Floats, others: Floats, seed: int = 0, mode: str = "dlib") -> float:
    """The FactorVAE score of codes, the active dimensions of others being the factors in quantile bins; 0 if there are none."""
    factors = others[:, others.std(0) >= ACTIVE]
    if not factors.shape[1]:
        return 0.0
    found = score("factor-vae", codes, factors.astype(np.float64), mode=mode, rng=seed, allow_smaller=True)
    return found.value or 0.0


def relative_strength(matrix: NDArray[np.float64]) -> float:
    """1/2 [mean_col max^2 / sum + mean_row max^2 / sum] with 0/0 = 0: 1 for a permutation matrix."""
    if not matrix.size:
        return 0.0
    sides = []
    for axis in (0, 1):
        top, total = matrix.max(axis) ** 2, matrix.sum(axis)
        sides.append(np.divide(top, total, out=np.zeros_like(top), where=total > 0).mean())
    return float(sum(sides) / 2)


def lasso(
    gram: NDArray[np.float64], cross: NDArray[np.float64], alpha: float = ALPHA, tolerance: float = 1e-7
) -> NDArray[np.float64]:
    """argmin_W 1/2 tr W'GW - tr W'C + alpha |W|_1 for all targets at once, (J, T), by coordinate descent.

    With G = X'X/n and C = X'Y/n this is the lasso of every column of Y on X.
    """
    weights = np.zeros_like(cross)
    for _ in range(1000):
        change = 0.0
        for j in np.flatnonzero(np.diag(gram) > 0):
            pull = cross[j] - gram[j] @ weights + gram[j, j] * weights[j]  # (T,)
            new = np.sign(pull) * np.maximum(np.abs(pull) - alpha, 0) / gram[j, j]
            change = max(change, float(np.abs(new - weights[j]).max()))
            weights[j] = new
        if change < tolerance:
            break
    return weights


def _runs(runs: Sequence[tuple[ArrayLike, ArrayLike]]) -> tuple[list[Floats], list[NDArray[np.bool_]]]:
    if len(runs) < 2:
        raise Problem(f"agreement needs at least 2 runs, not {len(runs)}")
    codes = [checked_codes(z) for z, _ in runs]
    lengths = sorted({len(z) for z in codes})
    if len(lengths) > 1:
        raise Problem(f"the runs must encode the same images; they have {' and '.join(f'{n:,}' for n in lengths)}")
    live = []
    for r, (z, (_, kl)) in enumerate(zip(codes, runs, strict=True)):
        rate = np.asarray(kl, dtype=np.float64)
        if rate.shape != z.shape[1:] or not np.isfinite(rate).all():
            raise Problem(
                f"run {r} has {z.shape[1]} dimensions, so its KL is {z.shape[1]} finite numbers, not {rate.shape}"
            )
        live.append((rate > THRESHOLD) & (z.max(0) > z.min(0)))
    return codes, live


def _standardised(codes: Floats) -> NDArray[np.float64]:
    z = codes.astype(np.float64)
    spread = z.std(0)
    return np.asarray((z - z.mean(0)) / np.where(spread > 0, spread, 1))


def _lasso_all(codes: list[NDArray[np.float64]]) -> dict[tuple[int, int], NDArray[np.float64]]:
    """|coefficients| from the codes of i to those of j, (J_i, J_j), off one covariance matrix of all codes."""
    whole = np.concatenate(codes, 1)
    covariance = whole.T @ whole / len(whole)
    ends = np.cumsum([0, *(z.shape[1] for z in codes)])
    found: dict[tuple[int, int], NDArray[np.float64]] = {}
    for i in range(len(codes)):
        here = slice(ends[i], ends[i + 1])
        weights = np.abs(lasso(covariance[here, here], covariance[here]))
        found |= {(i, j): weights[:, ends[j] : ends[j + 1]] for j in range(len(codes)) if j != i}
    return found


def _spearman_all(codes: list[NDArray[np.float64]]) -> dict[tuple[int, int], NDArray[np.float64]]:
    """|Spearman| between the codes of i and of j, (J_i, J_j), off one correlation matrix of all ranks; dead ones 0."""
    ranks = _standardised(rankdata(np.concatenate(codes, 1), axis=0))
    correlation = np.abs(ranks.T @ ranks / len(ranks))
    ends = np.cumsum([0, *(z.shape[1] for z in codes)])
    return {
        (i, j): correlation[ends[i] : ends[i + 1], ends[j] : ends[j + 1]]
        for i in range(len(codes))
        for j in range(len(codes))
        if i != j
    }
