"""Attributes: how well each label is told by the mean-difference classifier of Kumar et al. 2018, on the test split."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from elboroom.core.problem import Problem
from elboroom.evaluate.registry import Quantity, family, named
from elboroom.evaluate.result import Result
from elboroom.latent.attributes import FactorClassifier, HingeClassifier, majority_rate

if TYPE_CHECKING:
    from elboroom.evaluate.subject import Subject

MOST = 20_000  # examples of either split
ESTIMATOR = "sign(w . mu + b), w the difference of class means, b by the hinge loss"
GIVES = {
    "attributes": Quantity("Mean accuracy of attributes", "high"),
    "attribute-*": Quantity("Accuracy of an attribute", "high"),
}


@family("attributes", "labels", GIVES, by_name=True)
def of_run(subject: Subject, split: str | None = None) -> dict[str, Result]:
    """Accuracy of every label on the test split by the mean-difference classifier, beside the majority rate."""
    run = subject.run
    if not run.data.draft.labels:
        raise Problem(f"{run.data.about.name} has no labels, so there is no attribute to predict")
    name = run.rows(split)[0]
    if name == "train":
        raise Problem(
            "attributes are learnt from the training split and tested on another; there is none, so set --split"
        )
    learn, test = (run.split(part, MOST) for part in ("train", name))
    codes, others = (part.codes[0].numpy() for part in (learn, test))
    results = {}
    for column, field in enumerate(run.data.fields[label] for label in run.data.draft.labels):
        y, answers = (run.data.labels[part.rows, column] for part in (learn, test))
        settings = test.settings | {"label": field.name, "kind": field.kind}
        results[f"attribute-{field.name}"] = _one(codes, y, others, answers, settings)
    values = [result.value for result in results.values() if result.value is not None]
    majorities = [result.parts["majority"] for result in results.values() if result.value is not None]
    mean = None if not values else float(np.mean(values))
    parts = {"majority": float(np.mean(majorities)), "attributes": len(values)} if values else {}
    reason = "" if values else "no attribute has two values in the training split"
    whole = Result(mean, f"mean over attributes: {ESTIMATOR}", "of 1", test.settings, parts=parts, reason=reason)
    return named({"attributes": whole, **results})


def _one(
    codes: np.ndarray, y: np.ndarray, others: np.ndarray, answers: np.ndarray, settings: dict[str, object]
) -> Result:
    """One attribute; of more than two values, each against the rest, and the highest score is predicted."""
    values = np.unique(y)
    if len(values) < 2:
        return Result(None, ESTIMATOR, "of 1", settings, reason="it has a single value in the training split")
    if len(values) == 2:
        value = HingeClassifier.fit(codes, y == values[1]).accuracy(others, answers == values[1])
    else:
        value = FactorClassifier.fit(codes, y).accuracy(others, answers)
    errors = {"sampling": math.sqrt(value * (1 - value) / len(answers))}
    return Result(value, ESTIMATOR, "of 1", settings, errors, parts={"majority": majority_rate(answers)})
