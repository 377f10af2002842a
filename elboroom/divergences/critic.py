"""A small critic, trained on one half of two samples and read on the other: what it gives there is a lower bound."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from elboroom.core.problem import Problem
from elboroom.divergences.samples import at_least, pair
from elboroom.divergences.variational import FDivergence, bound, divergence

LEAST = 20  # rows of a sample of which half trains a critic
VALIDATION = 0.2  # share of the training half on which the best step is chosen


@dataclass(frozen=True)
class Estimate:
    """A divergence with its standard error, unit and settings."""

    value: float
    error: float
    divergence: str
    unit: str
    estimator: str
    settings: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The same as a plain dict."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.error:.2g} {self.unit}".rstrip()


@dataclass(frozen=True)
class Training:
    """How a critic is trained."""

    hidden: int = 64
    steps: int = 1000
    lr: float = 2e-3
    batch_size: int = 256
    seed: int = 0


class Critic(nn.Module):
    """d - hidden - hidden - 1 with SiLU, on standardised rows; its weights depend on the generator alone.

    Its output stays where neither T nor f*(T) is more than the number of its training rows: one new row can then move
    a mean of as many by one at most, and a clipped critic gives a bound all the same.
    """

    centre: Tensor
    spread: Tensor

    def __init__(self, row: FDivergence, rows: Tensor, hidden: int, noise: torch.Generator) -> None:
        super().__init__()
        spread = rows.std(0)
        self.register_buffer("centre", rows.mean(0))
        self.register_buffer("spread", torch.where(spread > 0, spread, torch.ones_like(spread)))
        self.limits = row.limits(len(rows))
        sizes = (rows.shape[1], hidden, hidden, 1)
        self.weights = nn.ParameterList(torch.randn(i, o, generator=noise) / math.sqrt(i) for i, o in pairwise(sizes))
        self.biases = nn.ParameterList(torch.zeros(o) for o in sizes[1:])

    def forward(self, x: Tensor) -> Tensor:
        x = (x - self.centre) / self.spread  # (B, d)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = nn.functional.silu(x @ weight + bias)  # (B, hidden)
        v: Tensor = (x @ self.weights[-1] + self.biases[-1]).squeeze(-1)  # (B,)
        return v.clamp(*self.limits)


def train(row: FDivergence, p: Tensor, q: Tensor, how: Training) -> Critic:
    """The critic that ascends the bound on rows of p and q, at the step that is best on a fifth of them left out."""
    noise = torch.Generator().manual_seed(how.seed)
    p, held_p = _split(p.float(), VALIDATION, noise)
    q, held_q = _split(q.float(), VALIDATION, noise)
    critic = Critic(row, torch.cat([p, q]), how.hidden, noise)
    optimiser = torch.optim.Adam(critic.parameters(), how.lr)
    best, kept = -math.inf, _weights(critic)
    for step in range(1, how.steps + 1):
        xp, xq = (x[torch.randint(len(x), (how.batch_size,), generator=noise)] for x in (p, q))
        optimiser.zero_grad()
        loss = -bound(row, critic(xp), critic(xq))
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(critic.parameters(), 5.0)  # chi^2 and KL have heavy tails
        optimiser.step()
        if step % 25 == 0 or step == how.steps:
            with torch.no_grad():
                value = float(bound(row, critic(held_p), critic(held_q)))
            if value > best:
                best, kept = value, _weights(critic)
    critic.load_state_dict(kept)
    return critic


@torch.no_grad()
def read(row: FDivergence, critic: Critic, p: Tensor, q: Tensor) -> tuple[float, float]:
    """The bound on rows that the critic has not seen, and its standard error."""
    t, dual = row.output(critic(p.float())).double(), row.dual(critic(q.float())).double()
    value = float(t.mean() - dual.mean())
    error = math.sqrt(float(t.var() / len(t) + dual.var() / len(dual)))
    if not math.isfinite(value + error):
        raise Problem(
            f"the bound of {row.title} is not finite on these samples; try jsd or hellinger, which are bounded"
        )
    return value, error


def estimate(
    a: ArrayLike | Tensor,
    b: ArrayLike | Tensor,
    name: str = "kl",
    how: Training | None = None,
    names: tuple[str, str] = ("A", "B"),
) -> Estimate:
    """D_f(A||B), a lower bound: a critic is trained on one half of the rows and read on the other."""
    row, how = divergence(name), how or Training()
    at_least(how.steps, 1, "the number of steps")
    x, y = pair(a, b, names, LEAST)
    noise = torch.Generator().manual_seed(how.seed)
    (x, held_x), (y, held_y) = _split(x, 0.5, noise), _split(y, 0.5, noise)
    value, error = read(row, train(row, x, y, how), held_x, held_y)
    settings = {**asdict(how), "trained_on": [len(x), len(y)], "read_on": [len(held_x), len(held_y)]}
    return Estimate(value, error, row.name, row.unit, "variational bound, held out", settings)


def _split(x: Tensor, share: float, noise: torch.Generator) -> tuple[Tensor, Tensor]:
    """The rows in random order, and a share of them apart."""
    x = x[torch.randperm(len(x), generator=noise)]
    count = round(share * len(x))
    return x[count:], x[:count]


def _weights(critic: Critic) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in critic.state_dict().items()}
