"""Structured priors: each is a density, its samples follow it, and two processes draw what one would."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor, nn

from elboroom.build.parts import Choices, Parts
from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.data.dataset import About
from elboroom.families.gaussian import ConditionalNormal, ScaledNormal, StandardNormal
from elboroom.families.structured import AnisotropicNormal, ClusteredPrior, SparsePrior, StudentPrior
from elboroom.terms.evidence import kl

NOTHING = Batch(torch.empty(0))
PRIORS: dict[str, Callable[[int], nn.Module]] = {
    "normal": StandardNormal,
    "anisotropic": lambda d: AnisotropicNormal(torch.linspace(3, 0.5, d)),
    "student": lambda d: StudentPrior(torch.linspace(3, 0.5, d)),
    "clustered": ClusteredPrior,
    "sparse": SparsePrior,
    "scaled": lambda d: ScaledNormal(d, 1.7),
    "a wide spike": lambda d: SparsePrior(d, 0.3, 0.4),
}


def prior(name: str, latent: int) -> Any:
    torch.manual_seed(0)
    return PRIORS[name](latent).double()(NOTHING)


def grid(latent: int) -> tuple[Tensor, Tensor]:
    """Points that are dense near zero, where spikes are, and reach far, where tails are; each with its volume."""
    t = torch.linspace(-1, 1, 4001 if latent == 1 else 801).double()
    scale = 7.0 if latent == 2 else 9.0
    axis, slope = torch.sinh(scale * t) / 40, scale * torch.cosh(scale * t) / 40
    step = float(t[1] - t[0])
    points = torch.cartesian_prod(*[axis] * latent).view(-1, latent)
    weights = torch.cartesian_prod(*[slope * step] * latent).view(-1, latent).prod(-1)
    return points, weights


@pytest.mark.parametrize("latent", [1, 2])
@pytest.mark.parametrize("name", PRIORS)
def test_it_integrates_to_one(name: str, latent: int) -> None:
    points, weights = grid(latent)
    density = prior(name, latent).log_prob(points).exp()
    assert (density * weights).sum().item() == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("latent", [1, 2])
@pytest.mark.parametrize("name", PRIORS)
def test_its_samples_follow_its_density(name: str, latent: int) -> None:
    """Kolmogorov-Smirnov of each coordinate against the marginal by quadrature, and the mean log-density."""
    p, n = prior(name, latent), 20_000
    z = p.sample((n,))
    assert z.shape == (n, latent)
    assert not z.requires_grad
    points, weights = grid(latent)
    mass = p.log_prob(points).exp() * weights
    for j in range(latent):
        axis, place = torch.unique(points[:, j], return_inverse=True)
        marginal = torch.zeros(len(axis)).double().index_add_(0, place, mass).numpy()
        uniform = np.interp(z[:, j].numpy(), axis.numpy(), marginal.cumsum() - marginal / 2)
        assert stats.kstest(uniform, "uniform").pvalue > 1e-4
    found, entropy = p.log_prob(z), (mass * p.log_prob(points)).sum().item()
    assert abs(found.mean().item() - entropy) < 5 * found.std().item() / math.sqrt(n) + 2e-3


@pytest.mark.parametrize("name", PRIORS)
def test_shapes_and_mean(name: str) -> None:
    p = prior(name, 3)
    assert p.log_prob(torch.randn(4, 5, 3).double()).shape == (4, 5)
    assert p.sample((7,)).shape == (7, 3)
    assert not p.mean.any()
    assert p.mean.shape == (3,)


@pytest.mark.parametrize("name", PRIORS)
def test_two_processes_draw_what_one_would(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise is drawn for the global batch and sliced; else every process compares its codes with the same few draws."""
    p = prior(name, 2)
    torch.manual_seed(1)
    whole = p.sample((6,))
    parts = []
    monkeypatch.setattr(distributed, "world", lambda: 2)
    for rank in (0, 1):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        torch.manual_seed(1)
        parts.append(p.sample((3,)))
    torch.testing.assert_close(torch.cat(parts), whole)


# -- each by its formula -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learned", [False, True])
def test_the_anisotropic_prior_has_mean_variance_one(learned: bool) -> None:
    made = AnisotropicNormal(torch.tensor([6.0, 3.0, 0.6]), learned)
    torch.testing.assert_close(made(NOTHING).variance, torch.tensor([6.0, 3.0, 0.6]) / 3.2)
    assert isinstance(made.logvar, nn.Parameter) == learned
    assert "logvar" in made.state_dict(), "what was read off the data is kept"
    if learned:
        posterior = ConditionalNormal(3, 2)
        draw = Draw(LatentModel(posterior, made, nn.Identity()), Batch(torch.empty(2), torch.eye(2)))
        kl().mean(draw).backward()
        assert made.logvar.grad is not None
        torch.testing.assert_close(made.logvar.grad, 0.5 * (1 - torch.exp(-made.logvar.detach())))


