"""Laws on the Poincare ball: the wrapped normal, and what holds at centre and boundary."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.distributions import MultivariateNormal

from elboroom.build.parts import Choices, Parts
from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.kl import has_density, kl_divergence, require_kl
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.families import ball as families
from elboroom.families.ball import (
    ConditionalWrapped,
    Wrapped,
    WrappedImplicit,
    WrappedImplicitPosterior,
    WrappedPosterior,
    WrappedPrior,
)
from elboroom.families.gaussian import Gaussian
from elboroom.families.implicit import SharedGaussian
from elboroom.geometry.ball import MARGIN, Ball
from elboroom.nets.gyroplane import Flat, GyroplaneLayer
from elboroom.terms.evidence import kl

NOTHING = Batch(torch.empty(0))


def points(ball: Ball, n: int = 40, d: int = 3, reach: float = 0.95) -> Tensor:
    """Points of the ball, some of them near its boundary."""
    way = torch.nn.functional.normalize(torch.randn(n, d).double(), dim=-1)
    return way * torch.rand(n, 1).double() ** 0.3 * reach / ball.c.sqrt()


def close(a: Tensor, b: Tensor, atol: float = 1e-9) -> None:
    torch.testing.assert_close(a, b, atol=atol, rtol=1e-9)


# -- the wrapped normal ------------------------------------------------------------------------------------------------


def some(c: float, kind: str = "normal", learned: bool = False) -> Wrapped:
    """One law on the disc, away from the centre and not round."""
    ball = Ball(c, learned)
    loc = ball.exp0(torch.tensor([[0.5, -0.3]]).double())
    if kind == "normal":
        return families.normal(ball, loc, torch.tensor([[-0.8, -1.6]]).double())
    tangent = SharedGaussian(
        torch.tensor([[0.3, 0.2]]).double(), torch.tensor([[0.5, 0.1, 0.0], [-0.2, 0.3, 0.3]]).double()
    )
    return Wrapped(ball, loc, tangent)


@pytest.mark.parametrize("d", [1, 3])
def test_it_integrates_to_one_in_other_dimensions(d: int) -> None:
    """By the radial integral of the centred law: S_d int q(r) (sinh(sqrt(c) r) / sqrt(c))^(d-1) dr."""
    c = 0.5
    p = WrappedPrior(d, Ball(c))(NOTHING)
    r = (torch.arange(20_000).double() + 0.5) * 40 / 20_000
    z = torch.zeros(len(r), d).double()
    z[:, 0] = torch.tanh(math.sqrt(c) * r / 2) / math.sqrt(c)
    sphere = {1: 2.0, 3: 4 * math.pi}[d]
    density = p.log_prob(z[:16_000]).exp() * (torch.sinh(math.sqrt(c) * r[:16_000]) / math.sqrt(c)) ** (d - 1)
    assert (sphere * density.sum() * 40 / 20_000).item() == pytest.approx(1.0, abs=1e-5)


def test_a_sample_carries_the_density_that_a_foreign_point_is_given() -> None:
    ball = Ball(0.5)
    q = families.normal(ball, points(ball, 6, 4), torch.randn(6, 4).double())
    z = q.rsample((5,))
    assert z.shape == (5, 6, 4)
    assert z.dtype == torch.float64
    close(q.log_prob(z), q.log_prob(z.clone()), 1e-6)
    old, truth = z, q.log_prob(z)
    q.rsample()
    close(q.log_prob(old), truth, 1e-6)
    assert not q.sample().requires_grad


def test_without_curvature_it_is_a_gaussian() -> None:
    """Of mean mu and variances sigma^2, its kl that of Gaussians: exactly over points with the moments of v."""
    ball = Ball(1e-12)
    loc, logvar = torch.randn(2, 7, 3).double()
    q, flat = families.normal(ball, loc, logvar), Gaussian(loc, logvar)
    z = torch.randn(4, 7, 3).double()
    lower = 3 * math.log(2)  # lengths on the ball are twice those of the plane
    close(q.log_prob(z), flat.log_prob(z) - lower, 1e-6)
    points = math.sqrt(3) * torch.cat([torch.eye(3), -torch.eye(3)]).double().unsqueeze(1)
    posterior, prior = nn.Identity(), WrappedPrior(3, ball)
    draw = Draw(LatentModel(posterior, prior, nn.Identity()), NOTHING)
    draw.__dict__.update(q=q, z=ball.wrap(q.tangent.stddev * points, loc))
    zero = torch.zeros(3).double()
    close(kl()(draw), kl_divergence(flat, Gaussian(zero, zero), lambda: z).sum(-1), 1e-6)


def test_gradients_are_those_of_finite_differences() -> None:
    """Of samples, densities and the sampled kl: with respect to centre, variances and the curvature."""
    ball = Ball(0.7, learned=True)
    prior, noise = WrappedPrior(3, ball), torch.randn(4, 3).double()

    def value(centre: Tensor, logvar: Tensor, raw: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        ball._parameters["raw"] = raw
        q = families.normal(ball, ball.exp0(centre), logvar)
        z = ball.wrap(q.tangent.stddev * noise, q.loc)
        return z, q.log_prob(z), prior(NOTHING).log_prob(z)

    inputs = (0.3 * torch.randn(4, 3).double(), torch.randn(4, 3).double() - 1, torch.tensor(-0.3).double())
    assert gradcheck(value, tuple(t.requires_grad_() for t in inputs))


def test_the_kept_density_has_the_gradient_of_the_found_one() -> None:
    q = some(0.5, learned=True)
    q.tangent.logvar.requires_grad_()
    grads = []
    for kept in (True, False):
        torch.manual_seed(3)
        z = q.rsample((5,))
        total = q.log_prob(z if kept else z + 0).sum()
        grads.append(torch.autograd.grad(total, (q.tangent.logvar, q.ball.raw)))
    for a, b in zip(*grads, strict=True):
        close(a, b, 1e-6)


def test_gradients_are_finite_at_the_origin_and_at_the_boundary() -> None:
    ball = Ball(1.0, learned=True)
    for at in (torch.zeros(2, 3), torch.eye(3)[:2]):
        for v in (torch.zeros(2, 3), 30 * torch.eye(3)[1:]):
            leaves = at.double().requires_grad_(), v.double().requires_grad_()
            q = Wrapped(ball, ball.clip(leaves[0]), Gaussian(torch.zeros(3).double(), torch.zeros(3).double()))
            z = ball.wrap(leaves[1], q.loc)
            (q.log_prob(z).sum() + ball.log0(z).sum()).backward()
            assert all(torch.isfinite(leaf.grad).all() for leaf in leaves)  # type: ignore[arg-type]
    assert torch.isfinite(ball.raw.grad).all()  # type: ignore[arg-type]


def test_many_dimensions_pile_nothing_up_at_the_boundary() -> None:
    """d = 32, c = 1: |v| is near 5.7, so a quarter of the prior lies beyond 1 - 1e-5, and stays where it is."""
    p = WrappedPrior(32, Ball(1.0))(NOTHING)
    z = p.sample((4000,))
    size = z.norm(dim=-1)
    assert 0.1 < (size > 1 - MARGIN).double().mean() < 0.4
    assert len(size.unique()) == 4000
    assert (size < 1).all()
    close(p.log_prob(z.clone()), p.log_prob(z), 1e-3)


@pytest.mark.parametrize(("d", "c"), [(32, 1.0), (64, 4.0), (32, 10.0), (256, 1.0)])
def test_a_prior_is_no_distance_from_itself_however_far_out_it_lies(d: int, c: float) -> None:
    ball = Ball(c)
    q, p = WrappedPrior(d, ball)(NOTHING), WrappedPrior(d, ball)(NOTHING)
    z = q.rsample((200,))
    close(q.log_prob(z), p.log_prob(z), 1e-4 * d)


@pytest.mark.parametrize("sigma", [0.5, 2.0, 4.0, 30.0, 1000.0])
def test_the_rate_holds_beyond_what_coordinates_can_tell(sigma: float) -> None:
    """Around one centre the volumes cancel: KL = d/2 (s^2 - 1 - log s^2), and its gradient by log s^2 is d/2 (s^2 - 1)."""
    d, ball = 32, Ball(1.0)
    logvar = torch.full((d,), 2 * math.log(sigma), dtype=torch.float64, requires_grad=True)
    q, p = families.normal(ball, torch.zeros(d), logvar), WrappedPrior(d, ball)(NOTHING)
    z = q.rsample((4000,))
    each = q.log_prob(z) - p.log_prob(z)
    truth = d / 2 * (sigma**2 - 1 - 2 * math.log(sigma))
    assert abs(each.mean().item() - truth) < 4 * each.std().item() / 4000**0.5
    (slope,) = torch.autograd.grad(each.mean(), logvar, retain_graph=True)
    assert slope.sum().item() == pytest.approx(d / 2 * (sigma**2 - 1), rel=0.05, abs=0.3)
    read = GyroplaneLayer(d, 4, ball)(z).square().sum() + Flat(ball)(z).square().sum()
    (slope,) = torch.autograd.grad(read, logvar)
    assert torch.isfinite(slope).all()
    assert slope.sum() > 0


@pytest.mark.parametrize("reach", [3.0, 20.0, 40.0, 174.0, 5000.0])
def test_a_point_far_from_a_centre_at_the_margin_is_as_far_out_as_it_is(reach: float) -> None:
    """Against the Moebius sum in as many digits as it takes, and back."""
    d, ball = 4, Ball(1.0)
    way = torch.nn.functional.normalize(torch.randn(12, d).double(), dim=-1)
    at, v = ball.centre(9.0 * way), reach * torch.nn.functional.normalize(torch.randn(12, d).double(), dim=-1)
    z = ball.wrap(v, at)
    wanted = []
    with mpmath.workdps(60 + int(reach)):
        for a, u in zip(at.tolist(), v.tolist(), strict=True):
            size = mpmath.sqrt(sum(mpmath.mpf(x) ** 2 for x in u))
            y = [mpmath.tanh(size) * mpmath.mpf(x) / size for x in u]
            dot, a2, y2 = (
                sum(mpmath.mpf(p) * q for p, q in zip(*two, strict=True)) for two in ((a, y), (a, a), (y, y))
            )
            gap = (1 - a2) * (1 - y2) / (1 + 2 * dot + a2 * y2)
            wanted.append(float(mpmath.atanh(mpmath.sqrt(1 - gap))))
    torch.testing.assert_close(ball.log0(z).norm(dim=-1), torch.tensor(wanted).double(), rtol=1e-6, atol=0)
    torch.testing.assert_close(ball.distance(z, torch.zeros(d)), 2 * torch.tensor(wanted).double(), rtol=1e-6, atol=0)
    torch.testing.assert_close(ball.unwrap(z, at).norm(dim=-1), v.norm(dim=-1), rtol=1e-6, atol=0)


def test_however_far_q_has_strayed_its_rate_is_no_gain() -> None:
    """Centres at the margin, and a v that a generator throws 174 from there: such a q(z|x) was once given -11,000 nats."""
    ball, d = Ball(1.0), 32
    loc = ball.centre(torch.randn(20, d) * 5)
    q = Wrapped(ball, loc, SharedGaussian(torch.full((20, d), 174 / d**0.5), torch.eye(d)))
    p = WrappedPrior(d, ball)(NOTHING)
    z = q.rsample((50,))
    rate = (q.log_prob(z) - p.log_prob(z)).mean(0)
    assert (rate > 174**2 / 2 - 174 * 15).all()
    assert (rate < (174 + 15) ** 2).all()


def test_a_centre_beyond_the_margin_is_pulled_in_and_can_come_back() -> None:
    ball, u = Ball(2.0), torch.tensor([[30.0, -40.0]], dtype=torch.float64, requires_grad=True)
    at = ball.centre(u)
    close(at.norm(dim=-1), torch.full((1,), (1 - MARGIN) / math.sqrt(2), dtype=torch.float64))
    (slope,) = torch.autograd.grad(ball.log0(at).norm(), u)
    assert (slope * u).sum() > 0.01, "what would bring it nearer moves it there"
    bent = Ball(2.0, learned=True)
    (slope,) = torch.autograd.grad(bent.centre(torch.zeros(1, 2)).sum(), bent.raw)
    assert slope == 0, "of a centre that starts at the origin"
    inside = 0.3 * u.detach() / 50
    torch.testing.assert_close(ball.centre(inside), ball.exp0(inside))


def test_pseudo_inputs_see_it_too() -> None:
    ball = Ball(1.0)
    q = families.normal(ball, torch.zeros(32), torch.full((32,), 2 * math.log(4.0)))
    z = q.rsample((50,))
    close(q.log_prob(z.unsqueeze(-2)).squeeze(-1), q.log_prob(z), 1e-3)
    assert (z.norm(dim=-1) >= 1 - 1e-11).any()


def test_two_processes_draw_what_one_would(monkeypatch: pytest.MonkeyPatch) -> None:
    ball = Ball(1.0)
    loc, logvar = points(ball, 4), torch.randn(4, 3).double()
    torch.manual_seed(1)
    truth, parts = families.normal(ball, loc, logvar).sample((3,)), []
    monkeypatch.setattr(distributed, "world", lambda: 2)
    for rank in (0, 1):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        torch.manual_seed(1)
        part = slice(2 * rank, 2 * rank + 2)
        parts.append(families.normal(ball, loc[part], logvar[part]).sample((3,)))
    close(torch.cat(parts, 1), truth)


# -- the modules -------------------------------------------------------------------------------------------------------


class Net(nn.Module):
    """Linear in x."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(5, outputs)

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        out: Tensor = self.linear(x)
        return out


