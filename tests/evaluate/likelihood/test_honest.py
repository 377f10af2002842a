"""The likelihood that is reported for every posterior and prior, against one that is known: IW-5,000 to four errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from laws import PAIRS, WIDTH, Decoder, Net, Pair, law, points
from quadrature import plane, sphere
from scipy import stats
from torch import Tensor, nn
from torch.distributions import MultivariateNormal

from elboroom.core.batch import Batch
from elboroom.core.model import LatentModel
from elboroom.data import arrays
from elboroom.data.dataset import DataSet
from elboroom.evaluate import likelihood
from elboroom.evaluate.result import Result
from elboroom.evaluate.split import Split
from elboroom.families.flow import FlowPosterior, SplinePosterior
from elboroom.families.flow_prior import FlowPrior
from elboroom.families.gaussian import GaussianPosterior, StandardNormal
from elboroom.families.mixture import GaussianVampPrior, Mixture, MixturePrior
from elboroom.families.pseudo import PseudoInputs
from elboroom.families.sphere import PowerSpherical, SpherePrior, Spherical, SphericalPosterior, VonMisesFisher
from elboroom.families.structured import AnisotropicNormal, ClusteredPrior, SparsePrior, StudentPrior

K, ROWS = 5000, 12
NOTHING = Batch(torch.empty(0))


def found(known: Any, posterior: nn.Module, prior: nn.Module) -> Result:
    """IW-5,000 of the linear Gaussian decoder under this prior, by this proposal."""
    model = LatentModel(posterior, prior, known.model.likelihood).double().eval()
    data = arrays.dataset(known.x[:ROWS].numpy().astype(np.float32))
    return likelihood.log_likelihood(Split(model, data, "train", np.arange(ROWS)), K)


def agree(number: Result, truth: Tensor, most: float = 0.015) -> None:
    """To four of the errors that the number itself carries, which are small: the test would see a few hundredths of a nat."""
    assert number.value is not None
    error = number.errors["importance_noise"]
    assert error < most
    assert abs(number.value - truth.mean().item()) < 4 * error
    assert number.parts["effective_samples"] > 50


def mixed(known: Any, x: Tensor, log_weights: Tensor, loc: Tensor, logvar: Tensor) -> Tensor:
    """log p(x) where p(z) is a mixture: a mixture of N(W m + b, W S W' + s^2 I)."""
    noise = known.variance * torch.eye(len(known.b), dtype=torch.float64)
    spread = known.w @ torch.diag_embed(logvar.exp()) @ known.w.T + noise  # (C, D, D)
    each = MultivariateNormal(loc @ known.w.T + known.b, spread).log_prob(x.unsqueeze(1))  # (B, C)
    return torch.logsumexp(each + log_weights, 1)


@torch.no_grad()
def integrated(known: Any, z: Tensor, log_mass: Tensor) -> Tensor:
    """log p(x) where p(z) has these log-masses at these points."""
    squared = (known.x[:ROWS].unsqueeze(1) - z @ known.w.T - known.b).square().sum(-1) / known.variance  # (B, G)
    log_px = -0.5 * (squared + len(known.b) * torch.log(2 * math.pi * known.variance))
    return torch.logsumexp(log_px + log_mass, 1)


class Beside(nn.Module):
    """An encoder's (mu, log sigma^2), with features beside them."""

    def __init__(self, net: nn.Module, context: int) -> None:
        super().__init__()
        self.net, self.context = net, context

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        out: Tensor = self.net(x)
        return torch.cat([out, torch.tanh(out[:, : self.context])], 1)


POSTERIORS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "gaussian": GaussianPosterior,
    "iaf": lambda net: FlowPosterior(Beside(net, 2), 2, 2, 2, 16),
    "nsf": lambda net: SplinePosterior(Beside(net, 2), 2, 2, 2, 16),
}


def posterior(name: str, known: Any) -> nn.Module:
    torch.manual_seed(5)
    return POSTERIORS[name](known.model.posterior.net).double()


