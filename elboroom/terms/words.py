"""Terms of the bag of words: which words of content a sentence has, told from its code."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elboroom.core.draw import Draw
from elboroom.core.objective import Term
from elboroom.terms.labels import logits_of


class Bag(nn.Module):
    """p(w|z) over the words of content: linear in z, or through a hidden layer; other words have no probability.

    `content` says which tokens are words of content: a buffer, so that a run has it without its data.
    """

    content: Tensor  # (V,)

    def __init__(self, codes: int, content: Tensor, hidden: int = 0, leaky: bool = False) -> None:
        super().__init__()
        deep = [nn.Linear(codes, hidden), nn.LeakyReLU()] if hidden else []
        ends = [nn.LeakyReLU()] if leaky else []  # over the logits, as released code has it
        self.net = nn.Sequential(*deep, nn.Linear(hidden or codes, len(content)), *ends)
        self.register_buffer("content", content)

    def forward(self, z: Tensor) -> Tensor:
        logits: Tensor = self.net(z)
        return logits.masked_fill(~self.content, -torch.inf)

    def shares(self, x: Tensor) -> Tensor:
        """Of the words of content of each sentence, the share that each word has, (B, V); zero where there are none."""
        counts = torch.zeros(len(x), len(self.content), device=x.device)
        counts.scatter_add_(1, x, torch.ones_like(x, dtype=counts.dtype))
        counts *= self.content
        return counts / counts.sum(1, keepdim=True).clamp_min(1.0)


def bag_nll(
    head: Bag,
    means: bool = False,
    constant: bool = False,
    smoothing: float = 0.0,
    twice: bool = False,
    name: str = "bag_nll",
) -> Term:
    """-E_q sum_w share(w) log p(w|z), the shares those of the sentence among words of content; 0 where it has none, (B,).

    constant, smoothing, twice: as of `label_nll`.
    """

    def value(draw: Draw) -> Tensor:
        logits = logits_of(head, draw, means, constant)  # (K, B, V)
        log_p = torch.log_softmax(logits, -1)
        if twice:
            log_p = torch.log_softmax(log_p.exp().masked_fill(~head.content, -torch.inf), -1)
        shares: Tensor = draw.keep(head, lambda: head.shares(draw.batch.x))
        if smoothing:
            spread = head.content / head.content.sum().clamp_min(1)
            shares = (1 - smoothing) * shares + smoothing * spread * (shares.sum(1, keepdim=True) > 0)
        return -(shares * log_p.masked_fill(~head.content, 0.0)).sum(-1).mean(0)

    return Term(name, value)
