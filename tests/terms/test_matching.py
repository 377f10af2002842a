"""Terms that hold q(z) to the prior without a critic: MMD, KL(p || q(z)), transport costs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

from elboroom.build.parts import Choices, Parts
from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.method import Method, adam
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.divergences.kernels import off_diagonal_mean
from elboroom.families.autoregressive import AutoregressivePrior
from elboroom.families.ball import WrappedPrior
from elboroom.families.flow import FlowPosterior
from elboroom.families.gaussian import Gaussian, StandardNormal
from elboroom.families.pixels import BernoulliLikelihood, GaussianLikelihood
from elboroom.families.point import PointPosterior
from elboroom.families.sphere import SpherePrior
from elboroom.families.structured import AnisotropicNormal, ClusteredPrior, SparsePrior, StudentPrior
from elboroom.geometry.ball import Ball
from elboroom.methods import card
from elboroom.terms import transport
from elboroom.terms.evidence import nll
from elboroom.terms.transport import (
    Kernel,
    Width,
    cost,
    inclusive_kl,
    kernel_matrix,
    mmd,
    mmd_per_dim,
    own_spread,
    total_variance,
)
from elboroom.training.batches import Batches, reseed
from elboroom.training.loop import Loop


class Codes(nn.Module):
    """q(z|x) = N(x, exp(u))."""

    family = Gaussian

    def forward(self, batch: Batch) -> Gaussian:
        assert batch.u is not None
        return Gaussian(batch.x, batch.u)


def draw_of(loc: Tensor, logvar: Tensor | float = -60.0, prior: nn.Module | None = None) -> Draw:
    """Posteriors with these means, (B, J); almost points unless said."""
    spread = logvar if isinstance(logvar, Tensor) else torch.full_like(loc, logvar)
    model = LatentModel(Codes(), (prior or StandardNormal(loc.shape[1])).double(), nn.Identity())
    return Draw(model, Batch(loc, spread))


def drawing(monkeypatch: pytest.MonkeyPatch, points: Tensor) -> None:
    """Lets the prior draw these points."""
    monkeypatch.setattr(transport, "prior_draws", lambda draw, moves=False: points)


def quantiles(n: int) -> Tensor:
    """n points that stand for N(0, 1), (n, 1)."""
    return Normal(0.0, 1.0).icdf((torch.arange(n).double() + 0.5) / n).unsqueeze(1)


# -- MMD ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "s"), [((0.0, 0.0), 1.0), ((0.7, -0.3), 0.6), ((1.5, 0.0), 2.0)])
def test_mmd_of_gaussian_codes_is_closed(m: tuple[float, float], s: float) -> None:
    """The U-statistic over batches of codes N(m, s^2 I) has the closed form as its mean; J = 2, so h^2 = 1."""
    found = []
    for _ in range(60):
        codes = torch.tensor(m).double() + s * torch.randn(200, 2).double()
        found.append(mmd("rbf", unbiased=True).mean(draw_of(codes)).item())
    shift = sum(v * v for v in m)
    truth = 1 / 3 + 1 / (1 + 2 * s * s) - 2 / (2 + s * s) * math.exp(-shift / (2 * (2 + s * s)))
    assert abs(np.mean(found) - truth) < 4 * np.std(found, ddof=1) / math.sqrt(len(found))
    if s == 1.0:
        assert min(found) < 0, "unbiased, and so at times negative"


@pytest.mark.parametrize(("kernel", "own"), [("rbf", 1.0), ("imq", 7.0)])
def test_equal_lists_through_the_term(kernel: Kernel, own: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """z = zt gives (2/n)(kbar_off - k(z, z)), below zero: no clamp, no root; V is zero, and so is its gradient."""
    n = 30
    codes = torch.randn(n, 3).double().requires_grad_()
    draw = draw_of(codes)
    drawing(monkeypatch, draw.z[0].detach())
    off = off_diagonal_mean(kernel_matrix(kernel, draw.z[0], draw.z[0], 3.0)).item()
    found = mmd(kernel, unbiased=True).mean(draw).item()
    assert found == pytest.approx(2 / n * (off - own), rel=1e-9)
    assert found < 0
    biased = mmd(kernel).mean(draw)
    assert biased.item() == pytest.approx(0, abs=1e-12)
    assert torch.autograd.grad(biased, codes)[0].abs().max() < 1e-12


@pytest.mark.parametrize("kernel", ["rbf", "imq"])
def test_biased_and_unbiased_differ_by_the_diagonals(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    n, own = 20, {"rbf": 1.0, "imq": 7.0}[kernel]
    draw, prior = draw_of(torch.randn(n, 3).double() + 1), torch.randn(n, 3).double()
    drawing(monkeypatch, prior)
    offs = [off_diagonal_mean(kernel_matrix(kernel, x, x, 3.0)).item() for x in (draw.z[0], prior)]
    difference = (mmd(kernel).mean(draw) - mmd(kernel, unbiased=True).mean(draw)).item()
    assert difference == pytest.approx(sum((own - off) / n for off in offs), rel=1e-9)


def test_the_imq_kernel_has_seven_scales_of_twice_the_variance() -> None:
    x, y = torch.randn(2, 5, 4).double()
    r2 = (x.unsqueeze(1) - y).square().sum(-1)
    by_hand = sum(8 * s / (8 * s + r2) for s in (0.1, 0.2, 0.5, 1, 2, 5, 10))
    torch.testing.assert_close(kernel_matrix("imq", x, y, 4.0), by_hand)


@pytest.mark.parametrize(
    "prior",
    [
        StandardNormal(4),
        AnisotropicNormal(torch.tensor([4.0, 2.0, 1.0, 1.0])),
        StudentPrior(torch.tensor([4.0, 2.0, 1.0, 1.0])),
        ClusteredPrior(4),
        SparsePrior(4),
        SpherePrior(4),
        AutoregressivePrior(4, 2, 0.7),
    ],
    ids=lambda prior: type(prior).__name__,
)
def test_a_kernel_is_as_wide_as_the_prior(prior: nn.Module) -> None:
    """Its scale is the total variance of the prior, which is that of its draws; without one, that of N(0, I)."""
    codes = torch.randn(6, 4).double()
    z = prior.double()(Batch(codes)).sample((40_000,))
    found = float(total_variance(draw_of(codes, prior=prior)))
    assert found == pytest.approx(z.var(0).sum().item(), rel=0.03)
    assert total_variance(draw_of(codes, prior=WrappedPrior(4, Ball()))) == 4.0


def test_mmd_per_dimension_sums_the_dimensions(monkeypatch: pytest.MonkeyPatch) -> None:
    """IMQ with C = 2 {.1, .2, .5, 1, 2, 5} on each coordinate, diagonals in; blind to how coordinates hang together."""
    codes, prior = torch.randn(12, 3).double() * 2, torch.randn(12, 3).double()
    drawing(monkeypatch, prior)
    draw = draw_of(codes)
    total = 0.0
    for j in range(3):
        a, b = draw.z[0][:, j].numpy(), prior[:, j].numpy()
        for c in (0.2, 0.4, 1.0, 2.0, 4.0, 10.0):
            k = [c / (c + np.subtract.outer(x, y) ** 2) for x, y in ((a, a), (b, b), (a, b))]
            total += k[0].mean() + k[1].mean() - 2 * k[2].mean()
    assert mmd_per_dim().mean(draw).item() == pytest.approx(total, rel=1e-9)
    mixed = torch.stack([column[torch.randperm(12)] for column in draw.z[0].T], 1)
    assert mmd_per_dim().mean(draw_of(mixed)).item() == pytest.approx(total, rel=1e-9)
    assert abs((mmd("imq").mean(draw_of(mixed)) - mmd("imq").mean(draw)).item()) > 1e-4


@pytest.mark.parametrize("term", [mmd("rbf"), mmd("imq", unbiased=True), mmd_per_dim(), inclusive_kl()])
def test_the_whole_batch_is_said_to_be_coupled(term: object) -> None:
    assert term.couples  # type: ignore[attr-defined]


# -- KL(p || q(z)) -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "s"), [(0.0, 1.0), (0.7, 0.5), (-2.0, 3.0)])
def test_the_inclusive_kl_of_one_gaussian(m: float, s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows alike: KL(N(0, I) || N(m, s^2 I)), exact over points with the moments of the prior. Not the other way."""
    latent = 3
    points = math.sqrt(latent) * torch.cat([torch.eye(latent), -torch.eye(latent)]).double()
    drawing(monkeypatch, points)
    loc = torch.full((len(points), latent), m).double()
    found = inclusive_kl().mean(draw_of(loc, torch.full_like(loc, 2 * math.log(s)))).item()
    closed = kl_divergence(Normal(0.0, 1.0), Normal(m, s)).item() * latent
    assert found == pytest.approx(closed, rel=1e-6, abs=1e-9)
    if s != 1:
        other = kl_divergence(Normal(m, s), Normal(0.0, 1.0)).item() * latent
        assert abs(found - other) > 0.1


