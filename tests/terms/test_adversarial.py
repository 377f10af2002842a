"""FactorVAE's critic: the ratio that it should read, what it may not touch, and which rows it sees."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import MultivariateNormal

from elboroom.build.parts import Choices, Parts
from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.method import Method, adam
from elboroom.core.model import LatentModel
from elboroom.data.dataset import DataSet
from elboroom.families.gaussian import StandardNormal
from elboroom.methods import card
from elboroom.terms.adversarial import critic_nll, density_ratio, permuted
from elboroom.training.batches import Batches, batch_of, reseed
from elboroom.training.loop import Loop, move

B = 16


def with_codes(z: Tensor, other: Tensor | None = None) -> Draw:
    """A Draw of these codes, (B, J)."""
    empty = StandardNormal(z.shape[1])
    model = LatentModel(empty, empty, empty)
    draw = Draw(model, Batch(z), another=None if other is None else lambda: with_codes(other))
    draw.__dict__["z"] = z.unsqueeze(0)
    return draw


class LogRatio(nn.Module):
    """The analytic critic of a bivariate Gaussian with correlation rho: l0 - l1 = log N(z; 0, S) - log N(z; 0, I)."""

    def __init__(self, rho: float) -> None:
        super().__init__()
        self.joint = MultivariateNormal(
            torch.zeros(2).double(), torch.tensor([[1, rho], [rho, 1]], dtype=torch.float64)
        )
        self.product = MultivariateNormal(torch.zeros(2).double(), torch.eye(2).double())

    def forward(self, z: Tensor) -> Tensor:
        return torch.stack([self.joint.log_prob(z), self.product.log_prob(z)], 1)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8, -0.95])
def test_the_ratio_of_a_correlated_gaussian_is_its_tc(rho: float) -> None:
    """-1/2 log(1 - rho^2), 0.5108 at 0.8: exact over points with the moments of q(z), since the ratio is quadratic."""
    critic = LogRatio(rho)
    root = math.sqrt(2) * critic.joint.scale_tril.T
    found = density_ratio(critic).mean(with_codes(torch.cat([root, -root]))).item()
    assert found == pytest.approx(-0.5 * math.log(1 - rho**2), abs=1e-12)
    assert rho != 0.8 or found == pytest.approx(0.5108, abs=5e-5)


def test_an_undecided_critic_costs_log_two() -> None:
    critic = nn.Linear(3, 2)
    nn.init.zeros_(critic.weight)
    nn.init.zeros_(critic.bias)
    z = torch.randn(B, 3)
    assert critic_nll(critic)(with_codes(z, torch.randn(B, 3))).item() == pytest.approx(math.log(2))
    assert not density_ratio(critic)(with_codes(z)).any()


def test_the_critic_calls_codes_class_zero() -> None:
    """1/2 CE(z, 0) + 1/2 CE(permuted z', 1), each half over all its rows."""
    critic = nn.Linear(3, 2).double()
    z, other = torch.randn(2, B, 3).double()
    torch.manual_seed(5)
    found = critic_nll(critic)(with_codes(z, other))
    torch.manual_seed(5)
    product = permuted(other)
    by_hand = -0.5 * critic(z).log_softmax(1)[:, 0].mean() - 0.5 * critic(product).log_softmax(1)[:, 1].mean()
    torch.testing.assert_close(found, by_hand)


def test_the_critic_that_descends_its_loss_reads_the_tc() -> None:
    """The minimiser of critic_nll over quadratic critics is the log-ratio of correlated codes, so its mean is their TC."""
    critic = nn.Linear(5, 2).double()

    class Quadratic(nn.Module):
        def forward(self, z: Tensor) -> Tensor:
            a, b = z.unbind(1)
            return critic(torch.stack([a, b, a * a, b * b, a * b], 1))

    joint = LogRatio(0.8).joint
    draw = with_codes(joint.sample((20_000,)), joint.sample((20_000,)))
    optimiser = torch.optim.LBFGS(critic.parameters(), max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        torch.manual_seed(1)  # one permutation
        loss = critic_nll(Quadratic())(draw)
        loss.backward()
        return loss

    optimiser.step(closure)
    assert density_ratio(Quadratic()).mean(draw).item() == pytest.approx(0.5108, abs=0.04)


# -- permutation -------------------------------------------------------------------------------------------------------


def test_columns_are_rearranged_each_on_its_own() -> None:
    """Fault 4: every column keeps its values, rows are mixed, and the orders of two columns differ."""
    z = torch.arange(64).unsqueeze(1) + torch.tensor([0.0, 1000.0, 2000.0, 3000.0])  # (64, 4): each row is recognisable
    mixed = permuted(z)
    assert torch.equal(mixed.sort(0).values, z)
    orders = mixed - torch.tensor([0.0, 1000.0, 2000.0, 3000.0])
    assert all(not torch.equal(orders[:, i], orders[:, j]) for i in range(4) for j in range(i))
    assert all((orders[:, j] != torch.arange(64)).sum() > 48 for j in range(4))
    assert (orders == orders[:, :1]).all(1).sum() <= 3
    assert not torch.equal(permuted(z), mixed)


def test_a_permutation_breaks_the_correlation() -> None:
    a = torch.randn(20_000)
    mixed = permuted(torch.stack([a, a], 1))
    assert abs(torch.corrcoef(mixed.T)[0, 1].item()) < 5 / math.sqrt(20_000)


# -- on the real method ------------------------------------------------------------------------------------------------


def factor_vae(data: DataSet) -> Method:
    reseed(0)
    method = card("factor-vae").build(Parts(data.about, Choices(latent=3, net="mlp-300"), 10), {})
    method.prepare(adam(1e-3))
    return method


def shared(method: Method, data: DataSet) -> Draw:
    rows = data.splits["train"]
    return method.draw(
        method.players[0],
        batch_of(data, rows[:B], ()),
        lambda: method.draw(method.players[1], batch_of(data, rows[B : 2 * B], ())),
    )


def test_the_critic_leaves_the_model_alone(pixels: DataSet) -> None:
    """Fault 2: after the critic's backward no parameter of the model has a gradient, and all of the critic have."""
    method = factor_vae(pixels)
    method.players[1].objective(shared(method, pixels)).total.backward()
    assert all(p.grad is None for p in method.owned["vae"])
    assert all(p.grad is not None for p in method.owned["critic"])


@pytest.mark.parametrize("order", ["model first", "critic first"])
def test_a_step_after_the_critics_backward_is_the_same_step(pixels: DataSet, order: str) -> None:
    """Fault 2: the critic's backward, the critic not updated, changes nothing for the model, whoever reads z first."""
    ends = []
    for disturb in (False, True):
        method = factor_vae(pixels)
        loop = Loop(method, Batches(pixels, "train", B, 0, (), torch.device("cpu")), 0)
        reseed(1)
        draw = shared(method, pixels)
        if order == "critic first" and disturb:
            method.players[1].objective(draw).total.backward()
        loss = method.players[0].objective(draw).total
        if order == "model first" and disturb:
            method.players[1].objective(draw).total.backward()
        move(loop.method, method.players[0], loss)
        ends.append([p.detach().clone() for p in method.owned["vae"]])
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))