@pytest.mark.parametrize("name", POSTERIORS)
def test_under_a_standard_normal_prior(name: str, ppca: Any) -> None:
    known = ppca(widen=6.0)
    agree(found(known, posterior(name, known), StandardNormal(2)), known.log_p(known.x[:ROWS]))


@pytest.mark.parametrize("name", POSTERIORS)
def test_under_a_mixture(name: str, ppca: Any) -> None:
    known, prior = ppca(widen=4.0), MixturePrior(2, 4).double()
    nn.init.normal_(prior.logits)
    p = prior(NOTHING)
    truth = mixed(known, known.x[:ROWS], p.log_weights, p.loc, p.logvar)
    agree(found(known, posterior(name, known), prior), truth.detach())


def test_under_the_posteriors_of_pseudo_inputs(ppca: Any) -> None:
    """The likelihood of a model whose prior and proposal share an encoder is still the likelihood."""
    known = ppca(widen=4.0)
    q = GaussianPosterior(known.model.posterior.net)
    prior = GaussianVampPrior(q, PseudoInputs(known.x[100:105].clone()))
    p: Mixture = prior(NOTHING)
    truth = mixed(known, known.x[:ROWS], p.log_weights, p.loc, p.logvar)
    agree(found(known, q, prior), truth.detach())


VARIANCES = torch.tensor([1.8, 0.2]).double()  # of mean one
CENTRES = torch.tensor([[1.0, 0], [-1, 0], [0, 1], [0, -1]]).double()
SHARE, NARROW = torch.tensor([0.2, 0.8]).double(), torch.tensor([1.0, 0.05**2]).double()  # of the slab, of the spike
GAUSSIANS: dict[str, tuple[nn.Module, Tensor, Tensor, Tensor]] = {  # a prior; weights, means and variances of its parts
    "anisotropic": (AnisotropicNormal(VARIANCES), torch.ones(1), torch.zeros(1, 2).double(), VARIANCES[None]),
    "clustered": (ClusteredPrior(2), torch.full((4,), 0.25), CENTRES, torch.full((4, 2), 0.03).double()),
    "sparse": (
        SparsePrior(2, 0.8, 0.05),
        torch.cartesian_prod(SHARE, SHARE).prod(1),
        torch.zeros(4, 2).double(),
        torch.cartesian_prod(NARROW, NARROW),
    ),
}


@pytest.mark.parametrize("name", GAUSSIANS)
def test_under_a_prior_with_structure(name: str, ppca: Any) -> None:
    """By the closed likelihood of each Gaussian that the prior is made of."""
    prior, weights, loc, variance = GAUSSIANS[name]
    known = ppca(widen=4.0)
    truth = mixed(known, known.x[:ROWS], weights.log(), loc, variance.log())
    agree(found(known, GaussianPosterior(known.model.posterior.net), prior), truth, 0.03)


def test_under_a_prior_with_heavy_tails(ppca: Any) -> None:
    """By quadrature of the t of nine degrees that scipy has."""
    known, (z, area) = ppca(widen=4.0), plane()
    density = torch.from_numpy(stats.t.logpdf(z.numpy(), 9, scale=VARIANCES.sqrt().numpy()).sum(-1))
    truth = integrated(known, z, density + area.log())
    agree(found(known, GaussianPosterior(known.model.posterior.net), StudentPrior(VARIANCES)), truth)


