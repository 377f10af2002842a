"""Lagging inference: who moves while it is aggressive, what ends that, and that it ends for good."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from contract import FIT, Bench, Killed, act_at, kill, newest, same
from torch import Tensor

from elboroom import resume
from elboroom.core.batch import Batch
from elboroom.core.method import Method, adam, descend, once, times
from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.families.gaussian import GaussianPosterior, StandardNormal
from elboroom.methods.lagging import InformationStop
from elboroom.runs.lifecycle import train
from elboroom.terms.evidence import kl
from elboroom.training import loop as training
from elboroom.training import session
from elboroom.training.session import Own
from elboroom.training.spec import specify
from elboroom.training.watches import held_out


def ready(bench: Bench, name: str = "lagging-vae", **options: Any) -> Method:
    method = session.build(specify(name, bench.data, "array", None, {**FIT, **options}), Own(bench.data))
    assert isinstance(method, Method)
    method.prepare(adam(FIT["lr"]))
    return method


def copies(parameters: list[torch.nn.Parameter]) -> list[Tensor]:
    return [p.detach().clone() for p in parameters]


def equal(a: list[Tensor], b: list[torch.nn.Parameter]) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def test_the_decoder_is_bit_identical_across_the_inner_loop(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven turns of the encoder alone, the first on the batch of the step and the others elsewhere, then the decoder alone."""
    method, moves = ready(bench, at_most=7), []
    move = training.move

    def watched(on: Method, player: Any, loss: Tensor) -> None:
        before = {name: copies(owned) for name, owned in on.owned.items()}
        move(on, player, loss)
        moves.append({name for name, owned in on.owned.items() if not equal(before[name], owned)})

    rows = []
    draw = method.draw

    def drawn(player: Any, batch: Batch, another: Any = None) -> Any:
        rows.append(batch.index)
        return draw(player, batch, another)

    monkeypatch.setattr(training, "move", watched)
    monkeypatch.setattr(method, "draw", drawn)
    loop = bench.loop(method)
    loop.step(0)
    assert moves == [{"encoder"}] * 7 + [{"decoder"}]
    same_rows = [torch.equal(index, loop.batches(0).index) for index in rows]
    assert same_rows == [True] + [False] * 6 + [True]
    assert len({tuple(index.tolist()) for index in rows[:7]}) == 7


