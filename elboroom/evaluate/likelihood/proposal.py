"""A likelihood for posteriors that can be sampled and have no density: importance weights of a fitted proposal.

Any proposal r with a density gives a bound of log p(x), since only p(x, z) has to be exact. Here r is fitted to draws of
q(z|x), made a little wider than they are, and named in the estimator. A tenth of the draws is of the prior: where q(z|x)
has all but shrunk to a point, r alone would say more of itself than of the model.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.distributions import Distribution
from zuko.flows import MAF

from elboroom.core.batch import Batch
from elboroom.core.kl import has_density
from elboroom.core.law import Law, capabilities, law_of
from elboroom.evaluate.likelihood.dealt import Weigh
from elboroom.evaluate.likelihood.weighted import Weighted
from elboroom.evaluate.result import Result
from elboroom.evaluate.split import Split
from elboroom.families.fitted import WIDER, Fit, around, gaussian, of_prior, proposed, some_draws

Kind = Literal["gaussian", "flow"]

NAMES = {"gaussian": ("gaussian", "wrapped normal"), "flow": ("flow", "wrapped flow")}  # on R^d, on the ball


def fitted(split: Split, samples: int = 100, kind: Kind = "gaussian", until: float | None = None) -> Result:
    """log (1/K) sum_k p(x|z_k) p(z_k) / m(z_k|x), z_k ~ m = 0.9 r + 0.1 p(z), r fitted to draws of q(z|x): a lower bound of
    log p(x)."""
    on_ball = capabilities(split.model.families[0]).space == "ball"

    def name(samples: int) -> str:
        return f"iw-{samples}, fitted {NAMES[kind][on_ball]}" + " + prior" * bool(of_prior(samples))

    if not has_density(split.model.families[1]):
        return Result(None, name(samples), "nats", reason="not a bound: p(z) has no density")
    fit = gaussian if kind == "gaussian" else flow(split.tuning or split.few(256))

    def weights_of(batch: Batch) -> Weigh:
        r = around(split.model.q(batch), fit)
        return lambda count: proposed(split.model, batch, r, count)

    found = Weighted(split, samples, weights_of, until)
    return found.number(name(found.samples), scale=WIDER)


class Scaled(Law):
    """The law of m + 1.2 s w, w from a flow."""

    def __init__(self, w: Any, mean: Tensor, std: Tensor) -> None:
        self.w, self.loc, self.scale = w, mean, WIDER * std
        super().__init__(mean.shape[:-1], mean.shape[-1:])

    @property
    def mean(self) -> Tensor:
        return self.loc

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        z: Tensor = self.loc + self.scale * self.w.rsample(sample_shape)
        return z

    def log_prob(self, z: Tensor) -> Tensor:
        log_prob: Tensor = self.w.log_prob((z - self.loc) / self.scale) - self.scale.log().sum(-1)
        return log_prob


def flow(split: Split, steps: int = 250, each: int = 64) -> Fit:
    """A small flow of (z - m) / s given (m, log s), by maximum likelihood on draws of q(z|x) for the rows of a split."""
    means, stds, draws = [], [], []
    with torch.no_grad():
        for batch in split.batches(64):
            q = split.model.q(batch)
            z = some_draws(law_of(type(q)).unwrapped(q))
            mean, std = _moments(z)
            means.append(mean)
            stds.append(std)
            draws.append(((z - mean) / std)[:each].transpose(0, 1))
    given = torch.cat([torch.cat(means), torch.cat(stds).log()], 1)  # (n, 2J)
    w = torch.cat(draws)  # (n, S, J)
    centre, spread = given.mean(0), given.std(0, correction=0) + 1e-3
    with torch.random.fork_rng():
        torch.manual_seed(split.seed)
        net = _trained((given - centre) / spread, w, steps)

    def fit(q: Any) -> Distribution:
        mean, std = _moments(some_draws(q))
        return Scaled(net((torch.cat([mean, std.log()], -1) - centre) / spread), mean, std)

    return fit


def _moments(z: Tensor) -> tuple[Tensor, Tensor]:
    return z.mean(0), z.std(0) + 1e-6


def _trained(given: Tensor, w: Tensor, steps: int, rows: int = 256) -> nn.Module:
    """Four affine couplings, in double precision."""
    net: nn.Module = MAF(w.shape[-1], given.shape[1], transforms=4, passes=2, hidden_features=(32, 32)).to(w)
    optimiser = torch.optim.Adam(net.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    with torch.enable_grad():
        for _ in range(steps):
            i, s = torch.randint(len(w), (rows,)), torch.randint(w.shape[1], (rows,))
            loss = -net(given[i]).log_prob(w[i, s]).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return net.requires_grad_(False)
