"""Critics of AAE, WAE-GAN, AVB and f-VAE where the optimal critic is known, and where it knows nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

from elboroom.build.parts import Choices, Parts
from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.method import Method, adam
from elboroom.core.model import LatentModel
from elboroom.data.dataset import DataSet
from elboroom.divergences.variational import DIVERGENCES, FDivergence
from elboroom.families.ball import WrappedPrior, normal
from elboroom.families.gaussian import Gaussian, StandardNormal
from elboroom.geometry.ball import Ball
from elboroom.methods import card
from elboroom.nets.gyroplane import Flat
from elboroom.terms import adversarial
from elboroom.terms.adversarial import f_critic, f_penalty, fool, joint_critic, joint_ratio, prior_critic
from elboroom.training.batches import Batches, reseed
from elboroom.training.loop import Loop, move

M, S = 0.7, 0.6  # q = N(m, s^2) against p = N(0, 1)
P, Q = Normal(0.0, 1.0), Normal(M, S)
KL = kl_divergence(Q, P).item()


class Of(nn.Module):
    """A critic that is a known function."""

    def __init__(self, f: Callable[..., Tensor]) -> None:
        super().__init__()
        self.f = f

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.f(*inputs)


def log_ratio(z: Tensor) -> Tensor:
    """log q/p, (B, 1) -> (B,)."""
    return (Q.log_prob(z) - P.log_prob(z)).squeeze(-1)


def quantiles(n: int) -> Tensor:
    """n points that stand for N(0, 1), (n, 1)."""
    return P.icdf((torch.arange(n).double() + 0.5) / n).unsqueeze(1)


def with_codes(z: Tensor, q: Any = None) -> Draw:
    """A Draw of these codes, (B, J)."""
    empty = StandardNormal(z.shape[1]).double()
    draw = Draw(LatentModel(empty, empty, empty), Batch(z.detach()))
    draw.__dict__["z"] = z.unsqueeze(0)
    if q is not None:
        draw.__dict__["q"] = q
    return draw


@pytest.fixture
def even(monkeypatch: pytest.MonkeyPatch) -> Draw:
    """Codes of q and draws of the prior, both evenly spread: means over them are integrals to 1e-3."""
    points = quantiles(8000)
    monkeypatch.setattr(adversarial, "prior_draws", lambda draw, moves=False: points)
    return with_codes(M + S * points)


def integral(f: Callable[[Tensor], Tensor]) -> float:
    grid = torch.linspace(-12, 12, 40_001).double()
    return (f(grid).sum() * 24 / 40_000).item()


# -- p against q(z): AAE and WAE-GAN -----------------------------------------------------------------------------------


def test_a_critic_that_cannot_tell_costs_two_log_two() -> None:
    """D = 1/2: critic 2 log 2, encoder log 2, and nothing comes back through z."""
    critic = nn.Linear(3, 1)
    nn.init.zeros_(critic.weight)
    nn.init.zeros_(critic.bias)
    z = torch.randn(8, 3, requires_grad=True)
    draw = with_codes(z)
    draw.model.float()
    assert prior_critic(critic)(draw).detach().numpy() == pytest.approx(2 * math.log(2))
    told = fool(critic)(draw)
    assert told.detach().numpy() == pytest.approx(math.log(2))
    assert not torch.autograd.grad(told.sum(), z)[0].any()


def test_where_q_is_p_the_best_critic_cannot_tell() -> None:
    z = torch.randn(8, 1, dtype=torch.float64, requires_grad=True)
    equal = Of(lambda z: 0 * (P.log_prob(z) - P.log_prob(z)))  # log p/q with q = p
    draw = with_codes(z)
    assert prior_critic(equal).mean(draw).item() == pytest.approx(2 * math.log(2))
    assert not torch.autograd.grad(fool(equal).mean(draw), z)[0].any()


def test_the_best_critic_reads_the_jensen_shannon_divergence(even: Draw) -> None:
    """At D* = p/(p + q) its loss is log 4 - 2 JSD(p, q), and every other critic has more."""
    best = Of(lambda z: -log_ratio(z).unsqueeze(-1))

    def jsd(z: Tensor) -> Tensor:
        p, q = P.log_prob(z), Q.log_prob(z)
        mean = torch.logaddexp(p, q) - math.log(2)
        return 0.5 * (p.exp() * (p - mean) + q.exp() * (q - mean))

    found = prior_critic(best).mean(even).item()
    assert found == pytest.approx(math.log(4) - 2 * integral(jsd), abs=1e-3)
    for other in (lambda z: best(z) + 0.3, lambda z: best(z) - 0.3, lambda z: 0.7 * best(z), lambda z: -best(z)):
        assert prior_critic(Of(other)).mean(even).item() > found + 1e-3


def test_to_fool_is_to_be_taken_for_the_prior() -> None:
    """-log D(z), non-saturating: where D is sure of a fake the slope is one, not zero."""
    z = torch.tensor([[0.0], [30.0]], dtype=torch.float64, requires_grad=True)
    critic = Of(lambda z: 20 - 4 * z)  # real at 0, fake at 30
    draw = with_codes(z)
    real, fake = fool(critic)(draw).tolist()
    assert real < 1e-8
    assert fake == pytest.approx(100.0)
    grad = torch.autograd.grad(fool(critic)(draw).sum(), z)[0]
    assert grad[1].item() == pytest.approx(4.0)
    torch.testing.assert_close(fool(critic)(draw), -torch.sigmoid(critic(z).squeeze(-1)).log())


def test_the_critic_calls_the_prior_real() -> None:
    critic, z = nn.Linear(2, 1).double(), torch.randn(6, 2).double()
    draw = with_codes(z)
    torch.manual_seed(3)
    found = prior_critic(critic)(draw)
    torch.manual_seed(3)
    real = torch.sigmoid(critic(adversarial.prior_draws(draw))).squeeze(-1)
    fake = torch.sigmoid(critic(z)).squeeze(-1)
    torch.testing.assert_close(found, -real.log() - (1 - fake).log())


# -- q(z|x) against p(z): AVB ------------------------------------------------------------------------------------------


def sigma_points(q: Gaussian) -> Tensor:
    """Rows at which means of quadratics under one Gaussian are exact, (2J, J)."""
    latent = q.loc.shape[-1]
    eye = math.sqrt(latent) * torch.eye(latent).double()
    return q.loc + q.stddev * torch.cat([eye, -eye])


LOC, LOGVAR = torch.tensor([0.7, -0.3, 0.0]).double(), torch.tensor([-1.0, 0.4, 0.0]).double()
CLOSED = (0.5 * (LOC**2 + LOGVAR.exp() - LOGVAR - 1)).sum().item()


def test_the_optimal_critic_is_printed_right() -> None:
    """T*(z) = -log s - (z - m)^2 / (2 s^2) + z^2 / 2."""
    z = torch.randn(9, 1).double()
    printed = -math.log(S) - (z - M) ** 2 / (2 * S * S) + z**2 / 2
    torch.testing.assert_close(log_ratio(z), printed.squeeze(-1), rtol=1e-6, atol=1e-6)


def test_the_mean_of_the_optimal_critic_is_the_kl() -> None:
    q, p = Gaussian(LOC, LOGVAR), StandardNormal(3).double()(Batch(LOC))
    best = Of(lambda x, z, u: q.log_prob(z) - p.log_prob(z))
    draw = with_codes(sigma_points(q))
    assert joint_ratio(best, adaptive=False).mean(draw).item() == pytest.approx(CLOSED, rel=1e-12)


@pytest.mark.parametrize(("shift", "widen"), [(0.0, 1.0), (0.4, 2.5)])
def test_with_adaptive_contrast_the_rest_of_the_kl_is_added(shift: float, widen: float) -> None:
    """T = log q - log r of the standardised z: E_q [T + log r - log p] is the KL, whatever r is; T = 0 where r is q."""
    q, r = Gaussian(LOC, LOGVAR), Gaussian(LOC + shift, LOGVAR + math.log(widen))
    z = sigma_points(q)

    def best(x: Tensor, standard: Tensor, u: Tensor | None) -> Tensor:
        back = r.loc + r.stddev * standard
        return q.log_prob(back) - r.log_prob(back)

    draw = with_codes(z, q)
    draw.keep("contrast", lambda: r)
    draw.q.moments = lambda: r
    assert joint_ratio(Of(best), adaptive=True).mean(draw).item() == pytest.approx(CLOSED, rel=1e-12)
    if widen == 1.0:
        nothing = Of(lambda x, z, u: torch.zeros(len(z)).double())
        assert joint_ratio(nothing, adaptive=True).mean(draw).item() == pytest.approx(CLOSED, rel=1e-12)


def test_through_z_alone_the_gradient_is_that_of_the_kl() -> None:
    """T held fixed: E_q grad log q = 0, so nothing is lost by not differentiating the critic."""
    loc, logvar = LOC.clone().requires_grad_(), LOGVAR.clone().requires_grad_()
    fixed, p = Gaussian(LOC, LOGVAR), StandardNormal(3).double()(Batch(LOC))
    best = Of(lambda x, z, u: fixed.log_prob(z) - p.log_prob(z))
    draw = with_codes(sigma_points(Gaussian(loc, logvar)))
    found = torch.autograd.grad(joint_ratio(best, adaptive=False).mean(draw), (loc, logvar))
    closed = torch.autograd.grad((0.5 * (loc**2 + logvar.exp() - logvar - 1)).sum(), (loc, logvar))
    torch.testing.assert_close(found, closed, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("adaptive", [False, True])
def test_a_joint_critic_that_cannot_tell_costs_two_log_two(adaptive: bool) -> None:
    q = Gaussian(LOC.expand(6, 3), LOGVAR.expand(6, 3))
    draw = with_codes(sigma_points(Gaussian(LOC, LOGVAR)), q)
    draw.q.moments = lambda: q
    nothing = Of(lambda x, z, u: torch.zeros(len(z)).double())
    assert joint_critic(nothing, adaptive)(draw).numpy() == pytest.approx(2 * math.log(2))
    assert adaptive or not joint_ratio(nothing, adaptive)(draw).any()


def test_the_joint_critic_is_best_at_the_log_ratio(even: Draw) -> None:
    """-E_q log s(T) - E_p log(1 - s(T)) with s(t) = 1/(1 + exp(-t)): q is class one."""
    best = Of(lambda x, z, u: log_ratio(z))
    found = joint_critic(best, adaptive=False).mean(even).item()
    for other in (lambda z: log_ratio(z) + 0.3, lambda z: 0.7 * log_ratio(z), lambda z: -log_ratio(z)):
        worse = Of(lambda x, z, u, other=other: other(z))
        assert joint_critic(worse, adaptive=False).mean(even).item() > found + 1e-3


def test_the_adaptive_critic_sees_standardised_codes_and_standard_noise() -> None:
    seen: list[Tensor] = []
    critic = Of(lambda x, z, u: seen.append(z) or torch.zeros(len(z)).double())  # type: ignore[func-returns-value]
    q = Gaussian(LOC.expand(20_000, 3), LOGVAR.expand(20_000, 3))
    draw = with_codes(q.sample(), q)
    draw.q.moments = lambda: q
    joint_critic(critic, adaptive=True)(draw)
    for z in seen:
        torch.testing.assert_close(z.mean(0), torch.zeros(3).double(), atol=5 / math.sqrt(20_000), rtol=0)
        torch.testing.assert_close(z.var(0), torch.ones(3).double(), atol=5 * math.sqrt(2 / 20_000), rtol=0)
    assert not torch.equal(seen[0], seen[1])


@pytest.mark.parametrize("adaptive", [False, True])
def test_two_processes_contrast_with_what_one_would(adaptive: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise is drawn for the global batch and sliced."""

    def noise(rows: slice) -> Tensor:
        seen: list[Tensor] = []
        critic = Of(lambda x, z, u: seen.append(z) or torch.zeros(len(z)).double())  # type: ignore[func-returns-value]
        q = Gaussian(LOC.expand(6, 3)[rows], LOGVAR.expand(6, 3)[rows])
        draw = with_codes(torch.zeros(6, 3).double()[rows], q)
        draw.q.moments = lambda: q
        torch.manual_seed(1)
        joint_critic(critic, adaptive)(draw)
        return seen[1]

    whole, parts = noise(slice(0, 6)), []
    monkeypatch.setattr(distributed, "world", lambda: 2)
    for rank in (0, 1):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        parts.append(noise(slice(3 * rank, 3 * rank + 3)))
    torch.testing.assert_close(torch.cat(parts), whole)


