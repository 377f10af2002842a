"""Flipped pixels, an unseen shape, inverted images."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from elboroom.core.batch import Batch
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.evaluate import robustness
from elboroom.families.flow_prior import FlowPrior
from elboroom.families.gaussian import GaussianPosterior, StandardNormal
from elboroom.families.pixels import BernoulliLikelihood


class Copy(torch.nn.Module):
    """Means are the first four pixels; nothing else is seen."""

    def forward(self, x: torch.Tensor, u: torch.Tensor | None = None) -> torch.Tensor:
        means = x.flatten(1)[:, :4]
        return torch.cat([means, torch.full_like(means, -20.0)], 1)


class Paint(torch.nn.Module):
    """Logits that repeat the code over an image of 4x4."""

    def forward(self, z: torch.Tensor, u: torch.Tensor | None = None) -> torch.Tensor:
        return (40 * z - 20).repeat(1, 4).view(-1, 1, 4, 4)


@pytest.fixture
def model() -> LatentModel:
    return LatentModel(GaussianPosterior(Copy()), StandardNormal(4), BernoulliLikelihood(Paint(), 3))


def test_flips_are_as_many_as_asked() -> None:
    x = torch.zeros(100, 1, 64, 64)
    assert robustness.flipped(x, 0.05).mean().item() == pytest.approx(0.05, abs=0.002)
    assert torch.equal(robustness.flipped(x, 0.0), x)
    assert torch.equal(robustness.flipped(x, 1.0), 1 - x)
    assert torch.equal(robustness.flipped(x, 0.3, seed=1), robustness.flipped(x, 0.3, seed=1))
    with pytest.raises(Problem):
        robustness.flipped(x, 1.5)


def test_drift_is_in_standard_deviations_of_the_prior(model: LatentModel) -> None:
    clean = Batch(torch.zeros(1, 1, 4, 4))
    x = clean.x.clone()
    x[0, 0, 0, :2] = 1
    found = robustness.respond(model, Batch(x), clean)
    assert found.drift == pytest.approx(np.sqrt(2))


def test_a_prior_of_unknown_deviations_counts_as_one_of_ones(model: LatentModel) -> None:
    mixed = LatentModel(model.posterior, FlowPrior(4, 2, 8), model.likelihood)
    clean = Batch(torch.zeros(1, 1, 4, 4))
    assert robustness.respond(mixed, Batch(1 - clean.x), clean).drift == pytest.approx(2.0)


def test_overlap_is_intersection_over_union_with_the_clean_image(model: LatentModel) -> None:
    clean = torch.zeros(1, 1, 4, 4)
    clean[..., 0] = 1  # a column of four
    half = torch.zeros(1, 1, 4, 4)
    half[0, 0, 0, :2] = 1  # painted as two columns
    found = robustness.respond(model, Batch(half), Batch(clean))
    assert found.overlap == pytest.approx(4 / 8)


def test_the_rank_of_an_elbo_among_those_of_the_data(model: LatentModel) -> None:
    good = torch.zeros(1, 1, 4, 4)
    good[..., 0] = 1
    own = robustness.elbo_per_example(model, Batch(good))
    found = robustness.respond(model, Batch(good), None, np.array([own[0] - 1, own[0] - 2, own[0] + 1, own[0] + 2]))
    assert found.rank == 0.5


def test_the_triangle_is_one() -> None:
    image = robustness.triangle((1, 64, 64))[0, 0]
    widths = image.sum(1)
    assert 50 < image.sum() < 64 * 64 / 4
    assert torch.equal(image, image.flip(1)), "symmetric"
    inside = widths[widths > 0]
    assert (inside.diff() >= 0).all(), "wider and wider downwards"
