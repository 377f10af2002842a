"""Filters over windows of a sequence: what reads sentences, soft ones too, and sequences of states."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Windows(nn.Module):
    """The largest answer of each filter over the windows that begin at a word or state (Kim 2014), of one width or several.

    What is not there is zero, and no window begins there: longer padding changes nothing.
    """

    def __init__(self, features: int, widths: Sequence[int], filters: int) -> None:
        super().__init__()
        self.widest, self.outputs = max(widths), len(widths) * filters
        self.windows = nn.ModuleList(nn.Conv1d(features, filters, width) for width in widths)

    def forward(self, h: Tensor, there: Tensor) -> Tensor:
        """(B, T, F), where there is something (B, T) -> (B, outputs)."""
        padded = F.pad(h * there.unsqueeze(2), (0, 0, 0, self.widest - 1)).transpose(1, 2)  # (B, F, T + widest - 1)
        answers = (F.leaky_relu(window(padded))[..., : h.shape[1]] for window in self.windows)
        return torch.cat([found.masked_fill(~there.unsqueeze(1), -torch.inf).amax(2) for found in answers], 1)
