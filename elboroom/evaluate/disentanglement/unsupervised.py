"""What codes say of themselves: total correlation and Wasserstein correlation as if Gaussian, information of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from elboroom.evaluate.disentanglement.factors import Floats
from elboroom.evaluate.disentanglement.interval import HalfSamples
from elboroom.evaluate.disentanglement.mutual_information import binned, mutual_information
from elboroom.evaluate.disentanglement.registry import metric
from elboroom.evaluate.disentanglement.source import Source, stream
from elboroom.evaluate.result import Result


def covariance(codes: Floats) -> NDArray[np.float64]:
    """The covariance of the dimensions that vary (ddof 1), (J', J')."""
    live = codes[:, codes.max(0) > codes.min(0)].astype(np.float64)
    return np.atleast_2d(np.cov(live, rowvar=False)) if live.shape[1] else np.zeros((0, 0))


def gaussian_total_correlation(c: NDArray[np.float64]) -> float:
    """1/2 (sum_j log C_jj - log det C): TC of N(0, C); infinite where C is singular."""
    spread = np.sqrt(np.diag(c))
    eigenvalues = np.linalg.eigvalsh(c / np.outer(spread, spread)) if len(c) else np.ones(1)
    if eigenvalues.min() <= len(c) * np.finfo(np.float64).eps:
        return np.inf
    return float(-0.5 * np.log(eigenvalues).sum())


def gaussian_wasserstein_correlation(c: NDArray[np.float64]) -> float:
    """2 tr C - 2 tr (diag(C) C)^(1/2): the squared 2-Wasserstein distance of N(0, C) from the product of its marginals."""
    if not len(c):
        return 0.0
    spread = np.sqrt(np.diag(c))
    eigenvalues = np.linalg.eigvalsh(c * np.outer(spread, spread))  # diag(C) C is similar to D^(1/2) C D^(1/2)
    return float(2 * np.trace(c) - 2 * np.sqrt(np.maximum(eigenvalues, 0)).sum())


def pair_information(codes: Floats, bins: int = 20) -> NDArray[np.float64]:
    """I(z_i; z_j) of dimensions cut into bins, (J, J), the diagonal 0."""
    cut = binned(codes, bins)
    found = mutual_information(cut, cut)
    np.fill_diagonal(found, 0)
    return found


def _covariance(source: Source, seed: int, n: int) -> tuple[NDArray[np.float64], dict[str, Any]]:
    codes, _ = source.points(stream(seed, "unsupervised", "dlib"), n)
    c = covariance(codes)
    return c, {"n": len(codes), "active": len(c)}


@metric("gaussian-tc", title="Total correlation, as if Gaussian", better="low", needs="codes")
def measure_gaussian_tc(source: Source, seed: int, mode: str, n: int = 10_000) -> Result:
    """Total correlation of a Gaussian with the covariance of the codes, in nats."""
    c, settings = _covariance(source, seed, n)
    value = gaussian_total_correlation(c)
    if np.isinf(value):
        reason = "the covariance is singular: a dimension is a linear function of the others"
        return Result(None, mode, settings=settings, parts={"covariance": c}, reason=reason)
    return Result(value, mode, settings=settings, parts={"covariance": c})


@metric("gaussian-wasserstein", title="Wasserstein correlation, as if Gaussian", better="low", needs="codes")
def measure_gaussian_wasserstein(source: Source, seed: int, mode: str, n: int = 10_000) -> Result:
    """Squared Wasserstein distance of a Gaussian with the covariance of the codes from its marginals."""
    c, settings = _covariance(source, seed, n)
    return Result(gaussian_wasserstein_correlation(c), mode, settings=settings, parts={"covariance": c})


@metric("gaussian-wasserstein-norm", title="The same over the total variance", better="low", needs="codes")
def measure_gaussian_wasserstein_norm(source: Source, seed: int, mode: str, n: int = 10_000) -> Result:
    """The same over the total variance of the codes."""
    c, settings = _covariance(source, seed, n)
    value = gaussian_wasserstein_correlation(c) / np.trace(c) if len(c) else 0.0
    return Result(float(value), mode, settings=settings, parts={"covariance": c})


@metric("mean-mi", title="Mutual information of two dimensions", better="low", needs="codes", interval=HalfSamples())
def measure_mean_mi(source: Source, seed: int, mode: str, n: int = 10_000, bins: int = 20) -> Result:
    """Mean information that two dimensions share, in nats."""
    codes, _ = source.points(stream(seed, "unsupervised", "dlib"), n)
    pairs, settings = pair_information(codes, bins), {"n": len(codes), "bins": bins}
    dims = len(pairs)
    if dims < 2:
        return Result(
            None, mode, settings=settings, parts={"pairs": pairs}, reason="there is only one dimension, so no pair"
        )
    return Result(float(pairs.sum() / (dims**2 - dims)), mode, settings=settings, parts={"pairs": pairs})
