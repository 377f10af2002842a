"""Scores of DCI per hour, on as many points as the protocol asks for and two of the five factors of dSprites."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingClassifier

from benchmarks import work
from benchmarks.measure import THREADS, Result, in_turns, measurement, timed
from elboroom.core.problem import Problem
from elboroom.data import dsprites
from elboroom.evaluate.disentanglement import Rows
from elboroom.evaluate.disentanglement.registry import find
from elboroom.evaluate.disentanglement.source import stream
from elboroom.evaluate.result import Result as Measured
from elboroom.training.batches import batch_of

FACTORS = ("shape", "scale")  # 3 and 6 values: 900 of the 11,300 trees of all five factors
TRAIN, TEST = 10_000, 5_000
HOUR = 3600


@measurement("dci")
def dci() -> Result:
    """DCI in mode dlib, 10,000 codes, shape and scale of dSprites; against serial scikit-learn, which gives the same score."""
    rows = problem()
    ours, (importance, accuracy) = score(rows, "dlib"), serial(rows)
    same = np.allclose(ours.parts["importance"], importance, atol=1e-9) and np.allclose(ours.parts["test"], accuracy)
    if not same:
        raise Problem("the scores differ from those of scikit-learn, so that their times do not compare")
    return against_serial("dlib", target=1.7)


@measurement("dci-hist")
def dci_hist() -> Result:
    """DCI in mode hist, 10,000 codes, shape and scale of dSprites; against the boosting of dlib by serial scikit-learn."""
    return against_serial("hist", target=10.0)


def against_serial(mode: str, target: float) -> Result:
    """A mode of DCI beside what scikit-learn takes for dlib's."""
    rows = problem()
    sides = {"ours": timed(lambda: score(rows, mode)), "serial": timed(lambda: serial(rows))}
    seconds = in_turns(sides, repetitions=3)
    ours, reference = (HOUR / seconds[side] for side in sides)
    return Result(ours, "scores/h", reference, ours / reference, target=target)


@cache
def problem() -> Rows:
    """Codes of a trained model beside the two factors."""
    run = work.trained()
    chosen = np.random.default_rng(0).choice(len(run.data), TRAIN + TEST, replace=False)
    columns = [dsprites.FACTORS.index(name) for name in FACTORS]
    return Rows(run.encode(batch_of(run.data, chosen, ())), run.data.labels[chosen][:, columns], names=FACTORS)


def score(rows: Rows, mode: str) -> Measured:
    """DCI of these codes."""
    return find("dci")(rows, 0, mode, threads=THREADS)


def serial(rows: Rows) -> tuple[NDArray[np.float64], list[float]]:
    """The importance of every dimension for every factor (J, K), and the accuracies: one booster after the other."""
    fit, held = rows.split(stream(0, "dci", "dlib"), TRAIN, TEST)
    importance, accuracy = [], []
    for classes in rows.factors.classes.T:
        model = GradientBoostingClassifier(random_state=0).fit(rows.mu[fit], classes[fit])
        importance.append(np.abs(model.feature_importances_))
        accuracy.append(float(np.mean(model.predict(rows.mu[held]) == classes[held])))
    return np.stack(importance, 1), accuracy