def test_the_inclusive_kl_reads_the_mixture(monkeypatch: pytest.MonkeyPatch) -> None:
    z = quantiles(4000)
    drawing(monkeypatch, z)
    loc, std = torch.tensor([[-1.0], [0.5]]).double(), torch.tensor([[0.8], [1.2]]).double()
    found = inclusive_kl()(draw_of(loc, 2 * std.log())).mean().item()
    grid = torch.linspace(-9, 9, 20_001).double()
    p = Normal(0.0, 1.0).log_prob(grid)
    q = torch.logsumexp(Normal(loc, std).log_prob(grid), 0) - math.log(2)
    assert found == pytest.approx(((p.exp() * (p - q)).sum() * 18 / 20_000).item(), abs=1e-3)


def test_posteriors_at_the_clusters_cost_nothing() -> None:
    """q(z) is the clustered prior itself: zero for every draw, not only in the mean."""
    prior = ClusteredPrior(2)
    centres = prior.centres.double()
    found = inclusive_kl()(draw_of(centres, torch.full_like(centres, math.log(0.03)), prior))
    assert found.shape == (4,)
    assert found.abs().max() < 1e-9
    lost = centres.clone()
    lost[0] = lost[1]
    assert inclusive_kl().mean(draw_of(lost.repeat(50, 1), math.log(0.03), prior)) > 1, "a cluster without codes"