X = torch.linspace(-1, 1, 20).view(4, 5)


def test_a_posterior_is_what_its_net_says() -> None:
    posterior = WrappedPosterior(Net(6), Ball(0.5))
    q = posterior(Batch(X))
    centre, logvar = posterior.net(X).chunk(2, -1)
    close(q.mean, posterior.ball.exp0(centre))
    close(q.tangent.variance, logvar.double().exp())
    assert not q.tangent.mean.any()


@pytest.mark.parametrize("linear", [True, False])
def test_an_implicit_posterior_wraps_what_its_generator_makes(linear: bool) -> None:
    posterior = WrappedImplicitPosterior(Net(3 + 4), Ball(0.5), 4, 6, 3, linear)
    q = posterior(Batch(X))
    centre, h = posterior.net(X).split([3, 4], -1)
    assert torch.equal(q.features, posterior.net(X)), "q depends on the centre too, and nu is to know it"
    assert posterior.features == 7
    torch.manual_seed(2)
    z = q.rsample((2,))
    torch.manual_seed(2)
    e = torch.randn(2, 4, 6)
    v = posterior.tangent.generator(torch.cat([h.expand(2, 4, 4), e], -1))
    close(z, posterior.ball.wrap(v, posterior.ball.exp0(centre)), 1e-6)
    assert has_density(posterior.family) == linear
    assert type(q) is posterior.family
    z.sum().backward()
    assert all(p.grad is not None for p in posterior.parameters())
    if linear:
        weight = posterior.tangent.generator.weight.detach().double()
        law = MultivariateNormal(
            h.detach().double() @ weight[:, :4].T + posterior.tangent.generator.bias.detach(),
            weight[:, 4:] @ weight[:, 4:].T,
        )
        found = q.log_prob(z) + posterior.ball.log_volume(v)
        torch.testing.assert_close(found.detach(), law.log_prob(v.detach().double()), rtol=1e-5, atol=1e-5)
    else:
        with pytest.raises(Problem, match="which is wrapped implicit, has none"):
            require_kl(WrappedImplicit, Wrapped)