def built(name: str, data: DataSet, **options: Any) -> tuple[Method, Loop]:
    reseed(0)
    method = card(name).build(Parts(data.about, Choices(latent=3, net="mlp-300"), 10, data), options)
    method.prepare(adam(1e-3))
    return method, Loop(method, Batches(data, "train", 16, 0, (), torch.device("cpu")), 0)


@pytest.mark.parametrize(
    ("name", "options"), [("avb", {}), ("avb", {"adaptive": False}), ("wae-gan", {}), ("aae", {}), ("f-vae", {})]
)
def test_model_and_critic_do_not_move_each_other(pixels: DataSet, name: str, options: dict[str, Any]) -> None:
    method, loop = built(name, pixels, **options)
    shared: Draw | None = None
    for number, player in enumerate(method.players):
        before = {group: [p.detach().clone() for p in owned] for group, owned in method.owned.items()}
        draw = loop.draw(method, player, 0, number, 0, shared)
        shared = shared or draw
        move(loop.method, player, player.objective(draw).total)
        for group, owned in method.owned.items():
            same = [torch.equal(a, b) for a, b in zip(before[group], owned, strict=True)]
            assert not any(same) if group in player.moves else all(same), group


def test_aae_reconstructs_teaches_and_fools(pixels: DataSet) -> None:
    """The encoder has two updates a step and the decoder one; no player has a rate; the fooling draws anew."""
    method, loop = built("aae", pixels)
    terms = [[term.name for term in player.objective.terms] for player in method.players]
    assert terms == [["nll"], ["critic"], ["fool"]]
    assert [player.moves for player in method.players] == [("encoder", "decoder"), ("critic",), ("encoder",)]
    for step in range(3):
        loop.step(step)
    counts = {
        group: {int(memory["step"]) for memory in optimiser.state_dict()["state"].values()}
        for group, optimiser in method.optimisers.items()
    }
    assert counts == {"encoder": {6}, "decoder": {3}, "critic": {3}}


