"""The dual form of the KL: from below, exact at the log-ratio, with its +1, and with no way back into the encoder."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

from elboroom.build.game import BETAS
from elboroom.build.parts import Choices, Parts
from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.method import Method, adam, descend
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.families.ball import WrappedImplicitPosterior, WrappedPrior
from elboroom.families.gaussian import GaussianPosterior, StandardNormal
from elboroom.geometry.ball import Ball
from elboroom.methods import card
from elboroom.nets.dual import DualCritic
from elboroom.terms import dual as module
from elboroom.terms.dual import LESSONS, dual, dual_critic, dual_rate, learned_dual
from elboroom.terms.evidence import nll
from elboroom.terms.penalties import place
from elboroom.training.batches import Batches, batch_of, reseed
from elboroom.training.loop import Loop, move

P, Q = Normal(0.0, 1.0), Normal(0.7, 0.6)
KL = kl_divergence(Q, P).item()
POINTS = P.icdf((torch.arange(4000).double() + 0.5) / 4000).unsqueeze(1)  # that stand for N(0, 1)


class LogRatio(nn.Module):
    """nu = log q/p + shift."""

    def __init__(self, shift: float = 0.0, joint: bool = False) -> None:
        super().__init__()
        self.shift, self.joint = shift, joint

    def forward(self, z: Tensor, h: Tensor | None = None) -> Tensor:
        return (Q.log_prob(z) - P.log_prob(z)).squeeze(-1) + self.shift


@pytest.fixture
def even(monkeypatch: pytest.MonkeyPatch) -> Draw:
    """Codes of q and draws of p, both evenly spread: means over them are integrals."""
    monkeypatch.setattr(module, "prior_draws", lambda draw, moves=False: POINTS)
    empty = StandardNormal(1).double()
    draw = Draw(LatentModel(empty, empty, empty), Batch(POINTS))
    draw.__dict__["z"] = (Q.mean + Q.stddev * POINTS).unsqueeze(0)
    draw.q.features = torch.zeros(len(POINTS), 1).double()
    return draw


@pytest.mark.parametrize("joint", [True, False])
def test_at_the_log_ratio_it_is_the_kl_with_the_one(even: Draw, joint: bool) -> None:
    """KL(q || p), and without the +1 a nat less."""
    term = dual_rate(LogRatio(joint=joint))
    assert term.name == "dual"
    assert term.mean(even).item() == pytest.approx(KL, abs=2e-3)
    z = even.z[0]
    without = (LogRatio()(z) - LogRatio()(POINTS).exp()).mean().item()
    assert without == pytest.approx(KL - 1, abs=2e-3)
    assert dual_critic(LogRatio(joint=joint)).mean(even).item() == pytest.approx(-KL, abs=2e-3)


@pytest.mark.parametrize("shift", [-2.0, -0.5, 0.3, 1.0])
def test_any_other_critic_says_less(even: Draw, shift: float) -> None:
    """nu + s gives KL + s - e^s + 1."""
    found = dual_rate(LogRatio(shift)).mean(even).item()
    assert found == pytest.approx(KL + shift - math.exp(shift) + 1, abs=5e-3)
    assert found < KL


def test_a_critic_that_says_nothing_reads_zero(even: Draw) -> None:
    class Zero(nn.Module):
        joint = True

        def forward(self, z: Tensor, h: Tensor | None = None) -> Tensor:
            return 0 * z.squeeze(-1)

    assert not dual_rate(Zero())(even).any()


def test_a_critic_that_learns_rises_to_the_kl_from_below(even: Draw) -> None:
    """Quadratic critics contain the log-ratio: by descent the dual value rises to KL and never passes it."""
    critic = nn.Linear(2, 1).double()
    nn.init.zeros_(critic.weight)
    nn.init.zeros_(critic.bias)

    class Quadratic(nn.Module):
        joint = False

        def forward(self, z: Tensor, h: Tensor | None = None) -> Tensor:
            out: Tensor = critic(torch.cat([z, z.square()], 1))
            return out.squeeze(-1)

    optimiser = torch.optim.Adam(critic.parameters(), lr=0.1)
    values = []
    for _ in range(200):
        loss = dual_critic(Quadratic()).mean(even)
        values.append(-loss.item())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert values[0] == 0
    assert all(value < KL + 1e-3 for value in values)
    assert all(later > before - 1e-3 for before, later in zip(values[::5], values[5::5], strict=False))
    assert values[-1] == pytest.approx(KL, abs=3e-3)


def test_a_critic_beyond_what_is_held_says_no_more_than_the_kl() -> None:
    """q on a set of which p has 1e-25: KL 57.6, whatever nu says there."""
    nu = torch.tensor([1000.0])
    share = 1e-25
    value = dual(nu, nu) * share + dual(nu, torch.zeros(1)) * (1 - share)  # over draws of p, nu = 0 elsewhere
    assert value.item() < -math.log(share)


def test_the_encoder_still_learns_where_nu_is_held() -> None:
    class Steep(nn.Module):
        joint = False

        def forward(self, z: Tensor, h: Tensor | None = None) -> Tensor:
            return 1e4 * z.sum(-1)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(2, 4))

        def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
            return x @ self.weight + 3

    net = Net()
    draw = Draw(LatentModel(GaussianPosterior(net), StandardNormal(2), nn.Identity()), Batch(torch.ones(5, 2)))
    dual_rate(Steep()).mean(draw).backward()
    assert net.weight.grad is not None
    torch.testing.assert_close(net.weight.grad[:, :2], torch.full((2, 2), 1e4))


def test_nothing_overflows() -> None:
    """Nor does the square of the slope, which an optimiser keeps; and a nu that is too large comes down."""
    nu = torch.tensor([1e4], requires_grad=True)
    assert torch.isfinite(dual(torch.zeros(1), nu))
    learned_dual(torch.zeros(1), nu).backward()
    assert nu.grad is not None
    assert nu.grad < 0
    assert torch.isfinite((1e3 * nu.grad).square())


@pytest.mark.unhurried
@pytest.mark.parametrize("by", LESSONS)
@pytest.mark.parametrize("kl", [1.0, 3.0])
def test_nu_settles_at_the_log_ratio(kl: float, by: str) -> None:
    """q = N(m, I) held still: E_q nu is KL and E_p e^nu is one, though few draws of p carry the latter."""
    torch.manual_seed(0)
    shift = torch.zeros(4)
    shift[0] = math.sqrt(2 * kl)
    critic = DualCritic(4, width=32)
    optimiser = adam(1e-3, BETAS)(list(critic.parameters()))
    for _ in range(1500):
        optimiser.zero_grad()
        LESSONS[by](critic(torch.randn(64, 4) + shift), critic(torch.randn(64, 4))).mean().backward()
        optimiser.step()
    with torch.no_grad():
        nu = critic(torch.randn(100_000, 4) + shift)
    assert nu.mean().item() == pytest.approx(kl, rel=0.35)


@pytest.mark.parametrize("nu", [-3.0, 0.0, 5.0, 9.9])
def test_what_is_learned_from_is_the_dual_itself(nu: float) -> None:
    both = torch.tensor([nu + 50]), torch.tensor([nu])
    torch.testing.assert_close(learned_dual(*both).double(), dual(*both), rtol=1e-5, atol=1e-5)


def test_a_rate_of_80_nats_is_said() -> None:
    assert dual(torch.tensor([80.0]), torch.tensor([-20.0])).item() == pytest.approx(81.0)


# -- on the methods ----------------------------------------------------------------------------------------------------

RIVAL, OWN = 0, 1  # in the order of their turns
GAMES = ["implicit-vae", "implicit-vae-mi", "apo-vae", "apo-vae-vamp"]


def game(name: str, data: DataSet, **options: Any) -> Method:
    reseed(0)
    made = card(name).build(Parts(data.about, Choices(latent=3, net="mlp-300"), 8, data), options)
    made.prepare(adam(1e-3))
    assert isinstance(made, Method)
    return made


def shared(method: Method, data: DataSet) -> Draw:
    return method.draw(method.players[0], batch_of(data, data.splits["train"][:8], ()))


@pytest.mark.parametrize("name", GAMES)
def test_nu_has_its_turns_before_the_model(pixels: DataSet, name: str) -> None:
    method = game(name, pixels)
    assert "critic" in method.players[RIVAL].moves
    assert list(method.players[RIVAL].turns(0, [])) == list(range(5))
    assert method.players[OWN].moves == ("vae",)
    method.prepare(adam(1e-3), 5.0)
    assert method.clips["critic"] == 0, "a gradient that is cut moves the critic's optimum, whatever the run asks for"
    batches = Batches(pixels, "train", 8, 0, (), torch.device("cpu"))
    logged = Loop(method, batches, 0).step(0)
    parts = logged["nll"] + logged["dual.weight"] * logged["dual"] + 0.01 * logged.get("place", 0.0)
    assert float(logged["loss"]) == pytest.approx(float(parts), rel=1e-5), "the loss of the step is the model's"


@pytest.mark.parametrize("name", GAMES)
def test_nu_sends_no_gradient_into_the_encoder(pixels: DataSet, name: str) -> None:
    """Codes and features are detached; pseudo-inputs move with nu, so draws of their prior are not."""
    method = game(name, pixels)
    draw = shared(method, pixels)
    loss = method.players[RIVAL].objective(draw).total
    codes, own = draw.z, method.players[RIVAL].moves
    assert torch.autograd.grad(loss, codes, allow_unused=True, retain_graph=True) == (None,)
    moved = torch.autograd.grad(loss, [p for group in own for p in method.owned[group]], retain_graph=True)
    assert all(grad.any() for grad in moved)
    encoder = torch.autograd.grad(loss, method.owned["vae"], allow_unused=True)
    assert all(grad is None for grad in encoder) == ("pseudo" not in own)
    before = [p.detach().clone() for p in method.owned["vae"]]
    move(method, method.players[RIVAL], method.players[RIVAL].objective(shared(method, pixels)).total)
    assert all(torch.equal(a, b) for a, b in zip(before, method.owned["vae"], strict=True))


@pytest.mark.parametrize("name", GAMES)
def test_the_model_pleases_nu_through_its_codes_alone(pixels: DataSet, name: str) -> None:
    """Not through the features that nu reads; through draws of the prior where it is made of the encoder."""
    method = game(name, pixels)
    draw = shared(method, pixels)
    (weight, term) = method.players[OWN].objective.parts[1]
    whole = torch.autograd.grad(term.mean(draw), method.owned["vae"], allow_unused=True, retain_graph=True)
    codes = [draw.z, *([draw.z.log_gap] if hasattr(draw.z, "log_gap") else [])]  # and what points of the ball carry
    back = torch.autograd.grad(term.mean(draw), codes, retain_graph=True)
    by_codes = torch.autograd.grad(codes, method.owned["vae"], back, allow_unused=True)
    pairs = [(a, b) for a, b in zip(whole, by_codes, strict=True) if a is not None or b is not None]
    alike = [torch.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in pairs]
    assert all(alike) if name != "apo-vae-vamp" else not any(alike)
    assert weight.now(0) == pytest.approx(0.1)
    assert weight.now(2) == 1.0


@pytest.mark.parametrize("name", GAMES)
def test_five_turns_of_nu_on_one_draw(pixels: DataSet, name: str) -> None:
    """The encoder reads the batch once a step; pseudo-inputs it reads anew each time."""
    method, seen = game(name, pixels, critic_turns=5), []
    net = method.model.posterior.net
    net.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    logged = Loop(method, Batches(pixels, "train", 8, 0, (), torch.device("cpu")), 0).step(0)
    assert len(seen) == (1 if name != "apo-vae-vamp" else 7)
    assert {"nll", "dual", "dual.weight", "critic"} <= logged.keys()


def test_the_dual_needs_features_and_says_so(pixels: DataSet) -> None:
    for name, posterior in (
        ("implicit-vae", "gaussian"),
        ("implicit-vae", "wrapped-implicit"),
        ("apo-vae-vamp", "vmf"),
    ):
        with pytest.raises(Problem, match=f"remove --posterior {posterior}"):
            card(name).build(Parts(pixels.about, Choices(latent=3, posterior=posterior), 8), {})
    plain = card("vae").build(Parts(pixels.about, Choices(latent=3), 8), {}).model
    with pytest.raises(Problem, match="choose with --generator"):
        descend(plain, nll() + dual_rate(DualCritic(3, 4)))
    method = card("implicit-vae-mi").build(Parts(pixels.about, Choices(latent=3, posterior="gaussian"), 8), {})
    assert isinstance(method.model.posterior, GaussianPosterior)


@pytest.mark.parametrize("far", [0.5, 3.0, 40.0])
def test_an_anchor_pulls_from_wherever_a_centre_is(far: float) -> None:
    """Beyond the margin of the ball too, where the image of a centre stands still."""
    out = torch.tensor([[far, 0.0, 0.3, 0.1, 0.0]], requires_grad=True)  # F(x) and three features
    posterior = WrappedImplicitPosterior(Same(), Ball(1.0), 3, 4, 2, linear=True)
    draw = Draw(LatentModel(posterior, WrappedPrior(2, posterior.ball), nn.Identity()), Batch(out))
    anchor = place().mean(draw)
    pull = torch.autograd.grad(anchor, out)[0][0, 0].item()
    assert pull == pytest.approx(2 * min(far, 6.1) * min(1.0, 6.1 / far), rel=0.01)
    v = draw.q.tangent.mean.square().sum().item()
    assert anchor.item() == pytest.approx(min(far, 6.1) ** 2 + v, rel=0.01)


class Same(nn.Module):
    """An encoder that emits x."""

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        return x
