"""The linear generator: a Gaussian in disguise, whose density, rate and likelihood are exact."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.distributions import MultivariateNormal

from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.kl import has_density, kl_divergence
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.families.gaussian import ConditionalNormal, Gaussian, StandardNormal
from elboroom.families.implicit import LinearImplicitPosterior, SharedGaussian
from elboroom.terms.evidence import kl

B, D, H, NOISE, J = 4, 5, 3, 6, 2


class Net(nn.Module):
    """h(x), linear."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(D, H)

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        out: Tensor = self.linear(x)
        return out


X = torch.linspace(-1, 1, B * D).view(B, D).double()


def posterior() -> LinearImplicitPosterior:
    made = LinearImplicitPosterior(Net(), H, NOISE, J).double()
    nn.init.normal_(made.generator.weight, std=0.6)
    return made


def known(made: LinearImplicitPosterior) -> MultivariateNormal:
    """N(W_h h + b, W_e W_e')."""
    weight, h = made.generator.weight.detach(), made.net(X).detach()
    return MultivariateNormal(h @ weight[:, :H].T + made.generator.bias.detach(), weight[:, H:] @ weight[:, H:].T)


def test_it_is_the_linear_map_of_features_and_noise() -> None:
    made = posterior()
    q = made(Batch(X))
    torch.manual_seed(1)
    z = q.rsample((3,))
    torch.manual_seed(1)
    e = torch.randn(3, B, NOISE, dtype=torch.float64)
    h = made.net(X)
    torch.testing.assert_close(z, made.generator(torch.cat([h.expand(3, B, H), e], -1)))
    assert torch.equal(q.features, h)
    z.square().sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in made.parameters())
    assert not q.sample().requires_grad


def test_its_density_is_exact() -> None:
    made = posterior()
    q, truth = made(Batch(X)), known(made)
    z = torch.randn(7, B, J).double()
    torch.testing.assert_close(q.log_prob(z), truth.log_prob(z), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(q.log_prob(z[0]), truth.log_prob(z[0]), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(q.mean, truth.mean)
    assert has_density(SharedGaussian)


def test_its_samples_follow_its_density() -> None:
    """Mean, covariance and mean log-density within 4 standard errors."""
    made = posterior()
    q, truth = made(Batch(X)), known(made)
    z, n = q.sample((20_000,)), 20_000
    assert ((z.mean(0) - truth.mean).abs() < 4 * z.std(0) / math.sqrt(n)).all()
    for b in range(B):
        left = z[:, b] - truth.mean[b]
        products = left.unsqueeze(1) * left.unsqueeze(2)
        assert ((products.mean(0) - truth.covariance_matrix[b]).abs() < 4 * products.std(0) / math.sqrt(n)).all()
    found = q.log_prob(z)
    assert ((found.mean(0) + truth.entropy()).abs() < 4 * found.std(0) / math.sqrt(n)).all()


def test_its_rate_is_the_identity_of_the_paper_and_that_of_monte_carlo() -> None:
    """D = 1/2 [tr S + |W_h h + b|^2 - d - log det S]."""
    made, prior = posterior(), StandardNormal(J).double()
    q, truth = made(Batch(X)), known(made)
    s = truth.covariance_matrix[0]
    by_hand = 0.5 * (s.trace() + truth.mean.square().sum(1) - J - torch.logdet(s))
    draw = Draw(LatentModel(made, prior, nn.Identity()), Batch(X))
    torch.testing.assert_close(kl()(draw), by_hand, rtol=1e-10, atol=1e-10)
    z = q.sample((20_000,))
    each = q.log_prob(z) - prior(Batch(X)).log_prob(z)
    assert ((each.mean(0) - by_hand).abs() < 4 * each.std(0) / math.sqrt(len(z))).all()


def test_its_rate_against_a_prior_that_is_not_standard() -> None:
    made, prior = posterior(), ConditionalNormal(J, 2).double()
    nn.init.normal_(prior.table.weight)
    batch = Batch(X, torch.eye(2).double().repeat(2, 1))
    p = prior(batch)
    truth = torch.distributions.kl_divergence(known(made), MultivariateNormal(p.loc, torch.diag_embed(p.variance)))
    torch.testing.assert_close(kl_divergence(made(batch), p, lambda: X), truth)


def test_gradients_are_those_of_finite_differences() -> None:
    z = torch.randn(3, B, J).double()
    p = Gaussian(torch.randn(J).double(), torch.randn(J).double())

    def value(loc: Tensor, root: Tensor) -> tuple[Tensor, Tensor]:
        q = SharedGaussian(loc, root)
        return q.log_prob(z), kl_divergence(q, p, lambda: z)

    assert gradcheck(value, (torch.randn(B, J).double().requires_grad_(), torch.randn(J, 4).double().requires_grad_()))


def test_two_processes_draw_what_one_would(monkeypatch: pytest.MonkeyPatch) -> None:
    loc, root = torch.randn(4, J), torch.randn(J, NOISE)
    torch.manual_seed(1)
    truth, parts = SharedGaussian(loc, root).sample((3,)), []
    monkeypatch.setattr(distributed, "world", lambda: 2)
    for rank in (0, 1):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        torch.manual_seed(1)
        parts.append(SharedGaussian(loc[2 * rank : 2 * rank + 2], root).sample((3,)))
    torch.testing.assert_close(torch.cat(parts, 1), truth)


def test_noise_that_has_collapsed_is_said_so() -> None:
    q = SharedGaussian(torch.zeros(B, 3), torch.tensor([[1.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0]]))
    assert q.sample().shape == (B, 3)
    with pytest.raises(Problem, match="collapsed"):
        q.log_prob(torch.zeros(B, 3))
    with pytest.raises(ValueError, match="no density"):
        LinearImplicitPosterior(Net(), H, 1, J)
