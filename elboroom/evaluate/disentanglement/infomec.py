"""InfoM, InfoC and InfoE (Hsu 2023): modularity, compactness and explicitness as ratios of information."""

from __future__ import annotations

import warnings
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import OneHotEncoder

from elboroom.evaluate.disentanglement.factors import Floats, Ints
from elboroom.evaluate.disentanglement.interval import HalfSamples
from elboroom.evaluate.disentanglement.mutual_information import entropy, mutual_information, neighbour_information
from elboroom.evaluate.disentanglement.registry import metric
from elboroom.evaluate.disentanglement.source import Source, stream
from elboroom.evaluate.result import Result

NEIGHBOURS = 10


def normalised_information(codes: Floats, classes: Ints, discrete: bool = False, seed: int = 0) -> NDArray[np.float64]:
    """I(z_j; v_k) / H(v_k), (J, K): by 10 nearest neighbours of standardised codes, plug-in where codes are discrete."""
    if discrete:
        found = mutual_information(_labelled(codes), classes)
    else:
        # one column at a time: the tiny noise that breaks ties is then the same wherever the column stands
        each = (neighbour_information(column[:, None], classes, NEIGHBOURS, seed) for column in _standardised(codes).T)
        found = np.concatenate(list(each))
    h = entropy(classes)
    return np.divide(found, h, out=np.zeros_like(found), where=h > 0)


def kept(codes: Floats, discrete: bool = False) -> NDArray[np.bool_]:
    """The dimensions whose range is over a twentieth of the largest range; where discrete, over 0, (J,)."""
    ranges = codes.max(0) - codes.min(0)
    return np.asarray(ranges > (0 if discrete else ranges.max() / 20))


def concentration(information: NDArray[np.float64], axis: int) -> float:
    """(mean of max / sum along an axis of length L, minus 1/L) / (1 - 1/L): 1 if all is in one place, 0 if spread evenly.

    What has no information anywhere counts as spread evenly.
    """
    length = information.shape[axis]
    top, total = information.max(axis), information.sum(axis)
    share = np.divide(top, total, out=np.full_like(top, 1 / length), where=total > 0)
    return float((share.mean() - 1 / length) / (1 - 1 / length))


def predictive_information(
    codes: Floats, factor: NDArray[np.float64] | Ints, continuous: bool = False, discrete: bool = False
) -> float:
    """(CE_null - CE) / CE_null of an unpenalised logistic regression, on the points it is fitted to; R^2 of a straight
    fit where the factor is continuous."""
    x = OneHotEncoder().fit_transform(codes) if discrete else _standardised(codes)
    if continuous:
        return float(LinearRegression().fit(x, factor).score(x, factor))
    size = len(np.unique(factor))
    if size < 2:
        return 0.0
    model = LogisticRegression(C=np.inf, class_weight="balanced", solver="lbfgs", max_iter=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 100 iterations are the protocol
        model.fit(x, factor)
    null = np.log(size)  # balanced classes make all-zero codes predict each of them alike
    return float((null - log_loss(factor, model.predict_proba(x))) / null)


@lru_cache(maxsize=1)  # InfoM and InfoC are read off one matrix
def _matrix(source: Source, seed: int, mode: str, n: int, discrete: bool) -> tuple[NDArray[np.float64], Floats]:
    codes, classes = source.points(stream(seed, "infomec", mode), n)
    return normalised_information(codes, classes, discrete, seed), codes


@metric("infom", title="InfoM, modularity", better="high", modes=("paper",), needs="bins", interval=HalfSamples())
def measure_infom(source: Source, seed: int, mode: str, n: int = 10_000, discrete: bool = False) -> Result:
    """InfoM, modularity: how much of the information of a dimension is about one factor; an empty one counts 0."""
    return _concentrated(1, source, seed, mode, n, discrete)


@metric("infoc", title="InfoC, compactness", better="high", modes=("paper",), needs="bins", interval=HalfSamples())
def measure_infoc(source: Source, seed: int, mode: str, n: int = 10_000, discrete: bool = False) -> Result:
    """InfoC, compactness: how much of the information about a factor is in one dimension."""
    return _concentrated(0, source, seed, mode, n, discrete)


def _concentrated(axis: int, source: Source, seed: int, mode: str, n: int, discrete: bool) -> Result:
    information, codes = _matrix(source, seed, mode, n, discrete)
    live = kept(codes, discrete)
    parts = {"information": information, "kept": live}
    settings = {"n": len(codes), "neighbours": NEIGHBOURS, "discrete": discrete, "active": int(live.sum())}
    if not live.any():
        return Result(0.0, mode, settings=settings, parts=parts)
    if information[live].shape[axis] == 1:
        reason = "InfoM needs two factors; there is one" if axis else "InfoC needs two active dimensions; there is one"
        return Result(None, mode, settings=settings, parts=parts, reason=reason)
    empty = int((information[live].sum(axis) <= 0).sum())
    what = "dimension" if axis else "factor"
    note = f"{empty} {what}{'s' * (empty != 1)} without information count{'s' * (empty == 1)} 0" if empty else ""
    settings["empty"] = empty  # they would be 0 / 0, and are left out by some
    return Result(concentration(information[live], axis), mode, settings=settings, parts=parts, note=note)


@metric("infoe", title="InfoE, explicitness", better="high", modes=("paper",), needs="values", interval=HalfSamples())
def measure_infoe(source: Source, seed: int, mode: str, n: int = 10_000, discrete: bool = False) -> Result:
    """InfoE, explicitness: the share of the entropy of a factor that a linear model reads off all dimensions."""
    rng = stream(seed, "infomec", mode)
    index = source.draw(rng, n)
    codes = source.codes_at(index, rng)
    classes, values = source.factors_at(index), source.values_at(index)
    real = [kind == "continuous" for kind in source.kinds]
    each = [
        predictive_information(codes, values[:, k] if real[k] else classes[:, k], real[k], discrete)
        for k in range(len(real))
    ]
    settings = {"n": len(codes), "discrete": discrete, "active": int(kept(codes, discrete).sum())}
    return Result(float(np.mean(each)), mode, settings=settings, parts={"factors": each})


def _standardised(codes: Floats) -> NDArray[np.float64]:
    """Of mean 0 and variance 1; constant dimensions become 0."""
    z = codes.astype(np.float64)
    return np.asarray((z - z.mean(0)) / np.where(z.max(0) > z.min(0), z.std(0), 1))


def _labelled(codes: Floats) -> Ints:
    """Each column as classes 0, 1, ..."""
    return np.stack([np.unique(column, return_inverse=True)[1] for column in codes.T], 1).astype(np.int64)