def test_the_inclusive_kl_needs_posteriors_that_can_be_gathered() -> None:
    flow = FlowPosterior(nn.Identity(), 2, 1, 1, 4)
    for posterior in (PointPosterior(nn.Identity()), flow):
        with pytest.raises(Problem, match="--posterior gaussian or another divergence"):
            inclusive_kl().check(LatentModel(posterior, StandardNormal(2), nn.Identity()))


# -- transport costs ---------------------------------------------------------------------------------------------------


class Decoder(nn.Module):
    """Images of 2 x 3 x 4 that do not depend on z."""

    def __init__(self, x: Tensor) -> None:
        super().__init__()
        self.x = nn.Parameter(x)

    def forward(self, z: Tensor, u: Tensor | None = None) -> Tensor:
        return self.x.expand(len(z), *self.x.shape)


def test_the_squared_cost_is_summed_over_pixels_without_a_half() -> None:
    image, x = torch.randn(2, 3, 4).double(), torch.rand(5, 2, 3, 4).double()
    made = GaussianLikelihood(Decoder(image), 3).double()
    z = torch.zeros(5, 2).double()
    draw = Draw(LatentModel(PointPosterior(nn.Identity()), StandardNormal(2), made), Batch(x))
    draw.__dict__["z"] = z.unsqueeze(0)
    by_hand = ((x - image) ** 2).sum((1, 2, 3))
    torch.testing.assert_close(cost("squared")(draw), by_hand)
    torch.testing.assert_close(nll()(draw), by_hand / 2 + 12 * math.log(2 * math.pi))
    assert cost("nll").name == "nll"
    assert cost("squared").name == "cost"
    draw = Draw(
        LatentModel(PointPosterior(nn.Identity()), StandardNormal(2), BernoulliLikelihood(made.net, 3)), Batch(x)
    )
    draw.__dict__["z"] = z.unsqueeze(0)
    torch.testing.assert_close(cost("squared")(draw), ((x - torch.sigmoid(image)) ** 2).sum((1, 2, 3)))