def test_the_heavy_tailed_prior_is_student_t_with_nine_degrees() -> None:
    p = prior("student", 2)
    scale = torch.tensor([3.0, 0.5]).div(1.75).sqrt().numpy()
    z = torch.randn(50, 2).double() * 4
    truth = stats.t.logpdf(z.numpy(), 9, scale=scale).sum(-1)
    np.testing.assert_allclose(p.log_prob(z).numpy(), truth, rtol=1e-6)
    far = torch.full((1, 2), 40.0).double()
    assert p.log_prob(far) > prior("anisotropic", 2).log_prob(far)


def test_the_clusters_are_four_gaussians_of_variance_003() -> None:
    p = prior("clustered", 2)
    centres = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])
    z = torch.randn(50, 2).double()
    by_hand = np.log(sum(0.25 * stats.multivariate_normal.pdf(z.numpy(), c, 0.03 * np.eye(2)) for c in centres))
    np.testing.assert_allclose(p.log_prob(z).numpy(), by_hand, rtol=1e-9)
    at = p.sample((4000,)).unsqueeze(1).sub(torch.from_numpy(centres)).square().sum(-1).argmin(1)
    assert torch.bincount(at, minlength=4).min() > 1000 - 5 * math.sqrt(750)
    more = ClusteredPrior(5)(NOTHING)
    assert more.loc.shape == (4, 5)
    assert not more.loc[:, 2:].any()


@pytest.mark.parametrize("count", [1, 3, 4, 6])
def test_so_many_clusters_lie_evenly_on_the_circle(count: int) -> None:
    p = ClusteredPrior(3, 0.1, count).double()(NOTHING)
    assert p.loc.shape == (count, 3)
    np.testing.assert_allclose(p.loc.norm(dim=-1), 1, rtol=1e-6)
    if count > 1:
        gaps = torch.cdist(p.loc, p.loc).fill_diagonal_(9).min(1).values
        np.testing.assert_allclose(gaps, 2 * math.sin(math.pi / count), rtol=1e-6)
    z = torch.randn(50, 3).double()
    each = [stats.multivariate_normal.pdf(z.numpy(), c.numpy(), 0.1 * np.eye(3)) for c in p.loc]
    np.testing.assert_allclose(p.log_prob(z).numpy(), np.log(np.mean(each, 0)), rtol=1e-9)
    with pytest.raises(Problem, match="need two dimensions"):
        ClusteredPrior(1, clusters=5)


@pytest.mark.parametrize(
    ("options", "variance"),
    [
        ({"prior": "normal", "prior_sigma": 2.0}, 4.0),
        ({"prior": "clustered", "clusters": 6, "cluster_variance": 0.5}, 0.5 + 0.5),  # and half a unit of the circle
        ({"prior": "sparse", "sparse_share": 0.5, "sparse_sigma": 0.2}, 0.5 + 0.5 * 0.04),
    ],
)
def test_width_and_number_are_options(options: dict[str, Any], variance: float) -> None:
    parts = Parts(About("any", "vectors", (4,), 9, {}, 0), Choices(latent=2, **options))
    p = parts.vae().prior(NOTHING)
    np.testing.assert_allclose(p.variance, variance, rtol=1e-5)
    parts.choices.refuse_unused(parts.used, "vectors")


def test_without_spikes_the_sparse_prior_is_standard_normal_exactly() -> None:
    p, z = SparsePrior(3, share=0.0).double()(NOTHING), torch.randn(100, 3).double() * 3
    truth = StandardNormal(3).double()(NOTHING).log_prob(z)
    assert torch.equal(p.log_prob(z), truth)
    assert p.sample((5000,)).var(0).sub(1).abs().max() < 5 * math.sqrt(2 / 5000)


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_the_sparse_prior_is_a_spike_and_a_slab(share: float) -> None:
    p, z = SparsePrior(2, share).double()(NOTHING), torch.randn(100, 2).double()
    density = (1 - share) * stats.norm.pdf(z.numpy()) + share * stats.norm.pdf(z.numpy(), scale=0.05)
    np.testing.assert_allclose(p.log_prob(z).numpy(), np.log(density).sum(-1), rtol=1e-9)
    variance = 1 - share + share * 0.05**2
    assert p.sample((40_000,)).var(0).sub(variance).abs().max() < 0.03
