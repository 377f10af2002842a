"""The error and the looseness of a bound, where few weights dominate and where none does."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from elboroom.evaluate.likelihood.dealt import Dealt

ROWS, REPEATS = 200, 60


def weights(draws: int, spread: float, seed: int, rows: int = ROWS) -> Tensor:
    """Log-normal weights of mean one, so that the bound wants to be 0, (K, n)."""
    noise = torch.randn(draws, rows, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return spread * noise - spread**2 / 2


@pytest.mark.parametrize("draws", [4, 10, 100])
@pytest.mark.parametrize("spread", [0.3, 2.0, 5.0])
def test_the_variance_is_that_of_repeats(draws: int, spread: float) -> None:
    """At a spread of 5 nats the delta method says a third of it."""
    found = [Dealt.of(weights(draws, spread, seed)) for seed in range(REPEATS)]
    scatter = float(np.std([dealt.bounds().sum().item() for dealt in found], ddof=1))
    said = math.sqrt(np.mean([dealt.variance for dealt in found]))
    assert said == pytest.approx(scatter, rel=0.3)


def test_two_draws_have_an_error_that_is_not_too_small() -> None:
    found = [Dealt.of(weights(2, 3.0, seed)) for seed in range(REPEATS)]
    scatter = float(np.std([dealt.bounds().sum().item() for dealt in found], ddof=1))
    assert 0.9 * scatter < math.sqrt(np.mean([dealt.variance for dealt in found])) < 1.8 * scatter


@pytest.mark.parametrize("spread", [0.5, 2.0, 5.0])
def test_at_least_the_last_gain_is_missing(spread: float) -> None:
    """And where no weight dominates it is all that is missing."""
    found = Dealt.of(weights(100, spread, 0, rows=5000))
    missing = -found.bounds().mean().item()
    assert 0 < found.gain < 1.2 * missing
    if spread < 1:
        assert found.gain == pytest.approx(missing, rel=0.4)
    half = Dealt.of(weights(50, spread, 1, rows=5000)).bounds().mean().item()
    assert found.gain == pytest.approx(-missing - half, abs=0.1)


@pytest.mark.parametrize("draws", [8, 100])
def test_more_draws_are_as_all_at_once(draws: int) -> None:
    first, second = weights(draws, 2.0, 0), weights(draws, 2.0, 1)
    order = torch.cat([torch.cat([first[p::8], second[p::8]]) for p in range(8)])  # part by part
    both, sizes = Dealt.of(first).and_of(Dealt.of(second)), [len(first[p::8]) * 2 for p in range(8)]
    hands = torch.stack([torch.logsumexp(hand, 0) for hand in order.split(sizes)])
    assert torch.allclose(both.parts, hands)
    assert both.counts == tuple(sizes)
    assert both.count == 2 * draws
    assert torch.allclose(both.bounds(), torch.logsumexp(order, 0) - math.log(2 * draws))
    assert torch.allclose(both.effective, 1 / torch.softmax(order, 0).square().sum(0))
    assert both.elbo == pytest.approx(order.mean().item())


def test_equal_weights_have_no_error_and_no_gain() -> None:
    dealt = Dealt.of(torch.full((100, 7), -3.0, dtype=torch.float64))
    assert dealt.variance == pytest.approx(0.0, abs=1e-20)
    assert dealt.gain == pytest.approx(0.0, abs=1e-12)
    assert dealt.effective.tolist() == pytest.approx([100.0] * 7)
