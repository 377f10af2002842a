"""Terms of labels: how well a head tells them from codes, and how unsure it is."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from elboroom.core import distributed
from elboroom.core.draw import Draw
from elboroom.core.objective import Term
from elboroom.core.problem import Problem

SMOOTHING = 0.1  # of the targets of an adversary (John et al. 2019)


class Classifier(nn.Linear):
    """p(y|z), its logits linear in z: a head that knows its label by name, and by its column among the labels of the data."""

    def __init__(self, codes: int, classes: int, field: str, column: int) -> None:
        super().__init__(codes, classes)
        self.field, self.column = field, column


class DeepClassifier(nn.Sequential):
    """The same through a hidden layer: what an adversary is given."""

    def __init__(self, codes: int, classes: int, field: str, column: int, hidden: int = 128) -> None:
        super().__init__(nn.Linear(codes, hidden), nn.LeakyReLU(), nn.Linear(hidden, classes))
        self.field, self.column = field, column


class CodeClassifier(nn.Module):
    """p(y|z) through a wide hidden layer, some of which is left out as it learns: what edits of codes ask (Mai et al. 2020)."""

    def __init__(
        self, codes: int, classes: int, field: str, column: int, hidden: int = 512, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.field, self.column, self.dropout = field, column, dropout
        self.hidden, self.out = nn.Linear(codes, hidden), nn.Linear(hidden, classes)

    def forward(self, z: Tensor) -> Tensor:
        h = torch.relu(self.hidden(z))
        if self.training and self.dropout:  # drawn for the global batch
            h = h * (distributed.uniform(tuple(h.shape), h, h.dim() - 2) >= self.dropout) / (1 - self.dropout)
        logits: Tensor = self.out(h)
        return logits


Teller = Classifier | DeepClassifier | CodeClassifier  # heads that know their label


class Head(Protocol):
    """What reads codes and gives logits."""

    def __call__(self, z: Tensor) -> Tensor: ...


def label_nll(
    head: Teller,
    means: bool = False,
    constant: bool = False,
    smoothing: float = 0.0,
    twice: bool = False,
    name: str = "label_nll",
) -> Term:
    """-E_q log p(y|z) of the label that a head tells, or at the mean of q(z|x) alone, (B,).

    constant: codes are read as constants, so that nothing reaches the encoder: what an adversary descends.
    smoothing: how much of the target is spread over all classes.
    twice: the softmax of a softmax, which some released code has.
    """

    def value(draw: Draw) -> Tensor:
        logits, y = _read(head, draw, means, constant)
        log_p = torch.log_softmax(logits.softmax(-1) if twice else logits, -1)  # (K, B, classes)
        told = log_p.gather(-1, y.expand(len(log_p), -1).unsqueeze(-1)).squeeze(-1)
        return -((1 - smoothing) * told + smoothing * log_p.mean(-1) if smoothing else told).mean(0)

    return Term(name, value)


def accuracy(head: Teller, means: bool = False) -> Term:
    """How often the most likely label is the right one: no nats, and so for the log alone, (B,)."""

    def value(draw: Draw) -> Tensor:
        logits, y = _read(head, draw, means)
        return (logits.argmax(-1) == y).float().mean(0)

    return Term("accuracy", value)


def entropy(head: Head, means: bool = False, name: str = "entropy") -> Term:
    """H of what a head tells from codes, -sum p log p, at most the log of the number of classes, (B,).

    An encoder that maximises it hides from the head what the head is after; the head itself is another player's.
    """

    def value(draw: Draw) -> Tensor:
        log_p = torch.log_softmax(logits_of(head, draw, means), -1)
        some = torch.where(log_p == -torch.inf, 0.0, log_p)  # of what cannot be, p log p is 0
        return -(log_p.exp() * some).sum(-1).mean(0)

    return Term(name, value)


def logits_of(head: Head, draw: Draw, means: bool, constant: bool = False) -> Tensor:
    """The logits of a head at every sample, or at the mean, (K, B, classes)."""

    def read() -> Tensor:
        codes: Tensor = draw.q.mean.unsqueeze(0) if means else draw.z
        return head(codes.detach() if constant else codes)

    logits: Tensor = draw.keep((head, means, constant), read)
    return logits


def _read(head: Teller, draw: Draw, means: bool, constant: bool = False) -> tuple[Tensor, Tensor]:
    """The logits of a head, (K, B, classes), and the labels themselves, (B,)."""
    y = draw.batch.y
    if y is None or y.shape[1] <= head.column:
        raise Problem(f"there is no label '{head.field}' in this data to be told")
    return logits_of(head, draw, means, constant), y[:, head.column]
