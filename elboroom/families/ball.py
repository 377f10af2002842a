"""The wrapped normal on the Poincare ball: as posterior, as prior, and with any law of the tangent vector in its place.

Densities are with respect to the volume of the ball, that of q and that of p alike, so that it cancels in their ratio.
Samples stay in double precision; `Gyroplanes` and critics take them from there to the precision of the nets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from elboroom.core.batch import Batch
from elboroom.core.law import Law
from elboroom.families.gaussian import Gaussian
from elboroom.families.implicit import ImplicitPosterior, LinearImplicitPosterior
from elboroom.geometry.ball import Ball


class Wrapped(Law):
    """The law of exp_mu((lambda_0 / lambda_mu) v), v from a law of R^d: log q = log q_v(v) - d log 2 - (d - 1) log(sinh r / r).

    r = 2 sqrt(c) |v|. With v ~ N(0, S) this is the wrapped normal. The v of the last sample is remembered, that of another z
    is computed.
    """

    has_rsample = True
    space = "ball"

    def __init__(self, ball: Ball, loc: Tensor, tangent: Any, features: Tensor | None = None) -> None:
        self.ball, self.loc, self.tangent, self.features = ball, loc.double(), tangent, features
        self._last: tuple[Tensor, Tensor] | None = None
        super().__init__(loc.shape[:-1], loc.shape[-1:])

    @property
    def mean(self) -> Tensor:
        """The image of the mean of v, mu itself for a wrapped normal; it stands for a mean that has no closed form."""
        return self.ball.clip(self.ball.wrap(self.tangent.mean, self.loc))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        v = self.tangent.rsample(sample_shape).double()
        self._last = self.ball.wrap(v, self.loc), v
        return self._last[0]

    def flat(self, z: Tensor) -> Tensor:
        """log_0(z), in which points of the boundary are as far apart as they are."""
        return self.ball.log0(self.ball.inside(z))

    def unwrapped(self) -> Any:
        """The law of the tangent vectors."""
        return self.tangent

    def around(self, fit: Callable[[Any], Distribution]) -> Wrapped:
        """The same centre with what `fit` makes of the tangent vectors."""
        return Wrapped(self.ball, self.loc, fit(self.tangent))

    def log_prob(self, z: Tensor) -> Tensor:
        last = self._last
        v = last[1] if last is not None and last[0] is z else self.ball.unwrap(z, self.loc)
        log_prob: Tensor = self.tangent.log_prob(v) - self.ball.log_volume(v)
        return log_prob


class WrappedImplicit(Wrapped):
    """The same with a v that a net makes of noise: samples without a density."""

    has_density = False


def normal(ball: Ball, loc: Tensor, logvar: Tensor) -> Wrapped:
    """The wrapped normal of v ~ N(0, diag(exp(logvar)))."""
    return Wrapped(ball, loc, Gaussian(torch.zeros_like(loc), logvar.double().expand_as(loc)))


class WrappedPosterior(nn.Module):
    """q(z|x): mu = exp_0(F(x)), v ~ N(0, sigma^2), both read off one net that emits (F, log sigma^2)."""

    family = Wrapped

    def __init__(self, net: nn.Module, ball: Ball) -> None:
        super().__init__()
        self.net, self.ball = net, ball

    def law(self, out: Tensor) -> Wrapped:
        """q(z|x) of what the net emits."""
        centre, logvar = out.chunk(2, dim=-1)
        return normal(self.ball, self.ball.centre(centre), logvar)

    def forward(self, batch: Batch) -> Wrapped:
        return self.law(self.net(batch.x, batch.u))


class WrappedImplicitPosterior(nn.Module):
    """q(z|x): mu = exp_0(F(x)), v = G(h(x), noise), G linear or a net; the net of x emits (F, h), both features of q."""

    def __init__(self, net: nn.Module, ball: Ball, features: int, noise: int, latent: int, linear: bool) -> None:
        super().__init__()
        make = LinearImplicitPosterior if linear else ImplicitPosterior
        self.net, self.ball, self.sizes, self.features = net, ball, [latent, features], latent + features
        self.tangent = make(nn.Identity(), features, noise, latent)
        self.family = Wrapped if linear else WrappedImplicit

    def law(self, out: Tensor) -> Wrapped:
        """q(z|x) of what the net emits."""
        centre, h = out.split(self.sizes, dim=-1)  # type: ignore[no-untyped-call]
        return self.family(self.ball, self.ball.centre(centre), self.tangent.law(h), out)

    def forward(self, batch: Batch) -> Wrapped:
        return self.law(self.net(batch.x, batch.u))


class WrappedPrior(nn.Module):
    """p(z): the wrapped normal of N(0, I) at the origin."""

    family = Wrapped
    zero: Tensor

    def __init__(self, latent: int, ball: Ball) -> None:
        super().__init__()
        self.ball = ball
        self.register_buffer("zero", torch.zeros(latent), persistent=False)

    def forward(self, batch: Batch) -> Wrapped:
        return normal(self.ball, self.zero.double(), self.zero)


class ConditionalWrapped(nn.Module):
    """p(z|u): a wrapped normal whose centre and variances are linear in a one-hot u; starts as that of N(0, I)."""

    family = Wrapped
    of_labels = True

    def __init__(self, latent: int, given: int, ball: Ball) -> None:
        super().__init__()
        self.ball, self.table = ball, nn.Linear(given, 2 * latent)
        nn.init.zeros_(self.table.weight)
        nn.init.zeros_(self.table.bias)

    def forward(self, batch: Batch) -> Wrapped:
        centre, logvar = self.table(batch.u).chunk(2, dim=-1)
        return normal(self.ball, self.ball.centre(centre), logvar)
