"""Groups, players and the state of a method."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.method import Group, Method, Player, adam, descend
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.families.gaussian import GaussianPosterior, StandardNormal
from elboroom.families.pixels import BernoulliLikelihood
from elboroom.families.point import PointPosterior
from elboroom.terms.evidence import iw_bound, kl, nll
from elboroom.weights.controllers import PI


class Net(nn.Module):
    """A linear net that ignores u."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: Any, u: Any = None) -> Any:
        return self.linear(x)


def model() -> LatentModel:
    return LatentModel(GaussianPosterior(Net(4, 4)), StandardNormal(2), BernoulliLikelihood(Net(2, 4), 1))


def test_every_parameter_is_in_exactly_one_group() -> None:
    it = model()
    with pytest.raises(Problem, match="in two groups that this method trains separately: a and b"):
        Method(it, [Player(nll(), "a")], a=Group(it), b=Group(it.posterior))
    with pytest.raises(ValueError, match=r"likelihood.*in no group"):
        Method(it, [Player(nll(), "a")], a=Group(it.posterior))
    it.likelihood.requires_grad_(False)
    method = Method(it, [Player(nll(), "a")], a=Group(it.posterior))
    assert [p.shape for p in method.owned["a"]] == [p.shape for p in it.posterior.parameters()]


def test_a_shared_parameter_is_owned_once() -> None:
    it = model()
    group = Group([it, it.posterior])
    assert len(group.parameters()) == len(list(it.parameters()))


def test_what_cannot_be_is_refused_when_the_method_is_built() -> None:
    point = LatentModel(PointPosterior(Net(4, 2)), StandardNormal(2), BernoulliLikelihood(Net(2, 4), 1))
    for objective in (nll() + kl(), 1.0 * iw_bound(3)):
        with pytest.raises(Problem, match="--posterior gaussian"):
            descend(point, objective)
    assert descend(point, nll()).players[0].moves == ("model",)


def test_a_draw_has_as_many_samples_as_the_objective_asks_for() -> None:
    method = descend(model(), iw_bound(7))
    assert method.draw(method.players[0], Batch(torch.rand(3, 4))).z.shape == (7, 3, 2)


def train(method: Method, steps: int) -> None:
    for step in range(steps):
        torch.manual_seed(step)
        loss = method.players[0].objective(Draw(method.model, Batch(torch.rand(3, 4), step=step)))
        method.optimisers["model"].zero_grad()
        loss.total.backward()
        method.optimisers["model"].step()
        method.update(step, {0: loss})


def controlled() -> Method:
    torch.manual_seed(3)
    method = descend(model(), nll() + PI(0.01, 0.01, 0.1, 0.0) * kl())
    method.prepare(adam(1e-2))
    return method


def test_the_state_is_the_whole_run() -> None:
    one, other = controlled(), controlled()
    train(one, 4)
    state = {key: value.clone() for key, value in one.state().items()}
    kinds = {"model.posterior.net.linear.weight", "objectives.0.weights.1.integral", "optimiser/model/0/exp_avg"}
    assert kinds <= state.keys()
    assert state["optimiser/model/0/step"].item() == 4
    other.restore(state)
    for method in (one, other):
        train(method, 6)
    assert all(torch.equal(value, other.state()[key]) for key, value in one.state().items())


@pytest.mark.parametrize("missing", ["objectives.0.weights.1.integral", "model.likelihood.net.linear.bias"])
def test_a_state_that_lacks_something_is_not_restored(missing: str) -> None:
    method = controlled()
    train(method, 1)
    with pytest.raises(RuntimeError, match="Missing key"):
        controlled().restore({key: value for key, value in method.state().items() if key != missing})


def test_what_is_part_of_the_model_is_in_the_state_once() -> None:
    it = model()
    parts = Group([it.posterior, it.likelihood])
    method = Method(it, [Player(nll(), "vae")], vae=parts)
    assert all(key.startswith(("model.", "objectives.")) for key in method.state())
    twice = method.state() | {f"others.vae.0.{key}": value for key, value in it.posterior.state_dict().items()}
    method.restore(twice)


def test_groups_take_the_optimiser_of_the_run_or_their_own() -> None:
    it, critic = model(), nn.Linear(2, 2)
    method = Method(
        it, [Player(nll(), "model")], model=Group(it), critic=Group(critic, adam(1e-4, betas=(0.5, 0.9)), clip=2.0)
    )
    method.prepare(adam(3e-3), clip=1.0)
    assert method.clips == {"model": 1.0, "critic": 2.0}
    assert method.optimisers["model"].param_groups[0]["lr"] == 3e-3
    assert method.optimisers["model"].param_groups[0]["betas"] == (0.9, 0.999)
    assert method.optimisers["critic"].param_groups[0]["betas"] == (0.5, 0.9)
    assert any(key.startswith("others.critic.") for key in method.state())
