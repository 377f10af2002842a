"""Terms of labels: how well a head tells them from codes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elboroom.core.draw import Draw
from elboroom.core.objective import Term
from elboroom.core.problem import Problem


class Classifier(nn.Linear):
    """p(y|z), its logits linear in z: a head that knows its label by name, and by its column among the labels of the data."""

    def __init__(self, codes: int, classes: int, field: str, column: int) -> None:
        super().__init__(codes, classes)
        self.field, self.column = field, column


def label_nll(head: Classifier, means: bool = False) -> Term:
    """-E_q log p(y|z) of the label that a head tells, or at the mean of q(z|x) alone, (B,)."""

    def value(draw: Draw) -> Tensor:
        logits, y = _read(head, draw, means)
        log_p = torch.log_softmax(logits, -1)  # (K, B, classes)
        return -log_p.gather(-1, y.expand(len(log_p), -1).unsqueeze(-1)).squeeze(-1).mean(0)

    return Term("label_nll", value)


def accuracy(head: Classifier, means: bool = False) -> Term:
    """How often the most likely label is the right one: no nats, and so for the log alone, (B,)."""

    def value(draw: Draw) -> Tensor:
        logits, y = _read(head, draw, means)
        return (logits.argmax(-1) == y).float().mean(0)

    return Term("accuracy", value)


def _read(head: Classifier, draw: Draw, means: bool) -> tuple[Tensor, Tensor]:
    """The logits of a head at every sample, or at the mean, (K, B, classes), and the labels themselves, (B,)."""
    y = draw.batch.y
    if y is None or y.shape[1] <= head.column:
        raise Problem(f"there is no label '{head.field}' in this data to be told")
    logits: Tensor = draw.keep((head, means), lambda: head(draw.q.mean.unsqueeze(0) if means else draw.z))
    return logits, y[:, head.column]
