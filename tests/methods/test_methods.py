"""The contract of the registry: what every method keeps by being registered. New methods enter by themselves."""

from __future__ import annotations

import math
import re
from copy import deepcopy
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from contract import (
    AT_WORK,
    CONTEXT_METHODS,
    FIT,
    FROM_NOTHING,
    HALF,
    METHODS,
    TEXT_METHODS,
    WHOLE,
    Bench,
    Killed,
    act_at,
    built,
    controllers,
    first_of_each,
    half,
    interrupt,
    kill,
    memory,
    moved,
    newest,
    one_of_each,
    same,
    state,
    those,
    turns,
    updates,
)
from torch import Tensor

from elboroom import resume
from elboroom.core.method import adam
from elboroom.core.objective import Constant, Weight
from elboroom.data.dataset import DataSet
from elboroom.methods import card
from elboroom.runs.lifecycle import train
from elboroom.training import session
from elboroom.training.batches import Batches, reseed
from elboroom.training.checkpoint import Checkpoints
from elboroom.training.loop import Loop
from elboroom.training.session import Own, Stopped
from elboroom.training.spec import Spec, specify

# -- it trains ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_every_trainable_parameter_moves(bench: Bench, name: str) -> None:
    after = newest(bench.whole(name).folder).state
    for parameter, may, did in moved(bench.fresh(name), after):
        assert may == did, f"{parameter} {'stands still' if may else 'is frozen, yet moved'}"


@pytest.mark.parametrize("name", METHODS)
def test_every_optimiser_makes_one_update_a_turn(bench: Bench, name: str) -> None:
    """Fault 8: 300,000 steps of a peer were 150,000 updates."""
    found = updates(newest(bench.whole(name).folder).state)
    assert found == turns(bench.fresh(name), WHOLE)
    dual = ("implicit-vae", "implicit-vae-mi", "apo-vae", "apo-vae-vamp")
    more = {("aae", "encoder"): 2} | {(m, g): 5 for m in dual for g in ("critic", "pseudo")}
    once = {group: counts for group, counts in found.items() if "." not in group}  # stages share the steps
    for group, counts in once.items():
        assert counts == {float(WHOLE * more.get((name, group), 1))}, group


@pytest.mark.parametrize("name", METHODS)
def test_every_term_is_logged_and_finite(bench: Bench, name: str) -> None:
    run = bench.whole(name)
    terms = [term.name for player in run.method.players for term in player.objective.terms]
    assert [line["step"] for line in run.log] == [3, 4, 6, 8]
    for line in run.log:
        assert {*terms, "loss"} <= line.keys()
        assert all(math.isfinite(value) for value in line.values())


