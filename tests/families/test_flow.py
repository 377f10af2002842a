"""The inverse autoregressive flow: its log-determinant, its density, and the affine case in which all is closed."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Normal
from zuko.nn import MaskedLinear

from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.kl import has_density, kl_divergence, require_kl
from elboroom.core.model import LatentModel
from elboroom.families.flow import Flowed, FlowPosterior
from elboroom.families.gaussian import Gaussian, StandardNormal
from elboroom.terms.evidence import kl

B, D, CONTEXT = 5, 4, 3


class Net(nn.Module):
    """(mu, log sigma^2, h), linear in x."""

    def __init__(self, latent: int) -> None:
        super().__init__()
        self.linear = nn.Linear(D, 2 * latent + CONTEXT)

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        out: Tensor = self.linear(x)
        return out


def posterior(latent: int, steps: int) -> FlowPosterior:
    """In double precision, with weights so large that the flow is far from affine."""
    made = FlowPosterior(Net(latent), latent, CONTEXT, steps, 16).double()
    for layer in masked(made):
        nn.init.normal_(layer.weight, std=0.6)
        nn.init.normal_(layer.bias, std=0.6)
    return made


def masked(made: FlowPosterior) -> list[nn.Linear]:
    return [layer for layer in made.flow.modules() if isinstance(layer, nn.Linear)]


X = torch.linspace(-1, 1, B * D).view(B, D).double()


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("latent", [1, 2, 6])
def test_the_sum_of_log_gates_is_the_log_determinant(latent: int, steps: int) -> None:
    """sum log sigma = slogdet of the Jacobian by autograd, for every row."""
    q = posterior(latent, steps)(Batch(X))
    e = q.base.rsample()
    z, found = q.transform.call_and_ladj(e)
    whole = torch.autograd.functional.jacobian(lambda e: q.transform(e), e)  # (B, J, B, J)
    sign, log_det = torch.linalg.slogdet(torch.stack([whole[b, :, b] for b in range(B)]))
    assert (sign == 1).all()
    torch.testing.assert_close(found, log_det, rtol=1e-10, atol=1e-10)
    assert (found < 0).all(), "every gate is below one"
    assert z.shape == (B, latent)


def reads(transform: Any, e: Tensor) -> Tensor:
    """Where the Jacobian of any row is not zero, (J, J)."""
    whole = torch.autograd.functional.jacobian(transform, e)
    return torch.stack([whole[b, :, b] for b in range(len(e))]).abs().sum(0) > 0


def test_a_step_is_gated_and_autoregressive() -> None:
    """z_j = s z_0j + (1 - s) m, s in (0, 1), and (m, s)_j a function of all dimensions before j and of no other."""
    transform = posterior(4, 1).flow(torch.randn(20, CONTEXT).double())
    e = torch.randn(20, 4).double()
    assert torch.equal(reads(transform, e), torch.ones(4, 4).tril().bool())
    gates = torch.autograd.functional.jacobian(transform, e)[0, :, 0].diagonal()
    assert ((gates > 0) & (gates < 1)).all()


def test_the_order_of_the_dimensions_is_reversed_between_steps() -> None:
    transform = posterior(4, 2).flow(torch.randn(20, CONTEXT).double())
    e = torch.randn(20, 4).double()
    first, second = transform.transforms
    assert torch.equal(reads(first, e), torch.ones(4, 4).tril().bool())
    assert torch.equal(reads(second, e), torch.ones(4, 4).triu().bool())
    torch.testing.assert_close(transform(e), second(first(e)))


def test_an_untrained_flow_keeps_most_of_what_it_is_given() -> None:
    """The bias of the gates, between 1 and 2: sigmoid(1.5) = 0.82 of z_0 passes where the net says nothing."""
    made = posterior(3, 1)
    for layer in masked(made):
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
    q = made(Batch(X))
    e = q.base.rsample()
    torch.testing.assert_close(q.transform(e), torch.sigmoid(torch.tensor(1.5).double()) * e)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("latent", [1, 4])
def test_the_kept_density_is_that_of_the_slow_inverse(latent: int, steps: int) -> None:
    q = posterior(latent, steps)(Batch(X))
    z = q.rsample((7,))
    assert z.shape == (7, B, latent)
    kept, slow = q.log_prob(z), q.log_prob(z.clone())
    assert kept.shape == (7, B)
    torch.testing.assert_close(kept, slow, rtol=1e-9, atol=1e-9)
    foreign = torch.randn(7, B, latent).double()
    again = q.transform(q.transform.inv(foreign))
    torch.testing.assert_close(again, foreign, rtol=1e-9, atol=1e-9)


def test_a_sample_that_is_not_the_kept_one_is_not_given_its_density() -> None:
    q = posterior(3, 2)(Batch(X))
    old = q.rsample()
    truth = q.log_prob(old)
    q.rsample()
    torch.testing.assert_close(q.log_prob(old), truth, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("latent", [1, 2])
def test_the_density_integrates_to_one(latent: int) -> None:
    """The change of variables divides by |det J|: multiplied by it, the mass would be far from one."""
    q = posterior(latent, 2)(Batch(X[:1]))
    spread = q.sample((2000,)).view(-1, latent)
    low, high = spread.amin(0) - 2 * spread.std(0), spread.amax(0) + 2 * spread.std(0)
    axes = [torch.linspace(float(a), float(b), 400).double() for a, b in zip(low, high, strict=True)]
    grid = torch.cartesian_prod(*axes).view(-1, 1, latent)
    with torch.no_grad():
        mass = q.log_prob(grid).exp().sum() * math.prod(float(axis[1] - axis[0]) for axis in axes)
    assert mass.item() == pytest.approx(1.0, abs=2e-3)


def affine(made: FlowPosterior, latent: int) -> tuple[FlowPosterior, Tensor, Tensor]:
    """The same flow with its nets deaf to z: then z = a e + b, with a and b functions of x alone."""
    for transform in made.flow.transforms:
        transform.hyper[0].weight.data[:, :latent] = 0  # columns of z; those of the context stay
    q = made(Batch(X))
    b = q.transform(torch.zeros(B, latent).double())
    a = q.transform(torch.ones(B, latent).double()) - b
    return made, a.detach(), b.detach()


@pytest.mark.parametrize("steps", [1, 4])
def test_deaf_to_z_the_flow_is_a_gaussian(steps: int) -> None:
    """log q is exact for every sample; the sampled kl has the closed form as its mean, exactly over sigma points."""
    latent = 3
    made, a, b = affine(posterior(latent, steps), latent)
    q = made(Batch(X))
    loc, std = (a * q.base.loc + b).detach(), (a * q.base.stddev).detach()
    z = q.rsample((6,))
    torch.testing.assert_close(q.log_prob(z), Normal(loc, std).log_prob(z).sum(-1), rtol=1e-10, atol=1e-10)

    closed = kl_divergence(Gaussian(loc, 2 * std.log()), StandardNormal(latent).double()(Batch(X)), lambda: z).sum(-1)
    points = math.sqrt(latent) * torch.cat([torch.eye(latent), -torch.eye(latent)]).double().unsqueeze(1)
    model = LatentModel(made, StandardNormal(latent).double(), nn.Identity())
    draw = Draw(model, Batch(X), samples=2 * latent)
    draw.__dict__["z"] = loc + std * points
    torch.testing.assert_close(kl()(draw), closed, rtol=1e-9, atol=1e-9)


def test_gradients_reach_every_parameter_and_masks_hold() -> None:
    made = posterior(3, 2)
    model = LatentModel(made, StandardNormal(3).double(), nn.Identity())
    kl().mean(Draw(model, Batch(X))).backward()
    assert all(p.grad is not None for p in made.parameters())
    for layer in made.flow.modules():
        if isinstance(layer, MaskedLinear):
            assert not layer.weight.grad[~layer.mask].any()  # type: ignore[index]


def test_a_flow_has_a_density_and_no_closed_kl() -> None:
    assert has_density(Flowed)
    require_kl(Flowed, Gaussian)
    assert posterior(2, 1)(Batch(X)).mean.shape == (B, 2)
