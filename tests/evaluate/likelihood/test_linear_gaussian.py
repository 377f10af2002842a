"""IW-5,000 against the closed log p(x) of a linear Gaussian model, for laws that have a density of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.distributions import MultivariateNormal

from elboroom.core.batch import Batch
from elboroom.core.model import LatentModel
from elboroom.data import arrays
from elboroom.evaluate import likelihood
from elboroom.evaluate.split import Split
from elboroom.families.autoregressive import AutoregressivePrior
from elboroom.families.implicit import SharedGaussian

K, N = 5000, 12


def found(model: LatentModel, known: Any, truth: float) -> None:
    data = arrays.dataset(known.x[:N].numpy().astype(np.float32))
    number = likelihood.log_likelihood(Split(model, data, "train", np.arange(N)), K)
    assert number.estimator == f"iw-{K}"
    assert number.value is not None
    assert 0 < number.errors["importance_noise"] < 0.02
    assert abs(number.value - truth) < 4 * number.errors["importance_noise"]


def test_a_chain_as_prior(ppca: Any) -> None:
    """log N(x; b, W S W' + s^2 I), S the covariance of the chain."""
    known = ppca(widen=2.0)
    s = torch.tensor([[1.0, 0.7], [0.7, 1.0]]).double()
    cov = known.w @ s @ known.w.T + known.variance * torch.eye(len(known.b)).double()
    truth = MultivariateNormal(known.b, cov).log_prob(known.x[:N]).mean().item()
    prior = AutoregressivePrior(2, 1, 0.7).double()
    found(LatentModel(known.model.posterior, prior, known.model.likelihood), known, truth)


def test_a_posterior_by_a_linear_map(ppca: Any) -> None:
    known = ppca()
    exact = known.model.posterior

    class Shared(nn.Module):
        family = SharedGaussian

        def __init__(self) -> None:
            super().__init__()
            self.root = nn.Parameter(torch.tensor([[0.5, 0.1, 0.0], [0.1, 0.3, 0.2]]).double())

        def forward(self, batch: Batch) -> SharedGaussian:
            return SharedGaussian(exact(Batch(batch.x.double())).mean, self.root)

    model = LatentModel(Shared(), known.model.prior, known.model.likelihood)
    found(model, known, known.log_p(known.x[:N]).mean().item())
