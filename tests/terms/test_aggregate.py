"""The aggregate posterior by the batch: the weight matrix, its expectation over all batches, and the sum of the parts."""

from __future__ import annotations

import math
from itertools import permutations

import pytest
import torch
from torch import Tensor, nn

from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.families.gaussian import Gaussian, StandardNormal
from elboroom.families.point import PointPosterior
from elboroom.terms.aggregate import Estimator, dimwise_kl, index_code_mi, log_importance, total_correlation

ESTIMATORS: tuple[Estimator, ...] = ("mss-sym", "mss", "mws")


class Table(nn.Module):
    """q(z|x_n) read off a table by the index of the example."""

    family = Gaussian

    def __init__(self, loc: Tensor, logvar: Tensor) -> None:
        super().__init__()
        self.loc, self.logvar = nn.Parameter(loc), nn.Parameter(logvar)

    def forward(self, batch: Batch) -> Gaussian:
        assert batch.index is not None
        return Gaussian(self.loc[batch.index], self.logvar[batch.index])


def model(n: int, latent: int) -> LatentModel:
    noise = torch.Generator().manual_seed(1)
    loc, logvar = torch.randn(2, n, latent, generator=noise, dtype=torch.float64)
    return LatentModel(Table(loc, logvar - 1), StandardNormal(latent).double(), nn.Identity())


def draw_of(model: LatentModel, rows: Tensor, z: Tensor | None = None) -> Draw:
    draw = Draw(model, Batch(torch.empty(len(rows)), index=rows))
    if z is not None:
        draw.__dict__["z"] = z[rows].unsqueeze(0)
    return draw


def log_q(draw: Draw) -> Tensor:
    return draw.q.log_prob(draw.z[0])


# -- the weights -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [64, 1000, 737_280])
@pytest.mark.parametrize("batch", [2, 6, 64])
@pytest.mark.parametrize("estimator", ["mss-sym", "mss"])
def test_rows_sum_to_one_with_one_nth_on_the_diagonal(estimator: Estimator, batch: int, n: int) -> None:
    """Fault 1: the widespread matrix puts 1/N into column 0; at B = 6, N = 1000 one of its rows sums to 1.198."""
    weight = log_importance(batch, batch, n, estimator).double().exp()
    torch.testing.assert_close(weight.sum(1), torch.ones(batch, dtype=torch.float64), atol=1e-6, rtol=0)
    torch.testing.assert_close(weight.diagonal(), torch.full((batch,), 1 / n, dtype=torch.float64), rtol=1e-5, atol=0)
    others = weight[~torch.eye(batch, dtype=torch.bool)].view(batch, batch - 1)
    m = batch - 1
    if estimator == "mss-sym":
        torch.testing.assert_close(others, torch.full_like(others, (n - 1) / (n * m)), rtol=1e-5, atol=0)
    else:
        torch.testing.assert_close(
            others.min(1).values, torch.full_like(others[:, 0], (n - m) / (n * m)), rtol=1e-5, atol=0
        )
        rest = others.sort(1).values[:, 1:]
        torch.testing.assert_close(rest, torch.full_like(rest, 1 / m), rtol=1e-5, atol=0)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_rows_of_a_rank_are_rows_of_the_whole(estimator: Estimator) -> None:
    whole = log_importance(8, 8, 100, estimator)
    assert torch.equal(log_importance(4, 8, 100, estimator, first=4), whole[4:])
    assert torch.equal(log_importance(4, 8, 100, estimator), whole[:4])


def test_the_symmetric_weights_of_a_full_batch_are_equal() -> None:
    torch.testing.assert_close(log_importance(7, 7, 7, "mss-sym"), torch.full((7, 7), -math.log(7)))


@pytest.mark.parametrize(("batch", "n"), [(1, 10), (11, 10)])
def test_a_batch_that_cannot_be_stratified_is_refused(batch: int, n: int) -> None:
    with pytest.raises(Problem, match="--batch-size"):
        log_importance(batch, batch, n, "mss")


# -- what they estimate ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [2, 3, 4, 5])
@pytest.mark.parametrize("estimator", ["mss-sym", "mss"])
def test_over_all_batches_the_mean_is_the_aggregate(estimator: Estimator, batch: int) -> None:
    """Every ordered batch of a data set of five points: the mean of exp(log q(z)) is (1/5) sum_n q(z|x_n)."""
    five = model(5, 2)
    z = five.posterior(Batch(torch.empty(5), index=torch.arange(5))).rsample().detach()
    total, count = torch.zeros(5, dtype=torch.float64), torch.zeros(5, dtype=torch.float64)
    with torch.no_grad():
        for rows in map(torch.tensor, permutations(range(5), batch)):
            draw = draw_of(five, rows, z)
            total[rows] += (log_q(draw) - index_code_mi(5, estimator)(draw)).exp()
            count[rows] += 1
        every = Gaussian(five.posterior.loc, five.posterior.logvar)
        exact = every.log_prob(z.unsqueeze(1)).exp().mean(1)
    torch.testing.assert_close(total / count, exact, rtol=1e-6, atol=0)


