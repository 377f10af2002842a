"""A likelihood for posteriors that can be sampled and have no density: importance weights of a fitted proposal.

Any proposal r with a density gives a bound of log p(x), since only p(x, z) has to be exact. Here r is fitted to draws of
q(z|x), made a little wider than they are, and named in the estimator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, MultivariateNormal
from zuko.flows import MAF

from elboroom.core.draw import Batch, LatentModel
from elboroom.core.pairs import has_density
from elboroom.evaluate.number import Number
from elboroom.evaluate.split import Split
from elboroom.evaluate.weighted import Weigh, Weighted
from elboroom.families.ball import Wrapped
from elboroom.families.point import Point

Kind = Literal["gaussian", "flow"]
Fit = Callable[[Any], Distribution]

NAMES = {"gaussian": ("gaussian", "wrapped normal"), "flow": ("flow", "wrapped flow")}  # on R^d, on the ball
WIDER = 1.2  # scale of a proposal, in scales of q(z|x)


def is_sampled(split: Split) -> bool:
    """Whether q(z|x) is a law that can be sampled and has no density."""
    q = split.model.families[0]
    return not has_density(q) and not issubclass(q, Point)


def fitted(split: Split, samples: int = 100, kind: Kind = "gaussian") -> Number:
    """log (1/K) sum_k p(x|z_k) p(z_k) / r(z_k|x), z_k ~ r fitted to draws of q(z|x): a lower bound of log p(x)."""
    name = f"iw-{samples}, fitted {NAMES[kind][issubclass(split.model.families[0], Wrapped)]}"
    if not has_density(split.model.families[1]):
        return Number(None, "nats", name, reason="not a bound: p(z) has no density")
    fit = gaussian if kind == "gaussian" else flow(split.tuning or split.few(256))

    def weights_of(batch: Batch) -> Weigh:
        r = around(split.model.posterior(batch), fit)
        return lambda count: proposed(split.model, batch, r, count)

    return Weighted(split, samples, weights_of).number(name, scale=WIDER)


def proposed(model: LatentModel, batch: Batch, r: Any, samples: int) -> Tensor:
    """log p(x, z) / r(z|x) at draws of r, (K, B)."""
    z = r.rsample((samples,))
    nets = next(model.parameters()).dtype
    seen = z if isinstance(r, Wrapped) else z.to(nets)  # the ball has a precision of its own
    px, p = model.likelihood(seen, batch), model.prior(batch)
    weights: Tensor = px.log_prob(batch.x).double() + p.log_prob(seen).double() - r.log_prob(z)
    return weights


def around(q: Any, fit: Fit) -> Any:
    """The proposal for q(z|x): on the ball it is wrapped, fitted to the tangent vectors."""
    return Wrapped(q.ball, q.loc, fit(q.tangent)) if isinstance(q, Wrapped) else fit(q)


def _draws(q: Any) -> Tensor:
    """Draws of q(z|x), so many that a covariance can be read off them, (S, B, J)."""
    drawn: Tensor = q.sample((max(256, 32 * q.event_shape[-1]),)).double()
    return drawn


def gaussian(q: Any) -> MultivariateNormal:
    """N(m, (1.2)^2 S) of the mean and covariance of draws of q(z|x), for every x."""
    z = _draws(q)
    mean = z.mean(0)
    left = z - mean
    cov = torch.einsum("sbi,sbj->bij", left, left) / (len(z) - 1)
    floor = 1e-6 * cov.diagonal(dim1=-2, dim2=-1).mean(-1) + 1e-12  # draws that all but agree have a density too
    root = torch.linalg.cholesky(cov + floor[:, None, None] * torch.eye(cov.shape[-1]).to(cov))
    return MultivariateNormal(mean, scale_tril=WIDER * root, validate_args=False)


class Scaled(Distribution):
    """The law of m + 1.2 s w, w from a flow."""

    def __init__(self, w: Any, mean: Tensor, std: Tensor) -> None:
        self.w, self.loc, self.scale = w, mean, WIDER * std
        super().__init__(mean.shape[:-1], mean.shape[-1:], validate_args=False)

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
        for batch in split.batches():
            q = split.model.posterior(batch)
            z = _draws(q.tangent if isinstance(q, Wrapped) else q)
            mean, std = _moments(z)
            means.append(mean)
            stds.append(std)
            draws.append(((z - mean) / std)[:each].transpose(0, 1))
    given = torch.cat([torch.cat(means), torch.cat(stds).log()], 1)  # (n, 2J)
    w = torch.cat(draws)  # (n, S, J)
    centre, spread = given.mean(0), given.std(0) + 1e-3
    with torch.random.fork_rng():
        torch.manual_seed(split.seed)
        net = _trained((given - centre) / spread, w, steps)

    def fit(q: Any) -> Distribution:
        mean, std = _moments(_draws(q))
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