def test_a_squared_error_of_text_is_refused_with_what_to_use(sentences: DataSet) -> None:
    model = Parts(sentences.about, Choices(latent=3, embed=4, hidden=5)).vae("point")
    with pytest.raises(Problem, match="needs images or vectors, and the data is text; use --reconstruction nll"):
        cost("squared").check(model)


def test_the_spread_is_the_kl_to_a_unit_gaussian_at_the_same_place() -> None:
    loc, logvar = torch.randn(2, 6, 3).double()
    found = own_spread()(draw_of(loc, logvar))
    torch.testing.assert_close(found, kl_divergence(Normal(loc, (logvar / 2).exp()), Normal(loc, 1.0)))
    assert not own_spread()(draw_of(loc, torch.zeros_like(loc))).any()
    with pytest.raises(Problem, match="--spread"):
        own_spread().check(LatentModel(PointPosterior(nn.Identity()), StandardNormal(2), nn.Identity()))


def wae(data: DataSet, **options: float) -> tuple[Method, Loop]:
    reseed(0)
    choices = Choices(latent=2, posterior="gaussian", net="mlp-300")
    method = card("wae-mmd").build(Parts(data.about, choices, 300, data), options)
    method.prepare(adam(3e-3))
    return method, Loop(method, Batches(data, "train", 50, 0, (), torch.device("cpu")), 0)


def sigma(method: Method, data: DataSet) -> float:
    with torch.no_grad():
        return float(method.model.posterior(Batch(data.x(data.splits["train"]))).stddev.mean())


@pytest.mark.slow
def test_sigma_falls_unless_the_spread_holds_it(vectors: DataSet) -> None:
    """Bahuleyan 2019, Thm 1: with gradients through samples alone a Gaussian encoder turns deterministic."""
    free, loop = wae(vectors)
    held, other = wae(vectors, spread=20.0)
    for step in range(300):
        loop.step(step)
        logged = other.step(step)
    assert sigma(free, vectors) < 0.1
    assert sigma(held, vectors) > 3 * sigma(free, vectors)
    assert float(logged["spread"]) >= 0


def test_the_spread_of_a_gaussian_encoder_is_logged_without_a_weight_too(vectors: DataSet) -> None:
    """That is how a user sees it fall."""
    assert {"spread", "sigma"} & wae(vectors)[1].step(0).keys()


@pytest.mark.parametrize(("width", "v"), [("j", 3.0), ("j-squared", 9.0)])
def test_the_width_of_the_kernel_is_j_or_its_square(width: Width, v: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against exp(-r^2 / v) written out."""
    draw, y = draw_of(torch.randn(6, 3).double() + 1), torch.randn(6, 3).double()
    drawing(monkeypatch, y)
    x = draw.z[0]
    within, prior, across = (torch.exp(-torch.cdist(a, b).square() / v).mean() for a, b in ((x, x), (y, y), (x, y)))
    assert mmd("rbf", width=width).mean(draw).item() == pytest.approx((within + prior - 2 * across).item(), rel=1e-9)
    with pytest.raises(Problem, match="of the kernel rbf"):
        mmd("imq", width="j-squared")
