"""A Draw computes what is asked for, when it is asked for, once; pairs say what can be asked."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.kl import has_density, kl_divergence, require_density, require_kl
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.families.gaussian import ConditionalNormal, Gaussian, GaussianPosterior, StandardNormal
from elboroom.families.pixels import BernoulliLikelihood
from elboroom.families.point import Point
from elboroom.terms.adversarial import critic_nll, density_ratio
from elboroom.terms.aggregate import total_correlation
from elboroom.terms.evidence import kl, nll


class Counting(nn.Module):
    """A linear net that counts its calls."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear, self.calls = nn.Linear(inputs, outputs), 0

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        self.calls += 1
        out: Tensor = self.linear(x if u is None else torch.cat([x, u], 1))
        return out


def model(given: int = 0) -> LatentModel:
    prior = ConditionalNormal(2, given) if given else StandardNormal(2)
    return LatentModel(GaussianPosterior(Counting(6 + given, 4)), prior, BernoulliLikelihood(Counting(2 + given, 6), 1))


BATCH = Batch(torch.rand(5, 6), index=torch.arange(5))


def calls(it: LatentModel) -> tuple[int, int]:
    return it.posterior.net.calls, it.likelihood.net.calls


def test_nothing_is_computed_before_it_is_asked_for_and_nothing_twice() -> None:
    it = model()
    draw = Draw(it, BATCH, samples=3)
    assert calls(it) == (0, 0)
    kl()(draw)
    total_correlation(50)(draw)
    critic = nn.Linear(2, 2)
    density_ratio(critic)(draw)
    assert calls(it) == (1, 0), "neither the rate nor the aggregate nor a critic runs the decoder"
    nll()(draw)
    nll()(draw)
    assert calls(it) == (1, 1)
    assert draw.z.shape == (3, 5, 2)
    assert draw.nll.shape == (3, 5)
    assert draw.rate.shape == (5, 2)
    assert draw.log_q_pairs.shape == (5, 5, 2)


def test_the_critic_reads_codes_of_two_batches_and_no_decoder() -> None:
    it = model()
    draw = Draw(it, BATCH, another=lambda: Draw(it, BATCH))
    critic_nll(nn.Linear(2, 2))(draw)
    assert calls(it) == (2, 0)
    assert draw.other is draw.other
    assert draw.other is not draw
    with pytest.raises(RuntimeError, match="second batch"):
        _ = Draw(it, BATCH).other


def test_the_diagonal_of_the_pairs_is_log_q() -> None:
    draw = Draw(model(), BATCH)
    torch.testing.assert_close(draw.log_q_pairs.sum(-1).diagonal(), draw.q.log_prob(draw.z[0]))
    expected = draw.q.log_prob_per_dim(draw.z[0, 3])  # sample 3 under every posterior
    torch.testing.assert_close(draw.log_q_pairs[3], expected)


def test_k_samples_of_a_conditional_model_keep_their_labels() -> None:
    """z of shape (K, B, J) meets u of shape (B, U) in the right order."""
    it = model(given=3)
    u = torch.eye(3).repeat(2, 1)[:5]
    draw = Draw(it, Batch(BATCH.x, u), samples=4)
    for k in range(4):
        torch.testing.assert_close(draw.px.logits[k], it.likelihood.net(draw.z[k], u))


def test_keep_makes_once() -> None:
    draw, made = Draw(model(), BATCH), []
    for _ in range(3):
        assert draw.keep("key", lambda: made.append(1) or 7) == 7
    assert len(made) == 1


def test_a_batch_moves_with_all_that_it_has() -> None:
    batch = Batch(torch.rand(2, 3), torch.eye(2), torch.ones(2), torch.arange(2), step=9)
    moved = batch.to(torch.device("meta"))
    assert moved.step == 9
    assert all(t.device.type == "meta" for t in (moved.x, moved.u, moved.lengths, moved.index))  # type: ignore[union-attr]
    assert Batch(torch.rand(2)).to(torch.device("cpu")).u is None


# -- pairs -------------------------------------------------------------------------------------------------------------


class Other(Gaussian):
    """A Gaussian whose KL nobody has registered."""


def test_a_pair_without_a_formula_is_sampled() -> None:
    loc, logvar = torch.randn(2, 6, 3, dtype=torch.float64)
    p = Gaussian(torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64))
    closed = kl_divergence(Gaussian(loc, logvar), p, lambda: loc).sum(-1)
    q = Other(loc, logvar)
    z = q.rsample((20_000,))
    sampled = kl_divergence(q, p, lambda: z)
    assert sampled.shape == (6,)
    error = (q.log_prob(z) - p.log_prob(z)).std(0) / 20_000**0.5
    assert ((sampled - closed).abs() < 5 * error).all()


def test_a_pair_that_has_none_is_refused() -> None:
    with pytest.raises(Problem, match=r"q\(z\|x\), which is point, has none"):
        require_kl(Point, Gaussian)
    with pytest.raises(Problem, match="needs the density"):
        require_density(Point, "this")
    require_kl(Other, Gaussian)
    assert has_density(Gaussian)
    assert not has_density(Point)


def test_the_families_of_a_model(pixels: DataSet) -> None:
    kinds: tuple[Any, Any] = model().families
    assert kinds == (Gaussian, Gaussian)
