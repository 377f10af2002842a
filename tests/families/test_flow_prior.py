"""Flows as priors and splines as posteriors: inverses, determinants, densities, draws, and the identity they start at."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.kl import kl_divergence
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.families.flow import Flowed, SplinePosterior
from elboroom.families.flow_prior import FlowPrior
from elboroom.families.gaussian import Gaussian, GaussianPosterior, StandardNormal
from elboroom.families.pixels import GaussianLikelihood
from elboroom.methods.learned_priors import _with_rate
from elboroom.terms.evidence import iw_bound, kl, log_weights, nll

NOTHING = Batch(torch.empty(0))


def flow(latent: int, layers: int, spread: float = 0.4) -> FlowPrior:
    """In double precision, its weights so large that it is far from the identity."""
    torch.manual_seed(0)
    made = FlowPrior(latent, layers, 4 * latent).double()
    for p in made.parameters():
        nn.init.normal_(p, std=spread)
    return made


def jacobian(transform: Any, at: Tensor) -> Tensor:
    """Of every row, (B, J, J)."""
    whole = torch.autograd.functional.jacobian(transform, at)
    return torch.stack([whole[b, :, b] for b in range(len(at))])


# -- couplings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layers", [1, 2, 6])
@pytest.mark.parametrize("latent", [2, 3, 8])
def test_there_and_back_and_the_determinant(latent: int, layers: int) -> None:
    p, e = flow(latent, layers)(NOTHING), torch.randn(5, latent).double()
    for way in (p.transform, p.transform.inv):
        z, log_det = way.call_and_ladj(e)
        torch.testing.assert_close(way.inv(z), e, rtol=1e-10, atol=1e-10)
        sign, truth = torch.linalg.slogdet(jacobian(way, e))
        assert (sign == 1).all()
        torch.testing.assert_close(log_det, truth, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(way(e), z)


def test_the_halves_take_turns() -> None:
    """A layer keeps one half and moves the other by what it keeps; the next one the other way round."""
    first, second = flow(4, 2)(NOTHING).transform.inv.transforms
    e = torch.randn(20, 4).double()
    for layer, kept in ((first, [2, 3]), (second, [0, 1])):
        reads = (jacobian(layer, e) != 0).any(0)
        moved = [j for j in range(4) if j not in kept]
        assert torch.equal(reads[kept], torch.eye(4).bool()[kept])
        assert reads[moved][:, kept].all()
        assert torch.equal(reads[moved][:, moved], torch.eye(2).bool())


def test_the_density_is_that_of_the_formula() -> None:
    """log p(z_L) = log N(z_0) - sum s, z_l = z_l-1 e^s(kept) + t(kept), s = a tanh(.), by hand from the noise up."""
    made = flow(4, 3)
    z = e = torch.randn(6, 4).double()
    total = torch.zeros(6).double()
    for layer in reversed(made.flow.transforms):
        kept, moved = layer.kept, layer.moved
        out = layer.net(z[:, kept])
        t, s = out[:, : len(moved)], layer.gain * torch.tanh(out[:, len(moved) :])
        z, total = z.clone(), total + s.sum(1)
        z[:, moved] = z[:, moved] * s.exp() + t
    p = made(NOTHING)
    torch.testing.assert_close(p.transform(e), z)
    torch.testing.assert_close(p.log_prob(z), Gaussian(made.zero, made.zero).log_prob(e) - total)


def test_it_starts_as_the_standard_normal_exactly_and_can_leave_it() -> None:
    made, z = FlowPrior(5, 6, 20), torch.randn(7, 3, 5)
    truth = StandardNormal(5)(NOTHING).log_prob(z)
    assert torch.equal(made(NOTHING).log_prob(z), truth)
    assert torch.equal(made(NOTHING).mean, torch.zeros(5))
    optimiser = torch.optim.SGD(made.parameters(), 0.1)
    before = [p.detach().clone() for p in made.parameters()]
    for _ in range(2):
        optimiser.zero_grad()
        (-made(NOTHING).log_prob(z + 1).mean()).backward()
        optimiser.step()
    assert not [a for a, b in zip(before, made.parameters(), strict=True) if torch.equal(a, b)]
    assert made.state_dict().keys() == dict(made.named_parameters()).keys(), "masks are known from the size"


@pytest.mark.unhurried
def test_where_the_nets_are_deaf_the_rate_is_that_of_two_gaussians() -> None:
    """s and t constants: p is Gaussian, and the mean of a million log-ratios is the closed KL."""
    made = flow(3, 4)
    for layer in made.flow.transforms:
        nn.init.zeros_(layer.net[0].weight)
    p, q = (
        made(NOTHING),
        Gaussian(torch.tensor([[0.3, -1.0, 0.5]]).double(), torch.tensor([[-1.0, 0.2, -0.5]]).double()),
    )
    loc = p.mean.detach()
    scale = (p.transform(torch.ones(3).double()) - loc).detach()
    closed = kl_divergence(q, Gaussian(loc, 2 * scale.log()), lambda: loc).sum()
    with torch.no_grad():
        z = q.sample((1_000_000,))
        ratio = q.log_prob(z) - p.log_prob(z)
    assert abs(ratio.mean() - closed).item() < 4 * ratio.std().item() / 1000
    torch.testing.assert_close(kl_divergence(q, p, lambda: z[:1000]), ratio[:1000].mean(0))


def test_two_processes_draw_what_one_would(monkeypatch: pytest.MonkeyPatch) -> None:
    p = flow(2, 2)(NOTHING)
    torch.manual_seed(1)
    whole = p.sample((6,))
    monkeypatch.setattr(distributed, "world", lambda: 2)
    parts = []
    for rank in (0, 1):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        torch.manual_seed(1)
        parts.append(p.sample((3,)))
    torch.testing.assert_close(torch.cat(parts), whole)


def test_one_dimension_has_no_halves() -> None:
    with pytest.raises(Problem, match="--latent 2 or more"):
        FlowPrior(1, 2, 4)


# -- the objective -----------------------------------------------------------------------------------------------------


class Net(nn.Module):
    """A small net, deaf to u."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, 8), nn.Tanh(), nn.Linear(8, outputs))

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        out: Tensor = self.layers(x)
        return out


