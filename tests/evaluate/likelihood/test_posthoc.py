"""The post-hoc likelihood of encoders without a density, against a model in which it is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.distributions import MultivariateNormal

from elboroom.core.batch import Batch
from elboroom.core.model import LatentModel
from elboroom.data import arrays
from elboroom.evaluate.likelihood.posthoc import posthoc
from elboroom.evaluate.split import Split
from elboroom.families.gaussian import NoPrior
from elboroom.families.mixture import MixturePrior
from elboroom.families.point import PointPosterior


def pointed(known: Any, n: int) -> Split:
    """The first n rows of a linear Gaussian model whose encoder says the exact mean and nothing else."""
    exact = known.model.posterior

    class Mean(PointPosterior):
        def forward(self, batch: Batch) -> Any:
            return self.family(exact(Batch(batch.x.double())).mean)

    model = LatentModel(Mean(exact.net), known.model.prior, known.model.likelihood)
    data = arrays.dataset(known.x.numpy().astype(np.float32))
    data.splits.update(test=np.arange(n), valid=np.arange(n, 200))
    return Split(model, data, "test", np.arange(n))


def test_it_finds_the_likelihood(ppca: Any) -> None:
    """Within 4 standard errors of log N(x; b, W W' + s^2 I), and named for what it is."""
    known = ppca()
    found = posthoc(pointed(known, 40), 3000)
    assert found.estimator == "posthoc iw-3000"
    assert found.settings["prior"] == "own"
    assert 0 < found.errors["importance_noise"] < 0.02
    assert found.value == pytest.approx(
        known.log_p(known.x[:40]).mean().item(), abs=4 * found.errors["importance_noise"]
    )


def test_it_is_a_bound_that_tightens(ppca: Any) -> None:
    known = ppca()
    split, truth = pointed(known, 100), known.log_p(known.x[:100]).mean().item()
    values = [posthoc(split, k).value for k in (1, 10, 300)]
    assert values[0] < values[1] < values[2] < truth + 0.02  # type: ignore[operator]


@pytest.mark.parametrize("by", [0.0, 1e-4])
def test_codes_that_tell_next_to_nothing_leave_the_prior(ppca: Any, by: float) -> None:
    """However narrow the codes are, the width is looked for up to that of the prior."""
    known = ppca()
    split = pointed(known, 40)

    class Narrow(PointPosterior):
        def forward(self, batch: Batch) -> Any:
            return self.family(by * split.model.posterior(batch).mean)

    model = LatentModel(Narrow(nn.Identity()), known.model.prior, known.model.likelihood)
    found = posthoc(replace(split, model=model), 3000)
    assert found.value == pytest.approx(known.log_p(known.x[:40]).mean().item(), abs=0.05)


class Stretched(nn.Module):
    """A decoder that reads the first two dimensions of codes that were multiplied by a number."""

    def __init__(self, likelihood: nn.Module, by: float) -> None:
        super().__init__()
        self.likelihood, self.by = likelihood, by

    def forward(self, z: Tensor, batch: Batch) -> Any:
        return self.likelihood(z[..., :2] / self.by, batch)


def without_prior(known: Any, by: float) -> Split:
    """Codes of three dimensions, of which one is the same for all x, and no prior."""
    split = pointed(known, 40)

    class Wider(PointPosterior):
        def forward(self, batch: Batch) -> Any:
            mean = split.model.posterior(batch).mean
            return self.family(by * torch.cat([mean, torch.ones_like(mean[:, :1])], 1))

    model = LatentModel(Wider(nn.Identity()), NoPrior(3), Stretched(split.model.likelihood, by))
    return replace(split, model=model)


def test_without_a_prior_it_is_the_likelihood_under_the_gaussian_of_codes(ppca: Any) -> None:
    known = ppca()
    split = without_prior(known, 1.0)
    found = posthoc(split, 2000)
    assert found.estimator == "posthoc iw-2000, prior of codes"
    codes = Split.of(split.model, split.data, "train", ()).codes[0][:, :2].double()
    covariance = known.w @ torch.cov(codes.T) @ known.w.T + known.variance * torch.eye(len(known.b))
    truth = MultivariateNormal(known.w @ codes.mean(0) + known.b, covariance).log_prob(known.x[:40]).mean().item()
    assert 0 < found.errors["importance_noise"] < 0.02
    assert found.value == pytest.approx(truth, abs=4 * found.errors["importance_noise"])


def test_it_does_not_depend_on_the_scale_of_codes(ppca: Any) -> None:
    known = ppca()
    one, small = (posthoc(without_prior(known, by), 50).value for by in (1.0, 0.01))
    assert one == pytest.approx(small, abs=1e-3)


def test_under_a_prior_that_is_no_gaussian_a_tenth_of_the_draws_is_of_it(ppca: Any) -> None:
    """The same prior as a mixture of one: the bound holds, and codes far from all that the prior allows do not ruin it."""
    known = ppca()
    split, truth = pointed(known, 40), known.log_p(known.x[:40]).mean().item()
    one = MixturePrior(2, 1).double()
    one.loc.data.zero_()
    one.logvar.data.zero_()

    class Far(PointPosterior):
        def forward(self, batch: Batch) -> Any:
            return self.family(split.model.posterior(batch).mean + self.by)

    for by, within in ((0.0, 0.02), (30.0, 0.1)):
        far = Far(nn.Identity())
        far.by = by  # type: ignore[assignment]
        found = posthoc(replace(split, model=LatentModel(far, one, known.model.likelihood)), 3000)
        assert found.estimator == "posthoc iw-3000 + prior"
        assert found.value == pytest.approx(truth, abs=within + 4 * found.errors["importance_noise"])
