"""The metric of beta-VAE: which factor a batch of pairs agrees in, told by a linear classifier from their differences."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from elboroom.evaluate.disentanglement.factors import Floats, Ints
from elboroom.evaluate.disentanglement.interval import Wilson
from elboroom.evaluate.disentanglement.registry import metric
from elboroom.evaluate.disentanglement.source import Source, Stream, stream
from elboroom.evaluate.result import Result

BLOCK = 256  # batches gathered at a time, for the cache


@dataclass(frozen=True)
class Protocol:
    """The sizes of a mode and its classifier."""

    classifier: Any
    length: int = 64  # pairs in a batch
    train: int = 10_000
    test: int = 5_000
    draws: int = 0  # numbers that the fit takes from the generator before the test points are drawn


def _liblinear(seed: int) -> Any:
    return OneVsRestClassifier(LogisticRegression(solver="liblinear", random_state=seed))


def _lbfgs(seed: int) -> Any:
    return LogisticRegression(random_state=seed)


def _long_lbfgs(seed: int) -> Any:
    return LogisticRegression(max_iter=10_000, random_state=seed)


def _hinge(seed: int) -> Any:
    return OneVsRestClassifier(LinearSVC(loss="hinge", C=0.01, dual=True, random_state=seed))


MODES = {
    "dlib": Protocol(_liblinear, draws=1),
    "dlib-lbfgs": Protocol(_lbfgs),
    "paper-dip": Protocol(_hinge),
    "paper-200": Protocol(_long_lbfgs, length=200),
}


def _differences(source: Source, rng: Stream, n: int, length: int) -> tuple[Floats, Ints]:
    """The mean over a batch of |z - z'|, (n, J), and the factor that its pairs agree in, (n,)."""
    labels, first, second = source.pairs(rng, n, length)
    found = np.empty((n, source.latent), source.mu.dtype)
    for at in range(0, n, BLOCK):
        part = slice(at, at + BLOCK)
        apart = source.codes_at(first[part], rng)  # (B, L, J)
        apart -= source.codes_at(second[part], rng)
        np.abs(apart, out=apart)
        apart.mean(1, out=found[part])
    return found, labels


def accuracy(model: Any, train: tuple[Floats, Ints], test: tuple[Floats, Ints]) -> tuple[float, float, bool]:
    """The share of training and of test points that a fitted classifier gets right, and whether its fit converged."""
    if len(np.unique(train[1])) == 1:
        return 1.0, float(np.mean(test[1] == train[1][0])), True
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(*train)
    shares = [float(np.mean(model.predict(x) == y)) for x, y in (train, test)]
    return shares[0], shares[1], not any(issubclass(w.category, ConvergenceWarning) for w in said)


@metric("beta-vae", title="BetaVAE score", better="high", modes=tuple(MODES), needs="bins", interval=Wilson())
def beta_vae(source: Source, seed: int, mode: str, rescale: bool = False) -> Result:
    """Accuracy of telling the factor k that pairs agree in from mean |z - z'| (Higgins et al. 2017).

    rescale: gives (accuracy - 1/K) / (1 - 1/K), which is 0 at chance.
    """
    if len(source.sizes) < 2:
        return Result(None, mode, reason="there is only one factor, so every code would score 1")
    protocol, rng = MODES[mode], stream(seed, "beta-vae", mode)
    train = _differences(source, rng, protocol.train, protocol.length)
    for _ in range(protocol.draws):
        rng.randint(2**31 - 1)
    test = _differences(source, rng, protocol.test, protocol.length)
    fitted, value, converged = accuracy(protocol.classifier(seed), train, test)
    chance = 1 / len(source.sizes)
    parts: dict[str, Any] = {"accuracy": value, "train_accuracy": fitted, "chance": chance, "converged": converged}
    parts["points"] = np.bincount(test[1], minlength=len(source.sizes))
    sizes = {"train": protocol.train, "test": protocol.test, "length": protocol.length}
    if rescale:
        value = (value - chance) / (1 - chance)
    return Result(value, mode, settings={"n": protocol.train + protocol.test, **sizes}, parts=parts)