# -- f-divergences -----------------------------------------------------------------------------------------------------

FREE: dict[str, Callable[[Tensor], Tensor]] = {  # the free output v at which a row's T is T*, as a function of log r
    "kl": lambda r: 1 + r,
    "reverse-kl": lambda r: -r,
    "jsd": lambda r: r,
    "gan": lambda r: r,
    "total-variation": lambda r: 20 * torch.sign(r),
    "pearson": lambda r: 2 * (r.exp() - 1),
    "neyman": lambda r: -2 * r,
    "hellinger": lambda r: -0.5 * r,
}


def test_every_row_has_its_optimum_here() -> None:
    assert FREE.keys() == DIVERGENCES.keys()


# E_q 1/r^2 and the like are integrals over tails that few points do not see, unless q is wider than p.
WIDE = {"neyman", "reverse-kl"}


@pytest.mark.parametrize("row", DIVERGENCES.values(), ids=lambda row: row.name)
def test_the_penalty_is_the_divergence_at_the_optimal_critic(row: FDivergence, monkeypatch: pytest.MonkeyPatch) -> None:
    """E_q T* - E_p f*(T*) = D_f(q(z) || p); shifted, T* gives less; for kl that is the closed KL."""
    q = Normal(0.3, 1.3) if row.name in WIDE else Q
    points = quantiles(8000)
    monkeypatch.setattr(adversarial, "prior_draws", lambda draw, moves=False: points)
    draw = with_codes(q.loc + q.scale * points)

    def critic(scale: float = 1.0, shift: float = 0.0) -> nn.Module:
        return Of(lambda z: FREE[row.name](scale * (q.log_prob(z) - P.log_prob(z)).squeeze(-1) + shift))

    truth = integral(lambda z: P.log_prob(z).exp() * row.f((q.log_prob(z) - P.log_prob(z)).exp()))
    found = f_penalty(critic(), row).mean(draw).item()
    assert found == pytest.approx(truth, abs=4e-3)
    assert row.name != "kl" or found == pytest.approx(KL, abs=2e-3)
    assert f_critic(critic(), row).mean(draw).item() == pytest.approx(-found)
    for shift in (-0.5, 0.5):
        assert f_penalty(critic(shift=shift), row).mean(draw).item() < found - 1e-3
    assert f_penalty(critic(scale=-1.0), row).mean(draw).item() < found - 1e-3


