"""Posteriors that remember class means, that are not told a label, or that are read in two ways."""

from __future__ import annotations

import torch
from torch import nn

from elboroom.core.batch import Batch
from elboroom.core.kl import kl_divergence
from elboroom.families.gaussian import Gaussian, GaussianPosterior, StandardNormal
from elboroom.families.reading import Blind
from elboroom.families.styled import MEMORY, RECENT, ClassMeans, MisreadPosterior, Remembered


class Same(nn.Module):
    """(mu, log sigma^2) = (x, u or zeros)."""

    def forward(self, x: torch.Tensor, u: torch.Tensor | None = None) -> torch.Tensor:
        return torch.cat([x, torch.zeros_like(x) if u is None else u], 1)


def remembered() -> Remembered:
    return Remembered(GaussianPosterior(Same()), {"style": ClassMeans("label", 1, 2, slice(1, 3))})


def test_means_are_those_of_each_class_in_the_block_of_the_column() -> None:
    q, x = remembered(), torch.tensor([[9.0, 1, 2], [9, 3, 4], [9, 5, 6]])
    q(Batch(x, y=torch.tensor([[0, 0], [0, 0], [0, 1]])))
    torch.testing.assert_close(q.styles["label"].means, torch.tensor([[2.0, 3], [5, 6]]))


def test_it_forgets_slowly_and_remembers_only_in_training() -> None:
    q, y = remembered(), torch.tensor([[0, 0]])
    q(Batch(torch.tensor([[0.0, 1, 1]]), y=y, step=1_000_000))
    q(Batch(torch.tensor([[0.0, 3, 3]]), y=y, step=1_000_001))
    torch.testing.assert_close(q.styles["label"].means[0], torch.full((2,), (MEMORY + 3) / (MEMORY + 1)))
    assert q.styles["label"].means[1].tolist() == [0, 0]
    before = q.styles["label"].total.clone()
    q.eval()(Batch(torch.ones(1, 3), y=y))
    q.train()(Batch(torch.ones(1, 3)))
    assert torch.equal(q.styles["label"].total, before)


def test_what_an_early_encoder_said_is_forgotten() -> None:
    q, y = remembered(), torch.tensor([[0, 0]])
    for step in range(300):  # codes grow from 0 to 1 as the encoder learns
        q(Batch(torch.full((1, 3), min(1.0, step / 200)), y=y, step=step))
    assert q.styles["label"].means[0].min() > 0.99
    assert MEMORY > 300 / (300 + RECENT)


def test_a_blind_encoder_is_not_told_the_label() -> None:
    x, u = torch.zeros(2, 3), torch.ones(2, 3)
    told, blind = GaussianPosterior(Same()), Blind(GaussianPosterior(Same()))
    assert told(Batch(x, u)).logvar.max() == 1
    assert blind(Batch(x, u)).logvar.max() == 0


def test_a_misread_head_has_the_rate_of_one_reading_and_the_draws_of_the_other() -> None:
    batch, prior = Batch(torch.zeros(4, 3), torch.full((4, 3), -1.0)), StandardNormal(3)
    right, wrong = GaussianPosterior(Same())(batch), MisreadPosterior(GaussianPosterior(Same()))(batch)
    rates = [kl_divergence(q, prior(batch), q.rsample) for q in (right, wrong)]
    measured = MisreadPosterior(GaussianPosterior(Same())).eval()(batch)  # the law of the draws: bounds hold for it
    torch.testing.assert_close(measured.stddev, torch.full((4, 3), -1.0).exp())
    assert torch.equal(*rates)
    assert rates[0].shape == (4, 3)
    torch.manual_seed(0)
    noise = torch.randn(1, 4, 3)
    torch.manual_seed(0)
    torch.testing.assert_close(wrong.rsample((1,)), torch.exp(torch.tensor(-1.0)) * noise)
    assert isinstance(wrong.part(slice(0, 2)), Gaussian)
