"""Under mixed precision the nets are in half precision, and what they say of a law is not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from elboroom.core.batch import Batch
from elboroom.families.flow import Spline, SplinePosterior
from elboroom.families.gaussian import ConditionalNormal
from elboroom.families.point import PointPosterior


class Net(nn.Linear):
    """Linear in x."""

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        return super().forward(x)


@pytest.fixture
def batch() -> Batch:
    return Batch(torch.randn(64, 8), u=torch.eye(8).repeat(8, 1))


def test_codes_and_conditional_priors_are_wide(batch: Batch) -> None:
    prior = ConditionalNormal(3, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert Net(8, 3)(batch.x).dtype == torch.bfloat16
        assert PointPosterior(Net(8, 3))(batch).mean.dtype == torch.float32
        assert prior(batch).sample().dtype == torch.float32


def test_the_knots_of_a_spline_are_wide(batch: Batch) -> None:
    """In half precision the inverse of a spline would miss by whole bins."""
    posterior = SplinePosterior(Net(8, 2 * 3 + 4), 3, 4, 2, 16)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        q = posterior(batch)
        z = q.rsample()
        known = q.log_prob(z)
        found = q.log_prob(z.clone())  # by the inverse
    assert z.dtype == torch.float32
    torch.testing.assert_close(found, known, atol=0.05, rtol=0)
    half = [3 * torch.randn(1000, n).bfloat16() for n in (8, 8, 7)]
    x = 3 * torch.randn(1000)
    spline = Spline(*half)
    torch.testing.assert_close(spline.inv(spline(x)), x, atol=1e-2, rtol=0)