@pytest.mark.parametrize("row", DIVERGENCES.values(), ids=lambda row: row.name)
def test_every_row_has_finite_gradients(row: FDivergence) -> None:
    critic = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    z = (3 * torch.randn(64, 2)).double().requires_grad_()
    draw = with_codes(z)
    grads = torch.autograd.grad(f_penalty(critic, row).mean(draw), [z, *critic.parameters()])
    assert all(torch.isfinite(g).all() for g in grads)
    assert grads[0].any()
    grads = torch.autograd.grad(f_critic(critic, row).mean(draw), list(critic.parameters()))
    assert all(torch.isfinite(g).all() for g in grads)
    assert f_penalty(critic, row).name == f"D_{row.name}"


@pytest.mark.parametrize("row", DIVERGENCES.values(), ids=lambda row: row.name)
def test_codes_far_from_the_prior_still_feel_the_slope_of_the_critic(row: FDivergence) -> None:
    """Beyond the limit of its outputs the critic counts as one at the limit, and pulls as it does there."""
    high = min(row.limits(adversarial.MOST)[1], 20.0)
    z = torch.full((8, 1), high + 5.0).double().requires_grad_()
    penalty = f_penalty(Of(lambda z: z.squeeze(-1)), row).mean(with_codes(z))
    at = torch.tensor(row.limits(adversarial.MOST)[1]).double().clamp_max(high + 5.0).requires_grad_()
    (slope,) = torch.autograd.grad(row.output(at), at)
    (found,) = torch.autograd.grad(penalty, z)
    torch.testing.assert_close(8 * found, slope.expand(8, 1))


def test_a_critic_sees_points_of_the_ball_with_what_they_carry() -> None:
    """Codes of q and draws of p alike, so that it cannot tell them by what was lost on the way."""
    ball, seen = Ball(), []
    prior = WrappedPrior(6, ball)
    law = normal(ball, torch.zeros(4, 6).double(), torch.full((4, 6), 6.0))
    draw = Draw(LatentModel(prior, prior, prior), Batch(torch.zeros(4, 1)))
    draw.__dict__["q"] = law
    chart = Flat(ball).double()
    prior_critic(Of(lambda z: seen.append(chart(z)) or z.sum(-1))).mean(draw)  # type: ignore[func-returns-value]
    assert len(seen) == 2
    torch.testing.assert_close(seen[1], law._last[1][0])
    assert seen[1].norm(dim=-1).max() > 20