def met(pair: Pair) -> tuple[LatentModel, DataSet]:
    """The model, and examples that are made of draws of a q(z|x) which is all but deaf to x: so they are where it looks."""
    model = pair.model()
    for module in model.modules():
        if isinstance(module, Net):
            module.linear.weight.mul_(0.02)
        if isinstance(module, Decoder):
            module.linear.weight.mul_(2.0)
    for name, parameter in model.named_parameters():
        if name.endswith("generator.weight"):
            parameter *= torch.tensor([0.2] * (parameter.shape[1] - 4) + [2.2] * 4)  # a wide proposal, by its noise
    blank = Batch(torch.zeros(ROWS, WIDTH).double())
    torch.manual_seed(5)
    x = model.likelihood(model.posterior(blank).sample((1,)), blank).sample()[0]
    return model, arrays.dataset(x.numpy().astype(np.float32))


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if (pair.c or 0) <= 1], ids=str)
@torch.no_grad()
def test_of_every_pair_that_can_be_chosen(pair: Pair) -> None:
    """The prior of the table integrated over the plane, over S^2 or over the disc, under a decoder that is linear there."""
    model, data = met(pair)
    number = likelihood.log_likelihood(Split(model, data, "train", np.arange(ROWS)), K)
    assert number.estimator == f"iw-{K}"
    p = law(model, "prior")
    z, volume = points(pair, p)
    log_mass = (p.log_prob(z) + volume.log()).view(-1, 1)
    assert log_mass.exp().sum().item() == pytest.approx(1.0, abs=1e-4)
    batches = [Batch(data.x(np.array([i])).double()) for i in range(ROWS)]
    log_px = [model.likelihood(z.unsqueeze(-2), batch).log_prob(batch.x) for batch in batches]
    agree(number, torch.logsumexp(torch.cat(log_px, 1) + log_mass, 0), 0.13)


def flow(deaf: bool) -> FlowPrior:
    torch.manual_seed(2)
    made = FlowPrior(2, 4, 8).double()
    for p in made.parameters():
        nn.init.normal_(p, std=0.4)
    for layer in made.flow.transforms:
        if deaf:
            nn.init.zeros_(layer.net[0].weight)
    return made


def test_under_a_flow_that_is_affine(ppca: Any) -> None:
    known, prior = ppca(widen=4.0), flow(deaf=True)
    loc = prior(NOTHING).mean.detach()
    scale = (prior(NOTHING).transform(torch.ones(2).double()) - loc).detach()
    truth = mixed(known, known.x[:ROWS], torch.zeros(1), loc[None], 2 * scale.abs().log()[None])
    agree(found(known, GaussianPosterior(known.model.posterior.net), prior), truth)


def test_under_a_flow_that_bends(ppca: Any) -> None:
    """By quadrature over the noise, which never asks the flow for a density."""
    known, prior = ppca(widen=6.0), flow(deaf=False)
    axis = torch.linspace(-6, 6, 301, dtype=torch.float64)
    e = torch.cartesian_prod(axis, axis)
    with torch.no_grad():
        z = prior(NOTHING).transform(e)
        log_e = -0.5 * e.square().sum(-1) - math.log(2 * math.pi) + 2 * torch.log(axis[1] - axis[0])
        truth = integrated(known, z, log_e)
    agree(found(known, GaussianPosterior(known.model.posterior.net), prior), truth)


class Towards(nn.Module):
    """W'(x - b), and a constant for kappa where it is learned."""

    def __init__(self, known: Any, learned: bool) -> None:
        super().__init__()
        self.weight, self.offset, self.learned = nn.Parameter(known.w.clone()), nn.Parameter(known.b.clone()), learned

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        out = (x.to(self.weight) - self.offset) @ self.weight
        return torch.cat([out, 0.1 * out[:, :1]], 1) if self.learned else out


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("family", [VonMisesFisher, PowerSpherical])
def test_on_the_sphere(family: type[Spherical], learned: bool, ppca: Any) -> None:
    """z on S^2, its uniform prior integrated over the surface."""
    known = ppca(latent=3)
    z, area = sphere()
    q = SphericalPosterior(Towards(known, learned), family, 3.0, learned)
    agree(found(known, q, SpherePrior(3)), integrated(known, z, torch.log(area / (4 * math.pi))))


def test_the_test_would_see_a_wrong_constant(ppca: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A density that is off by 3 %, as a Bessel function of the next order makes it."""
    known = ppca(latent=3)
    q = SphericalPosterior(Towards(known, False), VonMisesFisher, 3.0)
    right = found(known, q, SpherePrior(3))
    log_prob = VonMisesFisher.log_prob
    monkeypatch.setattr(VonMisesFisher, "log_prob", lambda self, z: log_prob(self, z) + math.log(1.03))
    wrong = found(known, q, SpherePrior(3))
    assert right.value is not None
    assert wrong.value is not None
    assert right.value - wrong.value > 4 * right.errors["importance_noise"]