@pytest.mark.parametrize("name", METHODS)
def test_the_loss_is_the_formula_of_what_is_logged(bench: Bench, name: str) -> None:
    """loss = sum of weight and term as logged; a weight that only multiplies is logged as what it multiplied by."""
    method = bench.fresh(name)
    loop = bench.loop(method)
    for step in range(3):
        own = next(player for player in method.at(step).players if not player.rival)
        parts = [(deepcopy(weight), term) for weight, term in own.objective.parts]  # before it moves on
        logged = loop.step(step)
        total = torch.zeros(())
        for weight, term in parts:
            value = torch.as_tensor(logged[term.name])
            total = total + weight.apply_to(step, value)
            if not isinstance(weight, Constant):
                assert float(logged[f"{term.name}.{weight.logged_as}"]) == float(weight.now(step))
            if type(weight).apply_to is Weight.apply_to:
                torch.testing.assert_close(weight.apply_to(step, value), float(weight.now(step)) * value)
        torch.testing.assert_close(torch.as_tensor(logged["loss"]), total, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("name", those(controllers))
def test_controllers_are_updated_once_a_step_with_what_is_logged(bench: Bench, name: str) -> None:
    method = bench.fresh(name)
    loop = bench.loop(method)
    for step in range(3):
        players = method.at(step).players
        copies = [[deepcopy(weight) for weight, _ in player.objective.parts] for player in players]
        logged = loop.step(step)
        for player, before in zip(players, copies, strict=True):
            for copy, (weight, term) in zip(before, player.objective.parts, strict=True):
                copy.update(step, torch.as_tensor(logged[term.name]))
                same(copy.state_dict(), weight.state_dict())


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("name", FROM_NOTHING)
def test_it_trains_given_a_label(pixels: DataSet, name: str, tmp_path: Path) -> None:
    """With the net that is usual for pixels; what it decodes differs by the label, and no parameter stands still."""
    options = {**FIT, **AT_WORK.get(name, {}), "given": "label"}
    run = train(name, pixels, tmp_path / "run", **options)
    images = run.decode(torch.zeros(3, run.latent).numpy(), torch.eye(3).numpy())
    assert abs(images[0] - images[1]).max() > 0
    assert all(math.isfinite(value) for line in run.log for value in line.values())
    start = session.build(specify(name, pixels, "array", None, options), Own(pixels))
    assert not [key for key, may, did in moved(start, newest(run.folder).state) if may and not did]


KINDS = ("binary", "rgb", "vectors")
ELSEWHERE = [  # each method on one of them, all methods on all in `make test-slow`
    pytest.param(name, kind, marks=() if number % len(KINDS) == which else pytest.mark.slow)
    for number, name in enumerate(FROM_NOTHING)
    for which, kind in enumerate(KINDS)
]


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize(("name", "kind"), ELSEWHERE)
def test_it_trains_on_other_data(name: str, kind: str, request: pytest.FixtureRequest) -> None:
    data: DataSet = request.getfixturevalue(kind)
    spec = specify(name, data, "array", None, {**FIT, **AT_WORK.get(name, {})})
    method = session.build(spec, Own(data))
    method.prepare(adam(1e-3))
    loop = Loop(method, Batches(data, "train", 8, 0, spec.model.given_names, torch.device("cpu")), 0)
    assert all(math.isfinite(float(value)) for step in range(2) for value in loop.step(step).values())


# -- it resumes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_it_resumes_bit_for_bit_after_a_kill(bench: Bench, name: str, tmp_path: Path) -> None:
    """Killed after 7 of 8 steps, the newest checkpoint is of step 4: weights, optimisers, memory and log end the same."""
    whole, folder = bench.whole(name), tmp_path / "run"
    with pytest.raises(Killed):
        bench.train(name, folder, bar=act_at(WHOLE - 1, kill))
    assert newest(folder).step == HALF
    again = resume(folder, data=bench.data)
    assert newest(folder).step == again.step == WHOLE
    same(newest(folder).state, newest(whole.folder).state)
    same(again.model.state_dict(), whole.model.state_dict())
    assert (folder / "log.jsonl").read_text() == (whole.folder / "log.jsonl").read_text()


@pytest.mark.parametrize("name", one_of_each(state))
def test_it_resumes_bit_for_bit_after_an_interruption(
    bench: Bench, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked to stop during step 5, it ends that step, saves and says so: resumed, the last state is the same."""
    step = Loop.step

    def interrupted(loop: Loop, number: int) -> dict[str, Tensor | float]:
        if number == 4:
            interrupt()
        return step(loop, number)

    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(Loop, "step", interrupted)
        with pytest.raises(Stopped, match="step 5 and saved; continue with: elbo resume"):
            bench.train(name, folder)
    assert newest(folder).step == 5
    resume(folder, data=bench.data)
    same(newest(folder).state, newest(bench.whole(name).folder).state)


@pytest.mark.parametrize("name", ["ae", "vae"])
def test_the_memory_of_a_watch_is_resumed_too(bench: Bench, name: str, tmp_path: Path) -> None:
    looks = {"patience": 50, "look_every": 1}
    whole, folder = bench.train(name, tmp_path / "whole", **looks), tmp_path / "run"
    with pytest.raises(Killed):
        bench.train(name, folder, bar=act_at(WHOLE - 1, kill), **looks)
    resume(folder, data=bench.data)
    end = newest(whole.folder).state
    assert math.isfinite(end["memory.0.best"].item())
    same(newest(folder).state, end)
    best = [Checkpoints(run / "checkpoints").best() for run in (whole.folder, folder)]
    assert best[0] is not None
    assert best[1] is not None
    assert best[0].step == best[1].step
    same(best[0].state, best[1].state)


def test_an_interruption_while_the_bar_is_drawn_is_saved_too(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(Stopped) as stopped:
        bench.train("vae", folder, bar=act_at(5, interrupt))
    said = re.search(r"stopped at step (\d+) and saved", str(stopped.value))
    assert said is not None
    assert newest(folder).step == int(said[1])


@pytest.mark.parametrize("name", those(memory))
def test_memory_is_at_work(bench: Bench, name: str) -> None:
    """Every buffer that a state keeps has changed by half-way and again by the end: resuming it is no empty promise.

    A switch, which is a bool, turns once and for good.
    """
    folder = bench.whole(name).folder
    middle, end = half(bench, name), newest(folder).state
    for key, start in memory(bench.fresh(name)).items():
        assert not torch.equal(middle[key], start), f"{key} is asleep: give {name} an entry in AT_WORK"
        awake = start.dtype == torch.bool or not torch.equal(middle[key], end[key])
        assert awake, f"{key} fell asleep: give {name} an entry in AT_WORK"


def test_a_weight_that_is_updated_keeps_its_memory_in_buffers() -> None:
    """What a state does not keep, a resumed run has forgotten."""
    bare = {name: [w for w in controllers(built(name)) if not list(w.buffers())] for name in FROM_NOTHING}
    assert not {name: weights for name, weights in bare.items() if weights}


FORGETFUL = [
    *((name, "buffers") for name in those(memory)),
    *((name, "optimisers") for name in first_of_each(lambda method: tuple(method.groups))),
]


@pytest.mark.parametrize(("name", "forgotten"), FORGETFUL)
def test_a_run_that_forgot_would_end_elsewhere(bench: Bench, name: str, forgotten: str) -> None:
    """The contract has teeth: resumed without its memory, a run does not arrive where the whole run did.

    Statistics of batches, which only evaluation reads, are where it arrives, too.
    """
    method = bench.fresh(name)
    start = memory(method)
    kept = {key: value for key, value in half(bench, name).items() if forgotten == "buffers" or "optimiser/" not in key}
    method.restore(kept | (start if forgotten == "buffers" else {}))
    loop = bench.loop(method)
    for step in range(HALF, WHOLE):
        loop.step(step)
    end = newest(bench.whole(name).folder).state
    arrived = dict(method.named_parameters()) | method.model.state_dict(prefix="model.")
    assert any(not torch.equal(value, end[key]) for key, value in arrived.items() if key in end)


@pytest.mark.parametrize("name", one_of_each(state))
def test_a_step_depends_on_state_and_step_alone(bench: Bench, name: str) -> None:
    """Whatever noise was drawn in between, step 4 after checkpoint 4 is the same step: no hidden generator."""
    ends = []
    for disturb in (False, True):
        method = bench.fresh(name)
        method.restore(half(bench, name))
        loop = bench.loop(method)
        if disturb:
            torch.randn(17)
            loop.batches(0)
        loop.step(HALF)
        ends.append(method.state())
    same(*ends)


# -- seeds -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", one_of_each(state))
def test_the_same_seed_is_the_same_run_and_another_is_another(bench: Bench, name: str) -> None:
    def end(seed: int) -> dict[str, Tensor]:
        method = bench.fresh(name, seed=seed)
        loop = bench.loop(method, seed)
        for step in range(2):
            loop.step(step)
        return method.state()

    first = end(0)
    same(first, end(0))
    other = end(1)
    assert all(not torch.equal(first[key], other[key]) for key in first if key.endswith("weight"))


@pytest.mark.parametrize("name", one_of_each(state))
def test_the_seed_reaches_batches_and_noise(bench: Bench, name: str) -> None:
    """From the same weights, another seed takes another step."""
    ends = []
    for seed in (0, 1):
        method = bench.fresh(name)
        bench.loop(method, seed).step(0)
        ends.append(method.state())
    assert any(not torch.equal(ends[0][key], ends[1][key]) for key in ends[0])


def test_initial_weights_and_the_noise_of_step_zero_have_different_seeds() -> None:
    reseed(7)
    weights = torch.randn(4)
    reseed(7, 0, 0, 0)
    assert not torch.equal(weights, torch.randn(4))


def test_seed_step_player_and_turn_all_matter() -> None:
    seen = set()
    for key in product((0, 1, 2), repeat=4):
        reseed(*key)
        seen.add(torch.randn(1).item())
    assert len(seen) == 81


# -- what is left of it ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_its_spec_round_trips(bench: Bench, name: str) -> None:
    run = bench.whole(name)
    assert Spec.read(run.folder) == run.spec
    assert set(run.spec.options) == {option.name for option in card(name).options}
    assert str(run.method.players[0].objective)


@pytest.mark.parametrize("name", METHODS)
def test_the_same_question_has_the_same_answer(bench: Bench, name: str) -> None:
    run = bench.whole(name)
    batch = run.examples(4)
    assert np.array_equal(run.encode(batch), run.encode(batch))
    assert np.array_equal(run.reconstruct(batch), run.reconstruct(batch))


def test_the_registry_is_not_empty() -> None:
    assert {"ae", "vae", "beta-vae"} <= set(METHODS)
    assert AT_WORK.keys() <= {*METHODS, *TEXT_METHODS, *CONTEXT_METHODS}, "an entry of AT_WORK names no method"
