"""The AR(1) prior against its covariance matrix, and the least rate of a posterior that factorises."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal
from torch.distributions import kl_divergence as reference_kl

from elboroom.core.batch import Batch
from elboroom.core.kl import called, is_per_dim, kl_divergence
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.families.autoregressive import AR1, AutoregressivePrior
from elboroom.families.gaussian import Gaussian
from elboroom.training import session
from elboroom.training.session import Own
from elboroom.training.spec import specify

ALPHA = torch.tensor([0.3, 0.9]).double()
N = 5


def covariance(chain: AR1) -> Tensor:
    """Cov(z_s, z_t) = alpha^|s - t| within a channel, channels independent, time first."""
    n, k = chain.length, len(chain.alpha)
    apart = (torch.arange(n)[:, None] - torch.arange(n)).abs().double()
    found = torch.zeros(n * k, n * k).double()
    for channel, alpha in enumerate(chain.alpha):
        found[channel::k, channel::k] = alpha**apart
    return found


def reference(chain: AR1) -> MultivariateNormal:
    return MultivariateNormal(torch.zeros(chain.event_shape).double(), covariance(chain))


def rate(q: Gaussian, p: AR1) -> Tensor:
    return kl_divergence(q, p, lambda: torch.empty(0))


@pytest.fixture
def chain() -> AR1:
    return AR1(ALPHA, N)


def test_the_density_is_that_of_the_stationary_gaussian(chain: AR1) -> None:
    z = torch.randn(3, 7, 2 * N).double()
    torch.testing.assert_close(chain.log_prob(z), reference(chain).log_prob(z))
    torch.testing.assert_close(chain.log_prob_per_dim(z).sum(-1), chain.log_prob(z))


def test_samples_have_the_covariance(chain: AR1) -> None:
    z = chain.sample((40_000,))
    assert z.shape == (40_000, 2 * N)
    torch.testing.assert_close(torch.cov(z.T), covariance(chain), atol=0.04, rtol=0)
    assert torch.equal(chain.mean, torch.zeros(2 * N).double())


def test_the_rate_is_that_of_torch_and_per_dimension(chain: AR1) -> None:
    q = Gaussian(torch.randn(6, 2 * N).double(), torch.randn(6, 2 * N).double())
    found = rate(q, chain)
    assert found.shape == (6, 2 * N)
    whole = MultivariateNormal(q.loc, torch.diag_embed(q.variance))
    torch.testing.assert_close(found.sum(1), reference_kl(whole, reference(chain).expand((6,))))
    assert is_per_dim(Gaussian, AR1)
    assert called(AR1) == "ar1"


@pytest.mark.parametrize("length", [2, 3, 8])
@pytest.mark.parametrize("alpha", [[0.5], [0.3, 0.9]])
def test_the_least_rate_is_reached_and_never_passed(length: int, alpha: list[float]) -> None:
    """1/2 sum_k [(n - 2) log(1 + a_k^2) - log(1 - a_k^2)], at mean 0 and sigma^2 the inverse of the precision's diagonal."""
    chain = AR1(torch.tensor(alpha).double(), length)
    precision = torch.linalg.inv(covariance(chain)).diagonal()
    best = Gaussian(torch.zeros_like(precision).unsqueeze(0), -precision.log().unsqueeze(0))
    torch.testing.assert_close(rate(best, chain).sum(), chain.least_rate)
    heads = torch.nn.Parameter(torch.randn(2, 1, len(precision)).double())
    optimiser = torch.optim.LBFGS([heads], max_iter=200, line_search_fn="strong_wolfe", tolerance_grad=1e-10)

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = rate(Gaussian(*heads), chain).sum()
        loss.backward()
        return loss

    optimiser.step(closure)  # type: ignore[arg-type]
    assert closure().item() == pytest.approx(chain.least_rate.item(), rel=1e-6)
    for _ in range(20):
        near = Gaussian(best.loc + 0.1 * torch.randn_like(best.loc), best.logvar + 0.1 * torch.randn_like(best.loc))
        assert rate(near, chain).sum() > chain.least_rate


def test_a_chain_without_memory_is_the_standard_normal() -> None:
    chain, zero = AR1(torch.zeros(2).double(), N), torch.zeros(2 * N).double()
    q = Gaussian(torch.randn(6, 2 * N).double(), torch.randn(6, 2 * N).double())
    torch.testing.assert_close(rate(q, chain), kl_divergence(q, Gaussian(zero, zero), lambda: zero))
    assert chain.least_rate == 0


def test_32_steps_at_a_half_commit_to_three_and_a_half_nats() -> None:
    chain = AutoregressivePrior(32, 1, 0.5)(Batch(torch.empty(1)))
    assert chain.least_rate.item() == pytest.approx(3.49, abs=0.005)


def test_what_cannot_be_is_refused(vectors: DataSet) -> None:
    for latent, channels in ((3, 2), (4, 4), (1, 1)):
        with pytest.raises(Problem, match=f"--latent {latent} .* --ar1-channels {channels}; use a multiple"):
            AutoregressivePrior(latent, channels, 0.5)
    AutoregressivePrior(8, 4, 0.5)
    for options in ({"prior": "sparse"}, {"prior": "normal"}, {"posterior": "iaf"}):
        with pytest.raises(Problem, match="remove --posterior and --prior"):
            session.build(specify("delta-vae-ar1", vectors, "array", None, options), Own(vectors))