def test_a_player_moves_its_own_group_alone(pixels: DataSet) -> None:
    method = factor_vae(pixels)
    loop = Loop(method, Batches(pixels, "train", B, 0, (), torch.device("cpu")), 0)
    before = {name: [p.detach().clone() for p in group] for name, group in method.owned.items()}
    move(loop.method, method.players[1], method.players[1].objective(shared(method, pixels)).total)
    assert all(torch.equal(a, b) for a, b in zip(before["vae"], method.owned["vae"], strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(before["critic"], method.owned["critic"], strict=True))
    move(loop.method, method.players[0], method.players[0].objective(shared(method, pixels)).total)
    assert not any(torch.equal(a, b) for a, b in zip(before["vae"], method.owned["vae"], strict=True))
    assert all(p.grad is None for p in method.parameters())


def test_both_players_see_the_full_batch(pixels: DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault 3: nll is the mean over all B examples, the critic sees B codes and B permuted ones, the decoder runs once."""
    method = factor_vae(pixels)
    seen: dict[str, list[int]] = {"critic": [], "decoder": [], "encoder": []}

    def count(room: str) -> Any:
        return lambda module, inputs: seen[room].append(len(inputs[0]))

    critic = method.others["critic"][0]
    critic.register_forward_pre_hook(count("critic"))
    method.model.likelihood.net.register_forward_pre_hook(count("decoder"))
    method.model.posterior.net.register_forward_pre_hook(count("encoder"))
    batches = Batches(pixels, "train", B, 0, (), torch.device("cpu"))
    indices = []
    take = Batches._batch
    monkeypatch.setattr(Batches, "_batch", lambda self, rows, step: indices.append(rows) or take(self, rows, step))
    before = [p.detach().clone() for p in method.model.parameters()]
    logged = Loop(method, batches, 0).step(0)
    assert seen == {"critic": [B, 2 * B], "decoder": [B], "encoder": [B, B]}
    assert len(indices) == 2
    assert set(indices[0]) != set(indices[1]), "z' comes from a second batch"
    for parameter, start in zip(method.model.parameters(), before, strict=True):
        parameter.data = start
    reseed(0, 0, 0, 0)
    with torch.no_grad():
        by_hand = Draw(method.model, batch_of(pixels, indices[0], ())).nll
    assert by_hand.shape == (1, B)
    torch.testing.assert_close(torch.as_tensor(logged["nll"]), by_hand.mean())
