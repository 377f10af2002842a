"""The loop does what backward() and a plain optimiser would."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from elboroom.build.parts import Choices, Parts
from elboroom.core.draw import Draw
from elboroom.core.method import adam
from elboroom.data.arrays import dataset
from elboroom.methods import card
from elboroom.training.batches import Batches, reseed
from elboroom.training.loop import Loop


@pytest.mark.parametrize("net", ["burgess", "locatello", "mlp-300"])
def test_a_step_is_backward_and_plain_adam(net: str) -> None:
    """Fused Adam walks parameter and gradient side by side, so their memory layouts must agree."""
    data = dataset((np.random.default_rng(0).random((40, 32, 32)) > 0.7).astype(np.uint8) * 255)
    torch.manual_seed(0)
    ours = card("vae").build(Parts(data.about, Choices(net=net)), {})
    plain = copy.deepcopy(ours.model)
    ours.prepare(adam(1e-3))
    optimiser = torch.optim.Adam(plain.parameters(), lr=1e-3, foreach=False, fused=False)
    batches = Batches(data, "train", 8, 0, (), torch.device("cpu"))
    loop = Loop(ours, batches, seed=0)
    for step in range(2):  # in a third rounding may turn a rectifier on that was off
        loop.step(step)
        reseed(0, step, 0, 0)
        draw = Draw(plain, batches(step))
        optimiser.zero_grad()
        (draw.nll.mean() + draw.rate.sum(1).mean()).backward()
        optimiser.step()
    for (name, a), b in zip(ours.model.named_parameters(), plain.parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-6), name


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("lagging-vae", [{"encoder"}] * 3 + [{"decoder"}]),  # each on a Draw of its own
        ("vae-svi-kl", [{"encoder", "decoder"}, {"encoder"}]),  # the encoder reads the Draw that the decoder made
        ("factor-vae", [{"vae", "critic"}, {"critic"}]),
    ],
)
def test_what_nobody_moves_from_a_draw_stands_still(name: str, wanted: list[set[str]]) -> None:
    data = dataset(np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32))
    options = {"lagging-vae": {"window": 3, "at_most": 3}, "vae-svi-kl": {"inner_steps": 1}}
    method = card(name).build(Parts(data.about, Choices(latent=2)), options.get(name, {}))
    method.prepare(adam(1e-3))
    seen = []

    def look(*_: Any) -> None:
        seen.append({group for group, owned in method.owned.items() if all(p.requires_grad for p in owned)})

    for player in method.players:
        player.objective.register_forward_pre_hook(look)
    Loop(method, Batches(data, "train", 8, 0, (), torch.device("cpu")), seed=0).step(0)
    assert seen == wanted
    assert all(p.requires_grad for owned in method.owned.values() for p in owned)


def test_batches_are_a_function_of_seed_and_step() -> None:
    data = dataset(np.arange(50 * 4, dtype=np.float32).reshape(50, 4))
    one, two = (Batches(data, "train", 16, 3, (), torch.device("cpu")) for _ in range(2))
    seen = [one(step).index for step in range(6)]
    for step in reversed(range(6)):
        assert torch.equal(two(step).index, seen[step])
    epoch = torch.cat(seen[:3])
    assert len(set(epoch.tolist())) == 48, "no example twice in an epoch"
    assert not torch.equal(seen[0], seen[3])
    assert torch.equal(one.fresh(4, 1, 0).index, two.fresh(4, 1, 0).index)
    assert not torch.equal(one.fresh(4, 1, 0).index, one.fresh(4, 1, 1).index)
    assert len(set(one.fresh(4, 1, 0).index.tolist())) == 16
