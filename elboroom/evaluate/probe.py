"""The linear probe: how well a class is read off the codes with few and with many labels."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from elboroom.core.problem import Problem
from elboroom.divergences.samples import rows
from elboroom.evaluate.downstream import Constant
from elboroom.evaluate.registry import Quantity, family, named
from elboroom.evaluate.result import Result
from elboroom.evaluate.text.ngrams import Floats, Ints

if TYPE_CHECKING:
    from elboroom.evaluate.subject import Subject

SIZES = (100, 500, 1_000, 2_000, 10_000)
PENALTY = 1.0  # C of scikit-learn
ITERATIONS = 1_000


def probe(
    codes: ArrayLike | Tensor,
    labels: ArrayLike,
    test_codes: ArrayLike | Tensor,
    test_labels: ArrayLike,
    sizes: Sequence[int] = SIZES,
    draws: int = 10,
    seed: int = 0,
) -> dict[str, Result]:
    """Test accuracy of logistic regression on `size` labelled codes, the mean over several draws of which are labelled.

    Keys are probe-100, ... Codes are standardised by the labelled ones alone. Two errors: `labels` is what other draws of
    labels would change, `sampling` what another test set would. A size for which there are too few labels has no value but
    a reason; one that takes them all has one draw.
    """
    x, others = (rows(c, f"the array of {n}", 1).numpy() for c, n in ((codes, "codes"), (test_codes, "test codes")))
    if x.shape[1] != others.shape[1]:
        raise Problem(f"the codes have {x.shape[1]} dimensions but the test codes have {others.shape[1]}")
    if not len(sizes) or min(sizes) < 1 or draws < 1:
        raise Problem("at least one label and one draw are needed")
    y, answers = _labels(labels, len(x), "codes"), _labels(test_labels, len(others), "test codes")
    if len(np.unique(y)) < 2:
        raise Problem(f"all labels are {y[0]}; a probe needs at least two classes")
    places = np.unique(np.concatenate([y, answers]), return_inverse=True)[1]
    y, answers = places[: len(y)], places[len(y) :]
    found = {f"probe-{size}": _one(x, y, others, answers, size, draws, seed) for size in sizes}
    return named(found)


@family("probe", "labels", {"probe-*": Quantity("First label predicted from * labels", "high")}, by_name=True)
def of_run(subject: Subject, seed: int = 0, split: str | None = None) -> dict[str, Result]:
    """Accuracy of a linear probe that predicts the first label from the codes, with 100 to 10,000 labels."""
    run = subject.run
    if not run.data.about.labels:
        raise Problem(f"a probe predicts labels; {run.data.about.name} has none")
    name = run.rows(split)[0]
    if name == "train":
        raise Problem("a probe trains on the training split and is tested on another; choose one with --split")
    learn, test = (run.split(split, 20_000) for split in ("train", name))
    codes, others = learn.codes[0].numpy(), test.codes[0].numpy()
    labels = run.data.labels[:, 0]
    found = probe(codes, labels[learn.rows], others, labels[test.rows], seed=seed)
    return {key: replace(result, settings=test.settings | result.settings) for key, result in found.items()}


def _labels(labels: ArrayLike, n: int, what: str) -> NDArray[Any]:
    column = np.asarray(labels)
    if column.shape != (n,):
        raise Problem(f"the labels of the {what} have shape {column.shape}, not ({n},)")
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        raise Problem(f"the labels of the {what} have values that are NaN or infinite")
    return column.astype(str) if column.dtype.kind == "O" else column


def _one(x: Floats, y: Ints, others: Floats, answers: Ints, size: int, draws: int, seed: int) -> Result:
    name = f"logistic probe, {size} labels"
    settings: dict[str, Any] = {"labels": size, "of": len(x), "C": PENALTY, "seed": seed}
    if size > len(x):
        return Result(None, name, "of 1", settings, reason=f"there are only {len(x):,} labelled codes, not {size:,}")
    draws = draws if size < len(x) else 1
    right = []
    for draw in range(draws):
        chosen = np.random.default_rng([seed, size, draw]).permutation(len(x))[:size]
        right.append(float(np.mean(_predicted(x[chosen], y[chosen], others) == answers)))
    value = float(np.mean(right))
    errors = {"sampling": math.sqrt(value * (1 - value) / len(others))}
    if draws > 1:
        errors["labels"] = float(np.std(right, ddof=1)) / math.sqrt(draws)
    majority = float(np.mean(answers == np.bincount(y).argmax()))
    settings |= {"draws": draws, "test": len(others), "standardised": "by the labelled codes"}
    return Result(value, name, "of 1", settings, errors, parts={"draws": right, "majority": majority})


def _predicted(x: Floats, y: Ints, others: Floats) -> Ints:
    if len(np.unique(y)) == 1:
        return Constant(int(y[0])).predict(others)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=PENALTY, max_iter=ITERATIONS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found: Ints = model.fit(x, y).predict(others)
    return found
