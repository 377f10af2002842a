"""The metric of FactorVAE: which factor a batch shares, told from the dimension that varies least in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elboroom.evaluate.disentanglement.factors import Ints
from elboroom.evaluate.disentanglement.interval import Wilson
from elboroom.evaluate.disentanglement.registry import metric
from elboroom.evaluate.disentanglement.source import Source, Stream, stream
from elboroom.evaluate.result import Result

BLOCK = 256  # batches gathered at a time, for the cache


@dataclass(frozen=True)
class Protocol:
    """The sizes of a mode and its pruning."""

    variances: int | None = 10_000  # points for the variance of each dimension; None is all of them
    length: int = 64  # points in a batch
    train: int = 10_000
    test: int = 5_000
    threshold: float = 0.05  # standard deviation below which a dimension is left out
    standardised: bool = False  # whether the threshold is on codes of unit deviation, so that only constants fall


MODES = {"dlib": Protocol(), "paper": Protocol(None, 200, 800, 800, 0.02, True)}


def _votes(
    source: Source, rng: Stream, n: int, length: int, spread: NDArray[np.floating[Any]], active: NDArray[np.bool_]
) -> Ints:
    """How often dimension j varied least when factor k was fixed, (K, J)."""
    labels, index = source.votes(rng, n, length)
    dims = np.flatnonzero(active)
    least = np.empty(n, np.int64)
    for at in range(0, n, BLOCK):
        part = slice(at, at + BLOCK)
        codes = source.codes_at(index[part], rng)  # (B, L, J)
        codes -= codes.mean(1, keepdims=True)
        local = np.einsum("blj,blj->bj", codes, codes)[:, dims] / (length - 1)
        least[part] = dims[np.argmin(local / spread[dims], axis=1)]
    table = np.zeros((len(source.sizes), source.latent), np.int64)
    np.add.at(table, (labels, least), 1)
    return table


@metric("factor-vae", title="FactorVAE score", better="high", modes=tuple(MODES), needs="bins", interval=Wilson())
def factor_vae(source: Source, seed: int, mode: str, threshold: float | None = None) -> Result:
    """Accuracy of a majority vote for the fixed factor k by d = argmin_j Var_local(z_j) / Var(z_j) (Kim & Mnih 2018).

    threshold: the standard deviation below which a dimension has no vote, by default that of the mode.
    """
    if len(source.sizes) < 2:
        return Result(None, mode, reason="there is only one factor, so every code would score 1")
    protocol, rng = MODES[mode], stream(seed, "factor-vae", mode)
    bound = protocol.threshold if threshold is None else threshold
    index = source.every() if protocol.variances is None else source.batch(rng, protocol.variances)
    spread = np.var(source.codes_at(index, rng), axis=0, ddof=1, dtype=np.float64)  # (J,)
    deviation = np.where(spread > 1e-12, 1.0, 0.0) if protocol.standardised else np.sqrt(spread)
    active = (deviation >= bound) & (spread > 0)
    sizes = {"variances": len(index), "train": protocol.train, "test": protocol.test, "length": protocol.length}
    settings = {"n": len(index), **sizes, "threshold": bound, "active": int(active.sum())}
    parts: dict[str, Any] = {"variances": spread, "mask": active}
    if not active.any():
        empty = np.zeros((len(source.sizes), source.latent), np.int64)
        return Result(0.0, mode, settings=settings, parts=parts | {"votes": empty, "accuracy": 0.0})
    fitted, tested = (_votes(source, rng, n, protocol.length, spread, active) for n in (protocol.train, protocol.test))
    winner = fitted.argmax(0)  # the factor that dimension j stands for, the first where votes are equal, (J,)
    dims = np.arange(source.latent)
    value = float(tested[winner, dims].sum() / protocol.test)
    parts |= {"votes": fitted, "test_votes": tested, "factor_of": np.where(fitted.sum(0) > 0, winner, -1)}
    parts |= {"accuracy": value, "train_accuracy": float(fitted[winner, dims].sum() / protocol.train)}
    return Result(value, mode, settings=settings, parts=parts)
