"""Critics of the states in which a decoder reads real text and writes its own, one critic a style."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elboroom.core import distributed
from elboroom.nets.recurrent import RecurrentDecoder
from elboroom.nets.unrolled import States, free_running, steps_of, teacher_forced
from elboroom.nets.windows import Windows

WIDTHS, FILTERS = (1, 2, 3, 4, 5), 128  # of a critic, as published
FEWEST = 1e-9  # rows of a style, of which the mean is taken; where there is none, it is 0


class Aligned(NamedTuple):
    """The states of a batch as it is read, and as it is written in another style."""

    real: States  # constants
    style: Tensor  # (B,)
    written: States
    other: Tensor  # the next style, of two the other one, (B,)


class Critics(nn.Module):
    """One critic a style: the logit that a sequence of states was read off real text of that style."""

    def __init__(self, hidden: int, styles: int, field: str, column: int) -> None:
        super().__init__()
        self.styles, self.field, self.column = styles, field, column
        self.windows = nn.ModuleList(Windows(hidden, WIDTHS, FILTERS) for _ in range(styles))
        self.out = nn.ModuleList(nn.Linear(len(WIDTHS) * FILTERS, 1) for _ in range(styles))

    def forward(self, states: States, which: Tensor) -> Tensor:
        """The answer to each row by the critic of the style that is named for it, (B,) -> (B,)."""
        found = states.h.new_zeros(len(which))
        for style, (windows, out) in enumerate(zip(self.windows, self.out, strict=True)):
            (rows,) = (which == style).nonzero(as_tuple=True)
            if len(rows):
                found = found.index_copy(0, rows, out(windows(*states.of(rows))).squeeze(1))
        return found

    def per_style(self, values: Tensor, which: Tensor) -> Tensor:
        """The mean of values over the rows of each style, in the global batch, (styles,)."""
        sums = distributed.mean(values.new_zeros(self.styles).index_add(0, which, values))
        counts = distributed.mean(torch.bincount(which, minlength=self.styles).to(values))
        return sums / counts.clamp_min(FEWEST)

    def aligned(self, decoder: RecurrentDecoder, z: Tensor, x: Tensor, style: Tensor, temperature: float) -> Aligned:
        """A batch as the decoder reads it, and as it writes it in the next style."""
        other = (style + 1) % self.styles
        with torch.no_grad():
            real = teacher_forced(decoder, z, F.one_hot(style, self.styles).to(z), x)
        told = F.one_hot(other, self.styles).to(z)
        return Aligned(real, style, free_running(decoder, z, told, steps_of(x, z), temperature), other)

    def losses(self, states: Aligned) -> Tensor:
        """-log D_k(real states of style k) - log (1 - D_k(states written in style k)), each a mean, (styles,)."""
        real = self.per_style(F.softplus(-self(states.real, states.style)), states.style)
        written = self(states.written.detached(), states.other)
        return real + self.per_style(F.softplus(written), states.other)