def test_a_prior_given_labels_starts_as_the_one_without() -> None:
    ball = Ball(1.0)
    given, plain = ConditionalWrapped(3, 2, ball), WrappedPrior(3, ball)
    batch = Batch(X, torch.eye(2).repeat(2, 1))
    z = plain(batch).sample((4,))
    close(given(batch).log_prob(z), plain(batch).log_prob(z))
    nn.init.normal_(given.table.weight)
    assert given(batch).mean.shape == (4, 3)
    assert not torch.equal(given(batch).mean[0], given(batch).mean[1])


def test_a_curvature_is_one_and_learned_only_if_asked(pixels: Any) -> None:
    for learned in (False, True):
        parts = Parts(pixels.about, Choices(latent=3, net="mlp-300", curvature=0.5, curvature_learned=learned))
        model = parts.vae("wrapped")
        named = [name for name, _ in model.named_parameters() if name.endswith("raw")]
        assert len(named) == learned
        assert model.posterior.ball is model.prior.ball is model.likelihood.layer.ball
        assert model.posterior.ball.c.item() == pytest.approx(0.5)
        assert not [name for name in model.state_dict() if name.endswith("raw")] or learned


@pytest.mark.parametrize(("q", "p", "instead"), [("wrapped", "normal", "wrapped"), ("gaussian", "wrapped", "normal")])
def test_laws_on_different_spaces_are_refused(pixels: Any, q: str, p: str, instead: str) -> None:
    with pytest.raises(
        Problem, match=f"--posterior {q} and --prior {p} are on different spaces; use --prior {instead}"
    ):
        Parts(pixels.about, Choices(latent=3, posterior=q, prior=p)).vae()


def test_the_prior_is_that_of_the_cited_code_at_a_quarter_of_its_curvature() -> None:
    """There z = exp_0(v / lambda_0) at curvature 1, which is tanh(|v| / 2) v / |v|; here the same ball, twice as large."""
    v = torch.randn(20, 3, dtype=torch.float64)
    length = v.norm(dim=-1, keepdim=True)
    ball = Ball(0.25)
    assert torch.allclose(torch.as_tensor(ball.centre(v)), 2 * torch.tanh(length / 2) * v / length)
    torch.manual_seed(0)
    z = families.WrappedPrior(3, ball)(Batch(torch.zeros(1, 1))).sample((20_000,))
    assert ball.log0(z).std().item() == pytest.approx(1.0, abs=0.02)  # v itself, not its half
