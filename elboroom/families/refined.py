"""A Gaussian posterior refined for each example by gradient steps on its own (mu, log sigma^2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.freeze import freeze
from elboroom.core.kl import kl_divergence, per_example
from elboroom.core.objective import Constant, Weight
from elboroom.core.reference import Reference
from elboroom.families.gaussian import Gaussian, require_gaussian, widened

Through = Literal["exact", "difference", "nothing"]
Loss = Callable[[Tensor, Tensor], Tensor]  # (mu, log sigma^2) -> nats, (B,)


class Origin(nn.Module):
    """q(z|x) = N(0, I) for every x: where refinement starts without an encoder."""

    family = Gaussian
    zero: Tensor

    def __init__(self, latent: int) -> None:
        super().__init__()
        self.register_buffer("zero", torch.zeros(latent), persistent=False)

    def forward(self, batch: Batch) -> Gaussian:
        zero = self.zero.expand(len(batch.x), -1)
        return Gaussian(zero, zero)


class Refined(nn.Module):
    """q(z|x) at lambda_K, lambda = (mu, log sigma^2), lambda_0 that of another posterior; K = 0 is that one.

    lambda_{k+1} = lambda_k - lr v_k with v_k = momentum v_{k-1} + g_k and g_k the gradient of nll + w kl at one sample,
    of noise of its own, its norm for mu and for log sigma^2 of an example at most `clip`. No example sees another.

    through: how a gradient comes back from lambda_K to lambda_0, decoder and prior: by differentiating every step once
    more (exact), by the same along a central difference (for kernels that have no second derivative), or not at all.
    In evaluation w is 1, the noise is always the same, and lambda_K is a constant. The lambda_0 of a q is beside it, as
    `q.first`.
    """

    family = Gaussian

    def __init__(
        self,
        first: nn.Module,
        prior: nn.Module,
        likelihood: nn.Module,
        weight: Weight | float = 1.0,
        steps: int = 10,
        lr: float = 0.03,
        momentum: float = 0.5,
        clip: float = 5.0,
        through: Through = "exact",
    ) -> None:
        super().__init__()
        require_gaussian(first, "refinement")
        self.first = first
        self.prior, self.likelihood = Reference(prior), Reference(likelihood)
        self.weight = weight if isinstance(weight, Weight) else Constant(weight)
        self.steps, self.lr, self.momentum, self.clip = steps, lr, momentum, clip
        self.through = through

    def forward(self, batch: Batch) -> Gaussian:
        first = self.first(batch)
        through: Through = self.through if self.training and torch.is_grad_enabled() else "nothing"
        with torch.inference_mode(False), torch.enable_grad():
            q = self.refined(_plain(batch), first, through)
        q.first = first  # type: ignore[attr-defined]
        return q

    def refined(self, batch: Batch, first: Gaussian, through: Through) -> Gaussian:
        """The Gaussian at lambda_K."""
        at = [widened(t) if through != "nothing" else widened(t).detach().clone() for t in (first.loc, first.logvar)]
        speed = [torch.zeros_like(t) for t in at]
        for step in range(self.steps):
            slopes = self.slopes(self.loss(batch, self.noise(at[0], step)), at, through)
            speed = [self.momentum * v + self.clipped(g) for v, g in zip(speed, slopes, strict=True)]
            at = [t - self.lr * v for t, v in zip(at, speed, strict=True)]
        return Gaussian(at[0], at[1])

    def loss(self, batch: Batch, noise: Tensor) -> Loss:
        """nll + w kl at z = mu + sigma noise, as a function of (mu, log sigma^2)."""
        prior, likelihood = self.prior.module, self.likelihood.module
        weight = self.weight.now(batch.step) if self.training else 1.0

        def value(loc: Tensor, logvar: Tensor) -> Tensor:
            q, z = Gaussian(loc, logvar), (loc + torch.exp(0.5 * logvar) * noise).unsqueeze(0)  # (1, B, J)
            rate = kl_divergence(q, prior(batch), lambda: z)
            nll: Tensor = -likelihood(z, batch).log_prob(batch.x).squeeze(0)
            return nll + weight * per_example(rate)  # (B,)

        return value

    def noise(self, like: Tensor, step: int) -> Tensor:
        """New for every step in training; in evaluation the same for every example, whenever it is asked for, (B, J)."""
        if self.training:
            return distributed.normal(tuple(like.shape), like, 0)
        noise = torch.randn(like.shape[1], generator=torch.Generator().manual_seed(step), dtype=like.dtype)
        return noise.to(like.device).expand_as(like)

    def slopes(self, loss: Loss, at: list[Tensor], through: Through) -> tuple[Tensor, ...]:
        """The gradient of the loss, itself differentiable unless nothing comes back."""
        if through == "difference":
            slopes: tuple[Tensor, ...] = _Slopes.apply(loss, *at, *self.learned)  # type: ignore[no-untyped-call]
            return slopes
        exact = through == "exact"
        at = [t if exact and t.requires_grad else t.detach().requires_grad_() for t in at]
        with twice_differentiable(self.likelihood.module, exact), freeze([] if exact else self.learned):
            return torch.autograd.grad(loss(*at).sum(), at, create_graph=exact)

    @property
    def learned(self) -> list[nn.Parameter]:
        """What the loss may depend on: decoder and prior, and the first posterior, of which a VampPrior is made."""
        modules = (self.first, self.prior.module, self.likelihood.module)
        return [p for module in modules for p in module.parameters() if p.requires_grad]

    def clipped(self, slope: Tensor) -> Tensor:
        """The gradient of each example, its norm at most `clip`; 0 is no limit."""
        if not self.clip:
            return slope
        return slope * self.clip * slope.square().sum(1, keepdim=True).clamp_min(self.clip**2).rsqrt()


class _Slopes(torch.autograd.Function):
    """The gradient of f in lambda; its derivative along v is that of [f(lambda + r v) - f(lambda - r v)] / 2r."""

    @staticmethod
    def forward(ctx: Any, f: Loss, loc: Tensor, logvar: Tensor, *learned: nn.Parameter) -> tuple[Tensor, ...]:
        at = [t.detach().requires_grad_() for t in (loc, logvar)]
        ctx.dropout = torch.get_rng_state(), torch.cuda.get_rng_state(loc.device) if loc.is_cuda else None
        with torch.enable_grad(), freeze(learned):
            slopes = torch.autograd.grad(f(*at).sum(), at)
        ctx.f, ctx.learned = f, learned
        ctx.save_for_backward(loc, logvar)
        return slopes

    @staticmethod
    def backward(ctx: Any, *along: Tensor) -> tuple[Tensor | None, ...]:
        at = [t.detach().requires_grad_() for t in ctx.saved_tensors]
        size = torch.cat(along, 1).norm(dim=1)  # (B,)
        r = torch.finfo(size.dtype).eps ** (1 / 3)  # where rounding and curvature cost a central difference the least
        step = [r * v / size.clamp_min(torch.finfo(size.dtype).tiny).unsqueeze(1) for v in along]
        with torch.enable_grad():
            with _noise_from(*ctx.dropout):
                ahead = ctx.f(*(t + s for t, s in zip(at, step, strict=True)))
            with _noise_from(*ctx.dropout):
                behind = ctx.f(*(t - s for t, s in zip(at, step, strict=True)))
            change = (size * (ahead - behind)).sum() / (2 * r)
            grads = torch.autograd.grad(change, [*at, *ctx.learned], allow_unused=True)
        return None, *grads


@contextmanager
def _noise_from(cpu: Tensor, cuda: Tensor | None) -> Iterator[None]:
    """Noise as it was drawn once before; outside, it goes on as if nothing had been drawn."""
    with torch.random.fork_rng([] if cuda is None else None):
        torch.set_rng_state(cpu)
        if cuda is not None:
            torch.cuda.set_rng_state(cuda)
        yield


@contextmanager
def twice_differentiable(module: nn.Module, wanted: bool) -> Iterator[None]:
    """Kernels that have a second derivative: the plain ones of attention, and of recurrent nets on a GPU."""
    recurrent = wanted and any(isinstance(part, nn.RNNBase) for part in module.modules())
    cudnn = torch.backends.cudnn
    with cudnn.flags(enabled=cudnn.enabled and not recurrent):
        if not wanted:
            yield
            return
        with sdpa_kernel(SDPBackend.MATH):
            yield


def _plain(batch: Batch) -> Batch:
    """The batch with copies of tensors made in inference mode, which no gradient can pass."""
    made: dict[str, Any] = {k: t.clone() for k, t in vars(batch).items() if isinstance(t, Tensor) and t.is_inference()}
    return replace(batch, **made) if made else batch
