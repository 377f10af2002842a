"""The mutual information gap: how far the best dimension for a factor is ahead of the second best."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from elboroom.core.problem import Problem
from elboroom.evaluate.disentanglement.factors import Ints
from elboroom.evaluate.disentanglement.interval import HalfSamples
from elboroom.evaluate.disentanglement.mutual_information import (
    binned,
    entropy,
    gap,
    histogram_information,
    neighbour_information,
)
from elboroom.evaluate.disentanglement.registry import metric
from elboroom.evaluate.disentanglement.source import Source, stream
from elboroom.evaluate.result import Result

MODES = ("dlib", "continuous-quadrature", "bins-10-full", "modern")
REACH = 8.0  # standard deviations beyond which a density is taken for 0
WIDEST = 20_000  # points of a grid


@metric(
    "mig",
    title="Mutual information gap",
    better="high",
    modes=MODES,
    needs={"dlib": "classes", "continuous-quadrature": "density"},
    interval=HalfSamples(),
)
def mig(
    source: Source,
    seed: int,
    mode: str,
    n: int = 10_000,
    bins: int | None = None,
    neighbours: int = 10,
    without: tuple[str, ...] | None = None,
) -> Result:
    """mean_k (I(z_(1); v_k) - I(z_(2); v_k)) / H(v_k), over the two dimensions that tell most (Chen et al. 2018).

    bins: of equal width over the range of a dimension, 20, or 10 in bins-10-full. neighbours: of the estimator in mode
    modern. without: factors to leave out, by default 'shape' in continuous-quadrature, as first published.
    """
    rng = stream(seed, "mig", mode)
    settings: dict[str, Any] = {}
    index = source.every() if mode in ("continuous-quadrature", "bins-10-full") else source.draw(rng, n)
    factors = source.factors_at(index)  # (n, K)
    if mode == "continuous-quadrature":
        mi = quadrature_information(source, factors)
        settings["density"] = "q(z_j|x) of every x"
    elif mode == "modern":
        mi = neighbour_information(source.codes_at(index, rng), factors, neighbours, seed)
        settings["neighbours"] = neighbours
    else:
        settings["bins"] = bins or (10 if mode == "bins-10-full" else 20)
        mi = histogram_information(source.codes_at(index, rng), factors, settings["bins"])
    said = ("shape",) if without is None and mode == "continuous-quadrature" else without or ()
    kept = np.array([name not in said for name in source.names])
    if not kept.any():
        raise Problem(f"no factor is left after leaving out {', '.join(said)}")
    h = entropy(factors)  # (K,)
    gaps = np.divide(gap(mi), h, out=np.zeros_like(h), where=h > 0)
    parts: dict[str, Any] = {"mi": mi, "entropy": h, "gaps": gaps}
    if "bins" in settings:
        held = entropy(binned(factors.astype(np.float64), settings["bins"]))  # what bins keep of a perfect index code
        parts["ceiling"] = float(np.divide(held, h, out=np.ones_like(h), where=h > 0)[kept].mean())
    settings |= {"n": len(index), "without": [name for name in said if name in source.names]}
    return Result(float(gaps[kept].mean()), mode, settings=settings, parts=parts)


def quadrature_information(source: Source, factors: Ints) -> NDArray[np.float64]:
    """I(z_j; v_k) = H(z_j) - sum_v p(v) H(z_j | v) with q(z_j) = mean_x q(z_j|x) summed on a grid, (J, K).

    The step is below half the smallest sigma, where the sum of a Gaussian is exact to rounding. Every x adds its density
    once, to the total and to the group of each of its values; rows in the order of their means touch few grid points.
    """
    assert source.logvar is not None
    sizes = factors.max(0) + 1
    first = np.cumsum(sizes) - sizes  # where the groups of factor k begin
    groups = np.concatenate([factors + first, np.full((len(factors), 1), sizes.sum())], 1)  # (N, K + 1)
    weight = np.bincount(groups.ravel(), minlength=sizes.sum() + 1)  # rows of each group, (V + 1,)
    found = np.empty((source.latent, len(sizes)))
    for j in range(source.latent):
        mu = np.asarray(source.mu[:, j], np.float64)
        sigma = np.exp(np.asarray(source.logvar[:, j], np.float64) / 2)
        h = _entropies(mu, sigma, groups, weight)
        for k, size in enumerate(sizes):
            part = slice(first[k], first[k] + size)
            found[j, k] = h[-1] - np.sum(weight[part] * h[part]) / len(mu)
    return np.maximum(found, 0)


def _entropies(mu: NDArray[np.float64], sigma: NDArray[np.float64], groups: Ints, weight: Ints) -> NDArray[np.float64]:
    """The entropy of the mixture of each group of rows, (V + 1,)."""
    low, high = (mu - REACH * sigma).min(), (mu + REACH * sigma).max()
    points = int((high - low) / (0.45 * sigma.min())) + 2
    if points > WIDEST:
        raise Problem(
            f"the smallest sigma, {sigma.min():.2g}, is too small for the range of its dimension, {high - low:.3g}"
        )
    step = (high - low) / (points - 1)
    grid = low + step * np.arange(points)
    density = np.zeros((len(weight), points))
    order, at = np.argsort(mu, kind="stable"), 0
    while at < len(mu):
        rows = order[at : at + 4096]
        left = int((mu[rows] - REACH * sigma[rows]).min() / step - low / step)
        right = int((mu[rows] + REACH * sigma[rows]).max() / step - low / step) + 2
        where = slice(max(0, left), min(points, right))
        apart = (grid[where] - mu[rows, None]) / sigma[rows, None]  # (B, G)
        each = np.exp(-0.5 * apart**2) / (math.sqrt(2 * math.pi) * sigma[rows, None])
        count = groups.shape[1]
        member = csr_matrix(
            (np.ones(count * len(rows)), (groups[rows].ravel(), np.repeat(np.arange(len(rows)), count))),
            shape=(len(weight), len(rows)),
        )
        density[:, where] += member @ each
        at += len(rows)
    q = density / np.maximum(weight, 1)[:, None]
    return np.asarray(-step * np.sum(q * np.log(np.maximum(q, 1e-300)), axis=1))
