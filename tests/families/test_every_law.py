"""Every law on the plane: its density integrates to one, its sampler follows it; and every KL that has a formula."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from elboroom.core import pairs
from elboroom.core.draw import Batch
from elboroom.divergences.mmd import Kernel, two_sample
from elboroom.families.autoregressive import AR1
from elboroom.families.flow import FlowPosterior, SplinePosterior
from elboroom.families.flow_prior import FlowPrior
from elboroom.families.gaussian import Gaussian
from elboroom.families.implicit import LinearImplicitPosterior, SharedGaussian
from elboroom.families.mixture import Mixture
from elboroom.families.pseudo import PseudoInputs, VampPrior
from elboroom.families.sphere import PowerSpherical, UniformSphere, VonMisesFisher
from elboroom.families.structured import AnisotropicNormal, ClusteredPrior, SparsePrior, StudentPrior

ROOT = torch.tensor([[0.8, 0.3, 0.0], [-0.2, 0.5, 0.6]]).double()
NOTHING = Batch(torch.empty(0))


class Constant(nn.Module):
    """A net that says the same of every x."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.out = nn.Parameter(torch.randn(outputs, generator=torch.Generator().manual_seed(1)) * 0.5)

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        return self.out.expand(len(x), -1)


def bent(net: nn.Module, by: float = 0.25) -> Any:
    """The same with weights far from those of an identity, in double precision."""
    noise = torch.Generator().manual_seed(4)
    for parameter in net.parameters():
        parameter.data += by * torch.randn(parameter.shape, generator=noise)
    return net.double()


def flowed(make: type[FlowPosterior], by: float = 0.25) -> Any:
    return bent(make(Constant(2 + 2 + 3), 2, 3, 2, 16), by)(Batch(torch.zeros(1, 1).double()))


def vamp() -> Any:
    torch.manual_seed(6)
    posterior = LinearImplicitPosterior(nn.Linear(2, 3), 3, 3, 2).double()

    class Net(nn.Module):
        def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
            return 2 * x @ torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]]).double()

    posterior.net = Net()
    return VampPrior(posterior, PseudoInputs(torch.randn(3, 2).double()), 2)(NOTHING)


LAWS: dict[str, Callable[[], Any]] = {
    "gaussian": lambda: Gaussian(torch.tensor([0.4, -1.0]).double(), torch.tensor([0.3, -0.8]).double()),
    "implicit-linear": lambda: SharedGaussian(torch.tensor([0.5, -0.3]).double(), ROOT),
    "iaf": lambda: flowed(FlowPosterior),
    "nsf": lambda: flowed(SplinePosterior, 0.1),
    "ar1": lambda: AR1(torch.tensor([0.7]).double(), 2),
    "anisotropic": lambda: AnisotropicNormal(torch.tensor([2.0, 0.5])).double()(NOTHING),
    "student": lambda: StudentPrior(torch.tensor([2.0, 0.5])).double()(NOTHING),
    "clustered": lambda: ClusteredPrior(2).double()(NOTHING),
    "sparse": lambda: SparsePrior(2, 0.5, 0.2).double()(NOTHING),
    "mog": lambda: Mixture(
        torch.tensor([0.2, 0.8]).double().log(), torch.tensor([[2.0, 0], [-1, 1]]).double(), torch.zeros(2, 2).double()
    ),
    "vamp": vamp,
    "flow": lambda: bent(FlowPrior(2, 4, 8))(NOTHING),
}
REACH, POINTS = 10.0, 601


@torch.no_grad()
def on_grid(law: Any) -> tuple[Tensor, Tensor]:
    """Points of the plane and how much of the law lies around each, (n, 2) and (n,)."""
    axis = torch.linspace(-REACH, REACH, POINTS).double()
    grid = torch.cartesian_prod(axis, axis)
    lead = (1,) * len(law.batch_shape)
    density = torch.cat([law.log_prob(part.view(-1, *lead, 2)).flatten().exp() for part in torch.split(grid, 200_000)])
    return grid, density * (axis[1] - axis[0]) ** 2


@torch.no_grad()
def draws(law: Any, n: int) -> Tensor:
    torch.manual_seed(8)
    drawn: Tensor = law.sample((n,)).reshape(n, 2)
    return drawn


@pytest.mark.parametrize("name", LAWS)
def test_its_density_integrates_to_one_and_its_sampler_follows_it(name: str) -> None:
    law = LAWS[name]()
    grid, mass = on_grid(law)
    assert mass.sum().item() == pytest.approx(1.0, abs=1e-3)
    mean = mass @ grid
    left = grid - mean
    covariance = (mass[:, None] * left).T @ left
    z = draws(law, 200_000)
    error = z.std(0) / len(z) ** 0.5
    assert ((z.mean(0) - mean).abs() < 4.5 * error + 2e-3).all()
    torch.testing.assert_close(torch.cov(z.T), covariance, rtol=0.03, atol=0.02)
    cells = torch.multinomial(mass, 600, replacement=True, generator=torch.Generator().manual_seed(9))
    jitter = (torch.rand(600, 2, generator=torch.Generator().manual_seed(10)) - 0.5).double() * 2 * REACH / (POINTS - 1)
    other, some = grid[cells] + jitter, z[:600]
    kernel = Kernel.of("rbf", some, other)
    assert two_sample(some, other, kernel, 400)[0].p > 0.005
    assert two_sample(some + 0.35 * z.std(0), other, kernel, 400)[0].p < 0.01


FORMULAS: dict[tuple[type, type], Callable[[], tuple[Any, Any]]] = {
    (Gaussian, Gaussian): lambda: (
        Gaussian(torch.tensor([[0.4, -1.0, 2.0]]), torch.tensor([[0.3, -0.8, -2.0]])),
        Gaussian(torch.tensor([0.1, 0.2, 0.0]), torch.tensor([0.0, 0.5, -0.4])),
    ),
    (Gaussian, AR1): lambda: (
        Gaussian(torch.tensor([[0.4, -1.0, 2.0, 0.3]]), torch.tensor([[0.3, -0.8, -2.0, 0.1]])),
        AR1(torch.tensor([0.7]), 4),
    ),
    (SharedGaussian, Gaussian): lambda: (
        SharedGaussian(torch.tensor([[0.5, -0.3]]), ROOT.float()),
        Gaussian(torch.tensor([0.1, 0.2]), torch.tensor([0.3, -0.2])),
    ),
    (VonMisesFisher, UniformSphere): lambda: (
        VonMisesFisher(nn.functional.normalize(torch.ones(1, 5), dim=-1), torch.tensor(9.0)),
        UniformSphere(torch.zeros(5)),
    ),
    (PowerSpherical, UniformSphere): lambda: (
        PowerSpherical(nn.functional.normalize(torch.ones(1, 5), dim=-1), torch.tensor(9.0)),
        UniformSphere(torch.zeros(5)),
    ),
}


def test_the_table_has_every_formula() -> None:
    assert set(FORMULAS) == set(pairs._CLOSED)


@pytest.mark.parametrize("pair", FORMULAS, ids=lambda pair: "-".join(family.__name__ for family in pair))
def test_every_formula_is_the_mean_over_a_million_draws(pair: tuple[type, type]) -> None:
    q, p = FORMULAS[pair]()
    torch.manual_seed(12)
    z = q.sample((1_000_000,))
    each = (q.log_prob(z) - p.log_prob(z)).double().flatten()
    closed = pairs.rate(q, p, lambda: z).double().sum().item()
    assert abs(each.mean().item() - closed) < 4 * each.std().item() / math.sqrt(len(each))
    assert closed > 0.05
