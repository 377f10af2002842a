"""The guide: a classifier of the style of sentences that reads words, and soft words too."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elboroom.core.vocabulary import PAD
from elboroom.nets.dropout import kept
from elboroom.nets.windows import Windows

WIDTH, FILTERS, DROPOUT = 5, 100, 0.2  # as published


class Guide(nn.Module):
    """log q(style | words): windows of 5 words, 100 filters, the largest answer of each, dropout 0.2, a linear layer.

    It knows its label by name, and by its column among the labels of the data.
    """

    def __init__(self, vocabulary: int, styles: int, field: str, column: int, embed: int = 256) -> None:
        super().__init__()
        self.field, self.column = field, column
        self.embedding = nn.Embedding(vocabulary, embed)
        self.windows = Windows(embed, (WIDTH,), FILTERS)
        self.out = nn.Linear(FILTERS, styles)

    def forward(self, x: Tensor) -> Tensor:
        """Of sentences as rows of ids, <s> left out: (B, L) -> (B, styles)."""
        words = x[:, 1:]
        return self._read(self.embedding(words), words != PAD)

    def soft(self, p: Tensor, there: Tensor) -> Tensor:
        """Of soft words, probabilities in the place of each word that is there: (B, T, V), (B, T) -> (B, styles)."""
        return self._read(p @ self.embedding.weight, there)

    def _read(self, words: Tensor, there: Tensor) -> Tensor:
        seen = self.windows(words, there)
        if self.training:
            seen = seen * kept(len(seen), 1, FILTERS, DROPOUT, seen).squeeze(1)
        return torch.log_softmax(self.out(seen), 1)