def test_the_inner_loop_ends_where_it_is_flat(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    method, costs = ready(bench, window=2), iter([5.0, 5.0, 4.0, 4.0, 4.0, 4.5, 0.0])
    monkeypatch.setattr(training, "cost", lambda loss, batch: torch.tensor(next(costs)))
    bench.loop(method).step(0)
    state = method.state()
    assert {float(v) for k, v in state.items() if k.startswith("optimiser/encoder") and k.endswith("step")} == {6.0}
    assert {float(v) for k, v in state.items() if k.startswith("optimiser/decoder") and k.endswith("step")} == {1.0}


def test_switched_off_it_is_the_annealed_vae_bit_for_bit(bench: Bench) -> None:
    options = {"start": 0.1, "warmup": 0.5}
    lagging, plain = ready(bench, **options), ready(bench, "vae-annealed", **options)
    stop = lagging.watches[0]
    assert isinstance(stop, InformationStop)
    stop.on.fill_(False)
    for method in (lagging, plain):
        loop = bench.loop(method)
        logged = [loop.step(step) for step in range(4)]
        assert {"nll", "kl", "kl.weight", "loss"} == logged[0].keys()
    same(lagging.model.state_dict(), plain.model.state_dict())


def test_the_loss_that_is_logged_is_that_of_what_was_played(bench: Bench) -> None:
    logged = bench.loop(ready(bench, at_most=2)).step(0)
    assert float(logged["loss"]) == pytest.approx(float(logged["nll"]) + float(logged["kl"]), rel=1e-6)


# -- the stop ------------------------------------------------------------------------------------------------------


class Heads(torch.nn.Module):
    """Posteriors of unit variance at multiples of `gain`."""

    def __init__(self, gain: float = 0.0) -> None:
        super().__init__()
        self.gain = torch.nn.Parameter(torch.tensor(gain))

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        return torch.cat([self.gain * x, torch.zeros_like(x)], 1)


M = 50


def watched() -> tuple[InformationStop, Method, Heads]:
    heads, stop = Heads(), InformationStop(1)
    model = LatentModel(GaussianPosterior(heads), StandardNormal(1), torch.nn.Identity())
    x = torch.arange(float(M)).unsqueeze(1)
    stop.attach(lambda: [Batch(x[:20]), Batch(x[20:])], 7)
    return stop, descend(model, kl()), heads


def look(stop: InformationStop, method: Method, heads: Heads, gain: float) -> tuple[float, bool]:
    heads.gain.data.fill_(gain)
    assert stop.look(method, 1) is False, "it never ends the run"
    return stop.last.item(), bool(stop.on)


def test_it_switches_exactly_once_at_the_first_fall() -> None:
    seen = [look(*watched_, gain) for watched_ in [watched()] for gain in (0.0, 0.5, 5.0, 100.0, 1.0, 200.0, 300.0)]
    values, on = zip(*seen, strict=True)
    assert on == (True, True, True, True, False, False, False)
    assert values[0] == pytest.approx(0.0, abs=1e-9), "posteriors that are all one carry nothing"
    assert values[3] == pytest.approx(math.log(M)), "over the whole split, not over its batches of 20 and 30"
    assert values[0] < values[1] < values[2]


def test_the_model_trains_on_after_a_look() -> None:
    stop, method, heads = watched()
    method.train()
    look(stop, method, heads, 1.0)
    assert all(module.training for module in method.model.modules())


def test_a_look_is_due_every_epoch_unless_said() -> None:
    valid: Any = list
    for said, every in ((0, 22), (5, 5)):
        stop = InformationStop(said)
        stop.attach(valid, 22)
        assert stop.every == every


def test_it_gives_turns_before_and_after() -> None:
    stop = InformationStop(1)
    assert list(stop.before(times(3))(0, [])) == [0, 1, 2]
    assert list(stop.after(once)(0, [])) == []
    stop.on.fill_(False)
    assert list(stop.before(times(3))(0, [])) == []
    assert list(stop.after(once)(0, [])) == [0]


FALLS: dict[str, Any] = {"at_most": 2, "look": 2, "start": 1000.0, "warmup": 1.0, "log_every": 1}


@pytest.mark.parametrize("killed", [3, 5, 7])
def test_the_switch_survives_a_kill_before_and_after_it_turns(bench: Bench, tmp_path: Path, killed: int) -> None:
    options = {**FALLS, "checkpoint_every": 1}
    whole, folder = bench.train("lagging-vae", tmp_path / "whole", **options), tmp_path / "run"
    told = [line["aggressive"] for line in whole.log if "aggressive" in line]
    assert told == sorted(told, reverse=True)
    assert set(told) == {0.0, 1.0}, "it turns in the midst of the run"
    with pytest.raises(Killed):
        bench.train("lagging-vae", folder, bar=act_at(killed, kill), **options)
    resume(folder, data=bench.data)
    same(newest(folder).state, newest(whole.folder).state)
    assert (folder / "log.jsonl").read_text() == (whole.folder / "log.jsonl").read_text()
    assert not newest(folder).state["memory.0.on"]


def test_it_holds_out_a_validation_split_of_its_own(bench: Bench) -> None:
    spec = specify("lagging-vae", bench.data, "array", None, FIT)
    assert set(spec.data["splits"]) == {"train", "test", "valid"}
    assert set(specify("vae", bench.data, "array", None, FIT).data["splits"]) == {"train", "test"}
    data = session.data_of(spec, Own(bench.data))
    seen = torch.cat([batch.index for batch in held_out(data, (), torch.device("cpu"))])
    assert seen.tolist() == data.splits["valid"].tolist()
    assert not set(seen.tolist()) & set(data.splits["train"].tolist())


def test_it_needs_a_posterior_whose_information_is_known(vectors: DataSet, tmp_path: Path) -> None:
    with pytest.raises(Problem, match="use --posterior gaussian"):
        train("lagging-vae", vectors, tmp_path / "run", **FIT, posterior="iaf")