X = torch.randn(9, 5, generator=torch.Generator().manual_seed(9), dtype=torch.float64)


def model(prior: nn.Module) -> LatentModel:
    torch.manual_seed(4)
    return LatentModel(GaussianPosterior(Net(5, 6)), prior, GaussianLikelihood(Net(3, 5), 1)).double()


def draw(prior: nn.Module, samples: int) -> Draw:
    made = model(prior)
    torch.manual_seed(1)
    drawn = Draw(made, Batch(X), samples)
    assert drawn.z.shape == (samples, 9, 3)  # now, with this noise
    return drawn


def test_with_one_sample_and_an_identity_flow_the_loss_is_twice_the_vaes() -> None:
    """2 (nll + log q - log p), values and gradients of encoder and decoder, the same weights and the same noise."""
    ours, vae = draw(FlowPrior(3, 6, 12), 1), draw(StandardNormal(3), 1)
    loss = _with_rate(iw_bound(1) + nll(), 0.0)(ours).total
    elbo = (vae.nll + vae.q.log_prob(vae.z) - vae.p.log_prob(vae.z)).mean()
    torch.testing.assert_close(loss, 2 * elbo, rtol=1e-12, atol=0)
    slopes = [
        torch.autograd.grad(value, [*d.model.posterior.parameters(), *d.model.likelihood.parameters()])
        for value, d in ((loss, ours), (2 * elbo, vae))
    ]
    for left, right in zip(*slopes, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-12)


def test_the_loss_is_the_two_bounds_of_the_same_samples() -> None:
    """-log 1/n sum w - 1/n sum log p(x|z) + 1/n sum (log q - log p), by hand."""
    d = draw(flow(3, 3), 5)
    log_w = log_weights(d)
    by_hand = math.log(5) - torch.logsumexp(log_w, 0) - log_w.mean(0)
    logged = _with_rate(iw_bound(5) + nll(), 0.0)(d)
    torch.testing.assert_close(logged.total, by_hand.mean())
    assert (logged.logged["iw_bound"] < logged.logged["nll"] + logged.logged["kl"]).item(), "the tighter bound"  # type: ignore[union-attr]


@pytest.mark.parametrize("bits", [1e-6, 1e3])
def test_free_bits_stand_under_the_mean_of_the_sampled_rate(bits: float) -> None:
    d = draw(flow(3, 3), 2)
    rate, loss = kl().mean(d), _with_rate(nll(), bits)(d)
    assert float(loss.logged["kl"]) == pytest.approx(rate.item())
    torch.testing.assert_close(loss.total, nll().mean(d) + rate.clamp_min(bits))
    slopes = torch.autograd.grad(loss.total, list(d.model.prior.parameters()), allow_unused=True, retain_graph=True)
    assert all(g is None or not g.any() for g in slopes) == (bits > 1)


# -- splines -----------------------------------------------------------------------------------------------------------


def splines(latent: int, steps: int) -> Flowed:
    """q(z|x) of two rows, in double precision and far from the identity."""
    torch.manual_seed(0)
    made = SplinePosterior(Net(5, 2 * latent + 3), latent, 3, steps, 16).double()
    for layer in made.flow.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=0.35)
    return made(Batch(X[:2]))


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("latent", [1, 4])
def test_a_spline_goes_back_and_knows_its_determinant(latent: int, steps: int) -> None:
    q = splines(latent, steps)
    e = torch.cat([1.5 * torch.randn(1, 2, latent), torch.full((1, 2, latent), 7.0)]).double()  # also beyond its bins
    for at in e:
        z, log_det = q.transform.call_and_ladj(at)
        truth = torch.linalg.slogdet(jacobian(q.transform, at))[1]
        torch.testing.assert_close(log_det, truth, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(q.transform.inv(z), at, rtol=1e-7, atol=1e-7)
    z = q.rsample((5,))
    torch.testing.assert_close(q.log_prob(z), q.log_prob(z.clone()), rtol=1e-7, atol=1e-7)


def test_a_spline_bends_within_its_bins_and_leaves_alone_what_is_beyond() -> None:
    q = splines(1, 1)
    inside, outside = (
        torch.linspace(low, high, 50).double().view(-1, 1, 1).expand(-1, 2, 1) for low, high in ((-4, 4), (6, 9))
    )
    assert torch.equal(q.transform(outside), outside)
    slopes = q.transform.call_and_ladj(inside)[1]
    assert (slopes.amax(0) - slopes.amin(0) > 0.1).all(), "an affine step has one slope"


@pytest.mark.parametrize("latent", [1, 2])
def test_the_density_of_a_spline_integrates_to_one(latent: int) -> None:
    axis = torch.linspace(-8, 8, 3001 if latent == 1 else 161).double()
    grid = torch.cartesian_prod(*[axis] * latent).view(-1, 1, latent)
    with torch.no_grad():
        mass = splines(latent, 2).log_prob(grid).exp().sum(0) * float(axis[1] - axis[0]) ** latent
    torch.testing.assert_close(mass, torch.ones(2).double(), atol=2e-3, rtol=0)