def test_mws_is_biased_low() -> None:
    five, total, batches = model(5, 2), torch.zeros(5, dtype=torch.float64), list(permutations(range(5), 3))
    z = five.posterior(Batch(torch.empty(5), index=torch.arange(5))).rsample().detach()
    with torch.no_grad():
        for rows in map(torch.tensor, batches):
            draw = draw_of(five, rows, z)
            total[rows] += (log_q(draw) - index_code_mi(5, "mws")(draw)).exp() / (len(batches) * 3 / 5)
        exact = Gaussian(five.posterior.loc, five.posterior.logvar).log_prob(z.unsqueeze(1)).exp().mean(1)
    assert (total < exact).all()


def test_the_formulas_of_mws() -> None:
    """log q(z_i) = logsumexp_m L[i, m] - log(N B), per dimension for the marginals, with their constants."""
    n, rows = 50, torch.arange(6)
    draw = draw_of(model(n, 3), rows)
    pairs = torch.stack(
        [torch.stack([draw_of(draw.model, rows[m : m + 1]).q.log_prob_per_dim(z)[0] for m in rows]) for z in draw.z[0]]
    )
    joint = torch.logsumexp(pairs.sum(-1), 1) - math.log(n * 6)
    marginals = (torch.logsumexp(pairs, 1) - math.log(n * 6)).sum(-1)
    close = {"rtol": 1e-6, "atol": 1e-5}
    torch.testing.assert_close(draw.log_q_pairs, pairs)
    torch.testing.assert_close(total_correlation(n, "mws")(draw), joint - marginals, **close)
    torch.testing.assert_close(index_code_mi(n, "mws")(draw), log_q(draw) - joint, **close)
    torch.testing.assert_close(dimwise_kl(n, "mws")(draw), marginals - draw.p.log_prob(draw.z[0]), **close)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("batch", [2, 8])
def test_the_three_parts_are_the_sampled_rate(estimator: Estimator, batch: int) -> None:
    """MI + TC + dimension-wise KL = log q(z|x) - log p(z) for any estimator: the logs telescope."""
    draw = draw_of(model(40, 3), torch.arange(batch))
    parts = (
        index_code_mi(40, estimator)(draw) + total_correlation(40, estimator)(draw) + dimwise_kl(40, estimator)(draw)
    )
    torch.testing.assert_close(parts, log_q(draw) - draw.p.log_prob(draw.z[0]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("estimator", ["mss-sym", "mss"])
def test_identical_posteriors_share_nothing(estimator: Estimator) -> None:
    """One posterior for all x: MI = 0, TC = 0 (it factorises), dwKL = log q - log p."""
    same = LatentModel(
        Table(torch.ones(9, 3).double(), torch.zeros(9, 3).double()), StandardNormal(3).double(), nn.Identity()
    )
    draw = draw_of(same, torch.arange(9))
    zero = torch.zeros(9, dtype=torch.float64)
    torch.testing.assert_close(index_code_mi(100, estimator)(draw), zero, atol=1e-6, rtol=0)
    torch.testing.assert_close(total_correlation(100, estimator)(draw), zero, atol=1e-6, rtol=0)


def test_far_apart_posteriors_tell_everything() -> None:
    """All N examples in the batch, far from each other: MI = log N."""
    far = LatentModel(
        Table(100 * torch.arange(8).double().unsqueeze(1).expand(8, 2).clone(), torch.zeros(8, 2).double()),
        StandardNormal(2).double(),
        nn.Identity(),
    )
    mi = index_code_mi(8)(draw_of(far, torch.arange(8)))
    torch.testing.assert_close(mi, torch.full_like(mi, math.log(8)), atol=1e-6, rtol=0)


def test_the_names_say_which_estimator() -> None:
    assert total_correlation(10, "mws").name == "tc_mws"
    assert total_correlation(10, "mss").couples


def test_a_point_posterior_is_refused() -> None:
    point = LatentModel(PointPosterior(nn.Identity()), StandardNormal(2), nn.Identity())
    for make in (index_code_mi, total_correlation, dimwise_kl):
        with pytest.raises(Problem, match="--posterior gaussian"):
            make(10).check(point)
