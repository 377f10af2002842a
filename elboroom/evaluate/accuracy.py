"""Accuracy: how often the heads of a model tell their labels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch

from elboroom.core.problem import Problem
from elboroom.evaluate.registry import Quantity, family, named
from elboroom.evaluate.result import Result
from elboroom.terms.labels import Classifier

if TYPE_CHECKING:
    from elboroom.evaluate.subject import Subject


@family("accuracy", "labels", {"accuracy": Quantity("Label told by the head", "high")}, by_name=True)
@torch.no_grad()
def of_run(subject: Subject, split: str | None = None) -> dict[str, Result]:
    """How often the head of a model tells the right label from the mean of q(z|x), beside the share of the commonest."""
    run = subject.run
    head = next((head for head in run.model.heads.values() if isinstance(head, Classifier)), None)
    if head is None:
        raise Problem("accuracy is of a model with a head that tells a label: train one with probe --base RUN")
    of, right, weight = run.split(split, None), list[np.ndarray](), head.weight
    for batch in of.batches():
        assert batch.y is not None
        told = head(run.model.q(batch).mean.to(weight)).argmax(-1)
        right.append((told == batch.y[:, head.column]).cpu().numpy())
    value = float(np.mean(np.concatenate(right)))
    labels = run.data.labels[:, head.column]
    commonest = np.bincount(labels[run.split("train", None).rows]).argmax()
    majority = float(np.mean(labels[of.rows] == commonest))
    errors = {"sampling": math.sqrt(value * (1 - value) / len(of.rows))}
    settings = of.settings | {"label": head.field}
    result = Result(value, "linear head on the mean of q(z|x)", "of 1", settings, errors, parts={"majority": majority})
    return named({"accuracy": result})
