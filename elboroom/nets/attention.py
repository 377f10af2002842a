"""Attention over a memory: the states of a context that a decoder looks at before it says a word.

What a mask leaves out has no weight, whatever it holds, and columns that no context reaches are cut off first: a longer
padding changes no bit.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elboroom.core.batch import Memory

Kind = Literal["dot", "additive"]


class Attention(nn.Module):
    """h + tanh(W [h; c]), c the mean of the memory m_i by softmax over i of a score (after Luong et al. 2015).

    Theirs is without h before the sum. With it a net of small first weights learns from the first steps on; without, a
    decoder of trunk a was still at the frequencies of words after 400.

    dot       h . K m_i / sqrt(H)
    additive  v . tanh(Q h + K m_i)  (Bahdanau et al. 2015)
    """

    def __init__(self, kind: Kind, hidden: int, memory: int) -> None:
        super().__init__()
        self.keys = nn.Linear(memory, hidden, bias=False)
        self.query = nn.Linear(hidden, hidden, bias=False) if kind == "additive" else None
        self.score = nn.Linear(hidden, 1, bias=False) if kind == "additive" else None
        self.out = nn.Linear(hidden + memory, hidden)

    def prepared(self, memory: Memory) -> tuple[Tensor, ...]:
        """Keys, states and mask: what every look at this memory needs."""
        states, mask = memory.trimmed
        return self.keys(states), states, mask

    def forward(self, h: Tensor, keys: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        """(B, T, H) -> (B, T, H)."""
        weights = torch.softmax(self.scores(h, keys).masked_fill(~mask.unsqueeze(1), -torch.inf), -1)  # (B, T, L)
        seen: Tensor = h + torch.tanh(self.out(torch.cat([h, weights @ states], -1)))
        return seen

    def scores(self, h: Tensor, keys: Tensor) -> Tensor:
        """How well each word of the memory fits each query, (B, T, L)."""
        if self.query is None or self.score is None:
            return h @ keys.transpose(1, 2) / math.sqrt(h.shape[-1])
        joined = torch.tanh(self.query(h).unsqueeze(2) + keys.unsqueeze(1))  # (B, T, L, H)
        scores: Tensor = self.score(joined).squeeze(-1)
        return scores


class CrossAttention(nn.Module):
    """What the heads of a transformer find in a memory: queries of its own states, keys and values of the memory."""

    def __init__(self, width: int, heads: int, memory: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.query = nn.LayerNorm(width), nn.Linear(width, width)
        self.inputs, self.outputs = nn.Linear(memory, 2 * width), nn.Linear(width, width)

    def prepared(self, memory: Memory) -> tuple[Tensor, ...]:
        """Keys and values, (N, heads, L, width / heads) each, and the mask, (N, L)."""
        states, mask = memory.trimmed
        key, value = self.inputs(states).unflatten(-1, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return key, value, mask

    def forward(self, h: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        """(N, T, width) -> (N, T, width)."""
        query = self.query(self.norm(h)).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        found = F.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None, None])
        out: Tensor = self.outputs(found.transpose(1, 2).flatten(2))
        return out
