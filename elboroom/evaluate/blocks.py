"""Blocks: how well a label is told from each named part of z by a linear classifier, beside the majority rate."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from elboroom.core.problem import Problem
from elboroom.evaluate.registry import Quantity, Results, family, named
from elboroom.evaluate.result import Result
from elboroom.latent.attributes import majority_rate

if TYPE_CHECKING:
    from elboroom.evaluate.subject import Subject

MOST = 10_000  # examples of either split
GIVES = {"block-*": Quantity("Accuracy of a label from the block *", "neither")}


@family("blocks", "labels", GIVES, by_name=True)
def of_run(subject: Subject, split: str | None = None, label: str = "") -> Results:
    """Accuracy of a linear probe of a label on every block of z and on all of it, on the test split."""
    run = subject.run
    blocks, styles = run.model.blocks, run.styles()
    if len(blocks) < 2:
        raise Problem("this model has no blocks: z is one vector")
    name = label or next(iter(styles), "") or next(iter(run.data.about.labels), "")
    if name not in run.data.about.labels:
        raise Problem(f"{run.data.about.name} has no label '{name}' to be told")
    part = run.rows(split)[0]
    if part == "train":
        raise Problem(
            "the probe is learnt from the training split and tested on another; there is none, so set --split"
        )
    column = list(run.data.about.labels).index(name)
    learn, test = (run.split(which, MOST) for which in ("train", part))
    y, answers = (run.data.labels[some.rows, column] for some in (learn, test))
    codes, others = (some.codes[0].double().numpy() for some in (learn, test))
    results = {}
    for block, where in blocks.items():
        probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(codes[:, where], y)
        value = float((probe.predict(others[:, where]) == answers).mean())
        errors = {"sampling": math.sqrt(value * (1 - value) / len(answers))}
        chance = majority_rate(answers)
        how = f"logistic regression of {name} on means of q(z|x); chance {chance:.3f}"
        results[f"block-{block}"] = Result(
            value, how, "of 1", test.settings | {"label": name}, errors, parts={"majority": chance}
        )
    return named(results)
