"""Flow posteriors: a Gaussian pushed through autoregressive steps, affine or splines, fast to sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Transform, constraints
from zuko.flows.autoregressive import MaskedAutoregressiveTransform
from zuko.lazy import LazyComposedTransform
from zuko.transforms import MonotonicRQSTransform

from elboroom.core.batch import Batch
from elboroom.core.law import Law
from elboroom.families.gaussian import Gaussian, widened


class Gate(Transform):
    """z -> s z + (1 - s) m with s = sigmoid(raw + 1.5): the numerically stable step of IAF."""

    domain = constraints.real
    codomain = constraints.real
    bijective = True
    sign = +1

    def __init__(self, m: Tensor, raw: Tensor) -> None:
        super().__init__()
        self.m, self.log_s = widened(m), nn.functional.logsigmoid(widened(raw) + 1.5)
        self.s = self.log_s.exp()

    def _call(self, x: Tensor) -> Tensor:
        return self.s * x + (1 - self.s) * self.m

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - (1 - self.s) * self.m) / self.s

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.log_s.expand(x.shape)


class Spline(MonotonicRQSTransform):  # type: ignore[misc]
    """A monotonic rational-quadratic spline on [-5, 5], the identity beyond; its knots are in single precision."""

    def __init__(self, widths: Tensor, heights: Tensor, slopes: Tensor) -> None:
        super().__init__(widened(widths), widened(heights), widened(slopes))


class Flowed(Law):
    """The law of t(e), e ~ base. Samples carry their density; that of a foreign z takes the slow inverse."""

    has_rsample = True
    slow_density = True

    def __init__(self, base: Gaussian, transform: Any) -> None:
        self.base, self.transform = base, transform
        self._kept: tuple[Tensor, Tensor] | None = None
        super().__init__(base.batch_shape, base.event_shape)

    @property
    def mean(self) -> Tensor:
        """The image of the base's mean, which stands for the mean that has no closed form."""
        image: Tensor = self.transform(self.base.mean)
        return image

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        e = self.base.rsample(sample_shape)
        z, log_det = self.transform.call_and_ladj(e)
        self._kept = z, self.base.log_prob(e) - log_det
        return self._kept[0]

    def log_prob(self, z: Tensor) -> Tensor:
        if self._kept is not None and self._kept[0] is z:
            return self._kept[1]
        e, log_det = self.transform.inv.call_and_ladj(z)
        log_prob: Tensor = self.base.log_prob(e) + log_det
        return log_prob


class FlowPosterior(nn.Module):
    """q(z|x): z_0 ~ N(mu, sigma^2), then `steps` autoregressive steps conditioned on the features h(x).

    The net emits (mu, log sigma^2, h). The order of the dimensions is reversed from one step to the next.
    """

    family = Flowed
    step: Callable[..., Transform] = Gate  # what happens to a dimension, given the ones before it
    shapes: tuple[tuple[int, ...], ...] = ((), ())  # of the parameters of a step

    def __init__(self, net: nn.Module, latent: int, context: int, steps: int, width: int) -> None:
        super().__init__()
        self.net, self.sizes = net, [latent, latent, context]
        forwards = torch.arange(latent)
        self.flow = LazyComposedTransform(
            *(
                MaskedAutoregressiveTransform(
                    latent,
                    context,
                    order=forwards if i % 2 == 0 else forwards.flip(0),
                    univariate=type(self).step,
                    shapes=self.shapes,
                    hidden_features=(width, width),
                )
                for i in range(steps)
            )
        )

    def forward(self, batch: Batch) -> Flowed:
        loc, logvar, context = torch.split(widened(self.net(batch.x, batch.u)), self.sizes, dim=-1)
        return Flowed(Gaussian(loc, logvar), self.flow(context))


class SplinePosterior(FlowPosterior):
    """The same with a spline of eight bins as the step: a neural spline flow."""

    step = Spline
    shapes = ((8,), (8,), (7,))
