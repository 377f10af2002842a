"""Terms of what a code and a condition tell together: the words of a sentence in no order, or a label."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elboroom.core.draw import Draw
from elboroom.core.objective import Term
from elboroom.core.problem import Problem
from elboroom.core.vocabulary import PAD


class Told(nn.Module):
    """Logits of what is told by z and c side by side, through a hidden layer."""

    def __init__(self, codes: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(codes, hidden), nn.Tanh(), nn.Linear(hidden, outputs))

    def forward(self, draw: Draw) -> Tensor:
        """At every sample of z, (K, B, outputs)."""
        c = draw.seen.u
        given = [] if c is None else [c.to(draw.z).expand(len(draw.z), *c.shape)]
        logits: Tensor = self.net(torch.cat([draw.z, *given], -1))
        return logits


def bow_nll(head: Told) -> Term:
    """-E_q sum_t log softmax(g(z, c))_{x_t} over words and </s>: independent draws from one law, (B,)."""

    def value(draw: Draw) -> Tensor:
        words = draw.batch.x[:, 1:]  # (B, T)
        log_p = torch.log_softmax(head(draw), -1)  # (K, B, V)
        found = log_p.gather(-1, words.expand(len(log_p), *words.shape))
        return -found.masked_fill(words == PAD, 0.0).sum(-1).mean(0)

    return Term("bow_nll", value)


def told_nll(head: Told, column: int, name: str) -> Term:
    """-E_q log p(y|z, c) of the label in a column of those of the data, (B,)."""

    def value(draw: Draw) -> Tensor:
        if draw.batch.y is None or draw.batch.y.shape[1] <= column:
            raise Problem(
                f"{name} needs the label that the model was trained to tell, and these examples have none; give data "
                "with labels"
            )
        log_p = torch.log_softmax(head(draw), -1)  # (K, B, classes)
        y = draw.batch.y[:, column].expand(len(log_p), -1)
        return -log_p.gather(-1, y.unsqueeze(-1)).squeeze(-1).mean(0)

    return Term(name, value)
