"""Autoencoders whose codes match the prior: the distances and penalties in closed form."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from contract import Bench, same
from torch import Tensor

from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.method import Method, adam
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.divergences.kernels import SCALES
from elboroom.families.gaussian import Gaussian, StandardNormal
from elboroom.terms import transport
from elboroom.terms.transport import log_variance, mmd, own_spread
from elboroom.training import session
from elboroom.training.batches import Batches
from elboroom.training.loop import Loop
from elboroom.training.session import Own
from elboroom.training.spec import specify

B, J = 16, 3


def draw_of(loc: Tensor, logvar: Tensor) -> Draw:
    """A Draw whose posterior is known and whose sample is its mean."""
    draw = Draw(
        LatentModel(torch.nn.Identity(), StandardNormal(J), torch.nn.Identity()), Batch(torch.zeros(len(loc), 1))
    )
    draw.q, draw.z = Gaussian(loc, logvar), loc.unsqueeze(0)
    return draw


def built(data: DataSet, name: str, **options: Any) -> Method:
    method = session.build(specify(name, data, "array", None, {"latent": J, **options}), Own(data))
    assert isinstance(method, Method)
    method.prepare(adam(1e-3))
    return method


@pytest.mark.parametrize("constant", [2.0, 4.0])
@pytest.mark.parametrize("unbiased", [False, True])
def test_the_mmd_of_two_point_masses(constant: float, unbiased: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """All z at a and all draws of the prior at b, |a - b| = r: 2 sum_s r^2 / (s C + r^2) with C = constant J."""
    a, b = torch.tensor([1.0, 2.0, 0.0]), torch.tensor([1.0, 0.0, -1.0])
    monkeypatch.setattr(transport, "prior_draws", lambda draw, moves=False: b.expand(B, J))
    found = mmd("imq", unbiased, constant).mean(draw_of(a.expand(B, J), torch.zeros(B, J))).item()
    r2 = float((a - b).square().sum())
    assert found == pytest.approx(2 * sum(r2 / (s * constant * J + r2) for s in SCALES), rel=1e-5)


def test_the_unbiased_mmd_of_equal_laws_is_zero_in_the_mean() -> None:
    values = torch.tensor([mmd("imq", True).mean(draw_of(torch.randn(B, J), torch.zeros(B, J))) for _ in range(1000)])
    assert abs(values.mean()) < 4 * values.std() / math.sqrt(1000)
    assert values.min() < 0


def test_the_penalties_of_the_spread() -> None:
    """1/2 sum (s^2 - log s^2 - 1) and sum |log s^2|: both zero at the spread of the prior, whatever the means."""
    logvar = torch.tensor([[0.0, -2.0, 1.0], [0.0, 0.0, 0.0]])
    draw = draw_of(torch.randn(2, J), logvar)
    by_hand = 0.5 * (logvar.exp() - logvar - 1).sum(1)
    torch.testing.assert_close(own_spread()(draw).sum(1), by_hand)
    torch.testing.assert_close(log_variance()(draw).sum(1), torch.tensor([3.0, 0.0]))
    assert by_hand[1] == 0


def test_a_critic_that_cannot_tell_costs_two_log_two_and_the_encoder_log_two(pixels: DataSet) -> None:
    method = built(pixels, "laae", lam=10.0, penalty=0.5)
    for parameter in method.owned["critic"]:
        torch.nn.init.zeros_(parameter)
    draw = method.draw(method.players[0], Batches(pixels, "train", B, 0, (), torch.device("cpu"))(0))
    model, critic = (player.objective(draw) for player in method.players)
    assert critic.total.item() == pytest.approx(2 * math.log(2))
    assert float(model.logged["fool"]) == pytest.approx(math.log(2))
    penalty = draw.q.logvar.abs().sum(1).mean().item()
    total = float(model.logged["nll"]) + 10 * math.log(2) + 0.5 * penalty
    assert model.total.item() == pytest.approx(total, rel=1e-6)


def test_laae_teaches_the_critic_with_codes_that_do_not_move_the_encoder(pixels: DataSet) -> None:
    method = built(pixels, "laae")
    draw = method.draw(method.players[0], Batches(pixels, "train", B, 0, (), torch.device("cpu"))(0))
    total = method.players[1].objective(draw).total
    assert all(g is None for g in torch.autograd.grad(total, list(method.model.parameters()), allow_unused=True))


@pytest.mark.slow
def test_without_the_penalty_sigma_vanishes_and_with_it_it_stays(vectors: DataSet) -> None:
    """For WAE-S and LAAE alike: an autoencoder has no reason of its own to be uncertain."""

    def spread(name: str, **options: Any) -> float:
        method = built(vectors, name, net="mlp-300", **options)
        loop = Loop(method, Batches(vectors, "train", 64, 0, (), torch.device("cpu")), 0)
        for step in range(150):
            loop.step(step)
        q = method.model.posterior(loop.batches(0))
        return q.stddev.mean().item()

    assert spread("wae-s", spread=0.0) < 0.6 < spread("wae-s", spread=100.0)
    assert spread("laae", penalty=0.0) < 0.6 < spread("laae", penalty=100.0)


def test_a_penalty_of_log_variance_needs_one(pixels: DataSet) -> None:
    for name in ("laae", "wae-s"):
        with pytest.raises(Problem, match="use --posterior gaussian"):
            built(pixels, name, posterior="iaf")
    assert type(built(pixels, "wae-d").model.posterior).__name__ == "PointPosterior"


@pytest.mark.parametrize(("name", "options"), [("daae", {"drop": 0.0}), ("laae", {"penalty": 0.0})])
def test_without_noise_and_penalty_they_are_the_adversarial_autoencoder_of_text(
    name: str, options: dict[str, Any], text_bench: Bench
) -> None:
    ends = []
    for one, said in (("aae", {}), (name, options)):
        method = text_bench.fresh(one, **said)
        loop = text_bench.loop(method)
        for step in range(4):
            loop.step(step)
        weights = {key.replace("posterior.posterior.", "posterior."): t for key, t in method.model.state_dict().items()}
        ends.append({key: value.clone() for key, value in weights.items()})
    same(*ends)
    moved = text_bench.fresh("aae").model.state_dict()
    assert not torch.equal(moved["likelihood.net.head.weight"], ends[0]["likelihood.net.head.weight"])


@pytest.mark.parametrize("name", ["aae", "daae", "laae", "wae-s"])
def test_codes_of_sentences_begin_narrow_unless_the_trunk_is_a_published_one(name: str, sentences: DataSet) -> None:
    small = {"embed": 8, "hidden": 8}
    batch = Batches(sentences, "train", 32, 0, (), torch.device("cpu"))(0)

    def sigma(**options: Any) -> float:
        posterior = built(sentences, name, **small, **options).model.posterior
        return posterior(batch).stddev.mean().item()

    assert sigma() < 0.2
    assert sigma(trunk="b") > 0.8
