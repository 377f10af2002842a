"""The diagonal Gaussian against torch.distributions, and the identities of its KL."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.distributions import Independent, MultivariateNormal, Normal
from torch.distributions import kl_divergence as reference_kl

from elboroom.core.batch import Batch
from elboroom.core.kl import kl_divergence
from elboroom.families.gaussian import ConditionalNormal, Gaussian, StandardNormal

B, J = 7, 4


def gaussian(*shape: int, seed: int = 0) -> Gaussian:
    noise = torch.Generator().manual_seed(seed)
    loc, logvar = torch.randn(2, *shape, generator=noise, dtype=torch.float64)
    return Gaussian(loc, logvar)


def reference(q: Gaussian) -> Independent:
    return Independent(Normal(q.loc, q.stddev), 1)


def rate(q: Gaussian, p: Gaussian) -> Tensor:
    def never() -> Tensor:
        raise AssertionError("a closed KL draws no sample")

    return kl_divergence(q, p, never)


STANDARD = Gaussian(torch.zeros(J, dtype=torch.float64), torch.zeros(J, dtype=torch.float64))


@pytest.mark.parametrize("prior", [STANDARD, gaussian(J, seed=1), gaussian(B, J, seed=2)])
def test_kl_is_that_of_torch(prior: Gaussian) -> None:
    q = gaussian(B, J)
    found = rate(q, prior)
    assert found.shape == (B, J)
    torch.testing.assert_close(found.sum(-1), reference_kl(reference(q), reference(prior).expand((B,))))


def test_kl_is_zero_at_the_prior_alone() -> None:
    zero = torch.zeros(1, J, dtype=torch.float64)
    assert torch.equal(rate(Gaussian(zero, zero), STANDARD), zero)
    assert (rate(Gaussian(zero, zero + 1), STANDARD) > 0).all()  # log-variance, not log-std
    torch.testing.assert_close(rate(Gaussian(zero, zero + 1), STANDARD), (math.e - 2) / 2 + zero)
    torch.testing.assert_close(rate(Gaussian(zero + 3, zero), STANDARD), 4.5 + zero)


def test_entropy_density_and_moments_are_those_of_torch() -> None:
    q = gaussian(B, J)
    torch.testing.assert_close(q.entropy(), reference(q).entropy())
    z = torch.randn(5, B, J, dtype=torch.float64)
    torch.testing.assert_close(q.log_prob(z), reference(q).log_prob(z))
    torch.testing.assert_close(q.log_prob_per_dim(z).sum(-1), q.log_prob(z))
    torch.testing.assert_close(q.variance, reference(q).variance)
    torch.testing.assert_close(q.mean, reference(q).mean)


def test_samples_have_the_moments() -> None:
    q = gaussian(B, J)
    z = q.rsample((40_000,))
    assert z.shape == (40_000, B, J)
    torch.testing.assert_close(z.mean(0), q.mean, atol=5 * float(q.stddev.max()) / 200, rtol=0)
    torch.testing.assert_close(z.var(0), q.variance, rtol=5 * math.sqrt(2 / 40_000), atol=0)
    assert not gaussian(B, J).sample().requires_grad
    assert STANDARD.rsample((3,)).shape == (3, J)


@pytest.mark.parametrize("beta", [0.25, 1.0, 4.0, 60.0])
def test_beta_is_a_sharper_prior_and_an_entropy(beta: float) -> None:
    """Mathieu 2019, Thm 1: -beta KL(q||p) = -KL(q||f) + (beta - 1) H[q] + log F, f = N(0, I/beta)."""
    q = gaussian(B, J)
    sharp = Gaussian(STANDARD.loc, STANDARD.logvar - math.log(beta))
    log_f = J * ((1 - beta) / 2 * math.log(2 * math.pi) - 0.5 * math.log(beta))
    right = -rate(q, sharp).sum(-1) + (beta - 1) * q.entropy() + log_f
    torch.testing.assert_close(-beta * rate(q, STANDARD).sum(-1), right)


def test_kl_does_not_see_a_rotation() -> None:
    """Mathieu 2019, Thm 2: KL(N(R mu, R S R') || N(0, I)) is that of the diagonal q."""
    q = gaussian(B, J)
    turn = torch.linalg.qr(torch.randn(J, J, dtype=torch.float64))[0]
    cov = turn @ torch.diag_embed(q.variance) @ turn.T
    turned = MultivariateNormal(q.loc @ turn.T, cov)
    standard = MultivariateNormal(torch.zeros(J, dtype=torch.float64), torch.eye(J, dtype=torch.float64))
    torch.testing.assert_close(rate(q, STANDARD).sum(-1), reference_kl(turned, standard))


def test_a_prior_given_u_starts_standard_and_depends_on_u() -> None:
    prior = ConditionalNormal(J, 3)
    u = torch.eye(3)
    start = prior(Batch(torch.empty(3), u))
    assert not start.loc.any()
    assert not start.logvar.any()
    torch.nn.init.normal_(prior.table.weight)
    later = prior(Batch(torch.empty(3), u))
    assert later.loc.shape == (3, J)
    assert not torch.allclose(later.loc[0], later.loc[1])
    fixed = StandardNormal(J)
    assert not list(fixed.parameters())
    assert fixed(Batch(torch.empty(3))).log_prob(torch.zeros(J)).item() == pytest.approx(-J / 2 * math.log(2 * math.pi))
