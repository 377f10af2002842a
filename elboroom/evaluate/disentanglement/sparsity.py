"""Sparsity of codes: how few dimensions each example uses (Hoyer 2004; Mathieu 2019)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from elboroom.core.problem import Problem
from elboroom.evaluate.disentanglement.factors import Floats
from elboroom.evaluate.disentanglement.registry import metric
from elboroom.evaluate.disentanglement.source import Source, stream
from elboroom.evaluate.result import Result


def hoyer(codes: Floats) -> NDArray[np.float64]:
    """(sqrt(J) - |y|_1 / |y|_2) / (sqrt(J) - 1) of each row, (n,): 1 for one-hot rows, 0 for rows of constant magnitude.

    A row of zeros has no direction and counts as 0.
    """
    dims = codes.shape[1]
    if dims < 2:
        raise Problem("Hoyer sparsity needs at least 2 dimensions")
    y = np.abs(codes.astype(np.float64))
    top = y.max(1, keepdims=True)
    y = np.divide(y, top, out=np.ones_like(y), where=top > 0)  # the ratio of norms knows no scale: none can overflow
    ratio = y.sum(1) / np.sqrt(np.square(y).sum(1))
    return np.asarray((math.sqrt(dims) - ratio) / (math.sqrt(dims) - 1))


def scaled(codes: Floats) -> NDArray[np.float64]:
    """Codes over the standard deviation of each dimension, so that collapsed ones do not count as sparse, (n, J').

    Dimensions without spread are left out.
    """
    spread = codes.max(0) > codes.min(0)
    kept = codes[:, spread].astype(np.float64)
    return np.asarray(kept / kept.std(0))


@metric("sparsity", title="Hoyer sparsity", better="neither", modes=("hoyer",), needs="codes")
def measure_sparsity(source: Source, seed: int, mode: str, n: int = 10_000) -> Result:
    """Mean Hoyer sparsity of codes over their standard deviation; 0 where no dimension has spread."""
    y = scaled(source.points(stream(seed, "sparsity", mode), n)[0])
    settings = {"n": len(y), "active": y.shape[1]}
    if y.shape[1] == 1:
        return Result(None, mode, settings=settings, reason="only one dimension varies, so sparsity has no meaning")
    return Result(float(hoyer(y).mean()) if y.shape[1] else 0.0, mode, settings=settings)
