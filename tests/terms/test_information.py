"""I(x; z) over a split: nothing for equal posteriors, log M for distant ones, and what is left of the rate."""

from __future__ import annotations

import math

import pytest
import torch

from elboroom.core.kl import kl_divergence
from elboroom.families.gaussian import Gaussian
from elboroom.terms.information import information

M, J = 60, 3


def test_equal_posteriors_carry_nothing_and_distant_ones_log_m() -> None:
    logvar, noise = torch.zeros(M, J), torch.randn(M, J).double()
    torch.testing.assert_close(information(torch.ones(M, J), logvar, noise), torch.zeros(M).double(), atol=1e-9, rtol=0)
    far = 100.0 * torch.arange(M).float().unsqueeze(1).expand(M, J)
    torch.testing.assert_close(information(far, logvar, noise), torch.full((M,), math.log(M)).double())


@pytest.mark.parametrize("chunk", [7, 1000])
def test_it_is_log_q_minus_the_log_of_the_mixture(chunk: int) -> None:
    q, noise = Gaussian(torch.randn(M, J).double(), torch.randn(M, J).double()), torch.randn(M, J).double()
    z = q.loc + q.stddev * noise
    pairs_ = q.log_prob(z.unsqueeze(1))  # (M, M)
    expected = pairs_.diagonal() - torch.logsumexp(pairs_, 1) + math.log(M)
    torch.testing.assert_close(information(q.loc, q.logvar, noise, chunk), expected)


def test_the_rate_is_information_and_the_kl_of_the_aggregate() -> None:
    """mean D = I + KL(q(z) || p), each at the same samples."""
    q, zero = Gaussian(torch.randn(M, J).double(), torch.randn(M, J).double() - 1), torch.zeros(J).double()
    p, noise = Gaussian(zero, zero), torch.randn(4000, M, J).double()
    found = torch.stack([information(q.loc, q.logvar, n).mean() for n in noise[:400]]).mean()
    z = q.loc + q.stddev * noise[:400]
    aggregate = torch.logsumexp(q.log_prob(z.unsqueeze(2)), 2) - math.log(M) - p.log_prob(z)
    rate = kl_divergence(q, p, lambda: z).sum(1).mean()
    assert (found + aggregate.mean()).item() == pytest.approx(rate.item(), abs=0.05)
