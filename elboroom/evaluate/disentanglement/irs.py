"""The interventional robustness score (Suter 2019): how little a dimension moves while one factor is held."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elboroom.evaluate.disentanglement.factors import Floats, Ints
from elboroom.evaluate.disentanglement.mutual_information import binned
from elboroom.evaluate.disentanglement.registry import metric
from elboroom.evaluate.disentanglement.source import Source, stream
from elboroom.evaluate.result import Result


def robustness(codes: Floats, classes: Ints, quantile: float = 0.99) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """1 - (mean over values of factor k of the quantile of |z_j - E[z_j | value]|) / max |z_j - E z_j|, (J, K).

    Beside it the largest deviations, (J,), the weights of the dimensions. No dimension may be constant.
    """
    z = codes.astype(np.float64)
    largest = np.abs(z - z.mean(0)).max(0)
    moved = np.empty((z.shape[1], classes.shape[1]))
    for k, column in enumerate(classes.T):
        groups = (z[column == value] for value in np.unique(column))
        moved[:, k] = np.mean([np.quantile(np.abs(g - g.mean(0)), quantile, axis=0) for g in groups], axis=0)
    return 1 - moved / largest[:, None], largest


@metric(
    "irs",
    title="Interventional robustness",
    better="high",
    modes=("dlib", "paper"),
    needs={"dlib": "values", "paper": "classes"},
)
def measure_irs(source: Source, seed: int, mode: str, n: int = 10_000, bins: int = 20) -> Result:
    """How robust the dimensions are to changes of all factors but one, weighted by how far each moves at all.

    dlib: factors in 20 bins of equal width, the 0.99 quantile of deviations. paper: values as they are, the maximum.
    """
    rng = stream(seed, "irs", mode)
    index = source.draw(rng, n)
    codes = source.codes_at(index, rng)
    classes = binned(source.values_at(index), bins) if mode == "dlib" else source.factors_at(index)
    quantile = 0.99 if mode == "dlib" else 1.0
    live = codes.max(0) > codes.min(0)
    settings = {"n": len(codes), "quantile": quantile, "active": int(live.sum())}
    settings |= {"bins": bins} if mode == "dlib" else {}
    if not live.any():
        return Result(0.0, mode, settings=settings, parts={"live": live})
    matrix, largest = robustness(codes[:, live], classes, quantile)
    each = matrix.max(1)
    parts = {"matrix": matrix, "dimensions": each, "weights": largest / largest.sum(), "live": live}
    return Result(float(np.average(each, weights=largest)), mode, settings=settings, parts=parts)
