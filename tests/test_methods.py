"""The contract of the registry: what every method keeps by being registered. New methods enter by themselves.

Faults of peers (section 7.4 of the image specification) and the tests that would see them; FAULTS below is checked.
"""

from __future__ import annotations

import ast
import inspect
import json
import math
import os
import re
import signal
from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor

import elboroom
from elboroom import resume
from elboroom.core.draw import Draw
from elboroom.core.method import Method, adam
from elboroom.core.objective import Constant, Weight
from elboroom.core.problem import Problem
from elboroom.data.dataset import About, DataSet
from elboroom.divergences.variational import DIVERGENCES
from elboroom.methods.parts import Choices, Parts
from elboroom.methods.registry import ByData, Card, card, cards
from elboroom.run import Run, load, train
from elboroom.terms import penalties
from elboroom.training import session
from elboroom.training.batches import Batches, reseed
from elboroom.training.checkpoint import Checkpoint, Checkpoints
from elboroom.training.loop import Loop
from elboroom.training.session import Own, Stopped
from elboroom.training.spec import Spec, specify

METHODS = list(cards())
HALF, WHOLE = 4, 8
FIT: dict[str, Any] = {
    "steps": WHOLE,
    "batch_size": 8,
    "latent": 3,
    "lr": 1e-3,
    "log_every": 3,
    "checkpoint_every": HALF,
    "threads": 1,
    "device": "cpu",
}
# Options that put memory to work. A method whose memory its defaults leave asleep fails
# `test_memory_is_at_work` until it has an entry here.
AT_WORK: dict[str, dict[str, Any]] = {
    "control-vae": {"target": 0.6, "ki": 0.01, "ramp": 0.0},  # kl starts above it, so that beta leaves its lower bound
    "mdr-vae": {"rate": 200.0},
}


# Buffers that a state keeps and that never change: masks of flows, spectra of priors.
CONSTANT = re.compile(r"model\.(posterior\.flow\..*\.(order|mask)|prior\.logvar)")


class Killed(Exception):
    """The plug is pulled."""


class ActAt:
    """A progress bar that does something at a step."""

    def __init__(self, step: int, act: Callable[[], None]) -> None:
        self.step, self.act = step, act

    def __call__(self, step: int, line: dict[str, float]) -> None:
        if step == self.step:
            self.act()

    def close(self) -> None: ...


def act_at(step: int, act: Callable[[], None]) -> Callable[[Spec], ActAt]:
    """The bar, as a run asks for it."""
    return lambda spec: ActAt(step, act)


def kill() -> None:
    raise Killed


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def memory(method: Method) -> dict[str, Tensor]:
    """What a method remembers beside its parameters: the buffers that its state keeps and that are no constants."""
    known = {name for name, _ in method.named_parameters()}
    state = {name: tensor for name, tensor in method.state_dict().items() if not CONSTANT.fullmatch(name)}
    return {name: tensor.clone() for name, tensor in state.items() if name not in known}


def updates(state: dict[str, Tensor]) -> dict[str, set[float]]:
    """How many updates each optimiser has made, by its own count for every parameter."""
    counts: dict[str, set[float]] = {}
    for key, value in state.items():
        if re.fullmatch(r"optimiser/.*/step", key):
            counts.setdefault(key.split("/")[1], set()).add(float(value))
    return counts


def turns(method: Method, steps: int) -> dict[str, set[float]]:
    """How many updates each group should have made: one for every turn of every player that moves it."""
    counted = dict.fromkeys(method.groups, 0)
    for player in method.players:
        for name in player.moves:
            counted[name] += sum(len(list(player.turns(step))) for step in range(steps))
    return {name: {float(count)} for name, count in counted.items()}


def newest(folder: Path) -> Checkpoint:
    found = Checkpoints(folder / "checkpoints").newest()
    assert found is not None
    return found


def half(bench: Bench, name: str) -> dict[str, Tensor]:
    """The state of the whole run half-way."""
    return Checkpoints(bench.whole(name).folder / "checkpoints").read(f"step-{HALF:09d}").state


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> None:
    """Two states agree in every bit."""
    assert a.keys() == b.keys()
    differ = [name for name in a if a[name].dtype != b[name].dtype or not torch.equal(a[name], b[name])]
    assert not differ, f"these differ: {differ}"


class Bench:
    """Whole runs of every method, trained once and looked at by several tests."""

    def __init__(self, data: DataSet, folder: Path) -> None:
        self.data, self.folder = data, folder
        self.runs: dict[str, Run] = {}

    def train(self, name: str, out: Path, **more: Any) -> Run:
        return train(name, self.data, out, **{**FIT, **AT_WORK.get(name, {}), **more})

    def whole(self, name: str) -> Run:
        if name not in self.runs:
            self.runs[name] = self.train(name, self.folder / name)
        return self.runs[name]

    def fresh(self, name: str, **more: Any) -> Method:
        """The method at step 0, ready to train."""
        spec = specify(name, self.data, "array", None, {**FIT, **AT_WORK.get(name, {}), **more})
        method = session.build(spec, Own(self.data))
        method.prepare(adam(FIT["lr"]))
        return method

    def loop(self, method: Method, seed: int = 0) -> Loop:
        held = self.data.hold_out(self.data.holdout)
        return Loop(method, Batches(held, "train", FIT["batch_size"], seed, (), torch.device("cpu")), seed)


def by_kind(state: dict[str, Tensor], floats_first: bool) -> dict[str, Tensor]:
    """The same state with its numbers, or its masks and counts, in front."""
    return dict(sorted(state.items(), key=lambda item: item[1].is_floating_point() != floats_first))


@pytest.fixture(scope="module")
def bench(pixels: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    torch.set_num_threads(1)
    return Bench(pixels, tmp_path_factory.mktemp("whole"))


def moved(before: Method, after: dict[str, Tensor]) -> Iterator[tuple[str, bool, bool]]:
    """(name, whether it may move, whether it did) for every parameter."""
    for name, parameter in before.named_parameters():
        yield name, parameter.requires_grad, not torch.equal(parameter, after[name])


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
    two = {("aae", "encoder")}
    for group, counts in found.items():
        assert counts == {float(WHOLE * (2 if (name, group) in two else 1))}, group


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
        parts = [(deepcopy(weight), term) for weight, term in method.players[0].objective.parts]  # before it moves on
        logged = loop.step(step)
        total = torch.zeros(())
        for weight, term in parts:
            value = torch.as_tensor(logged[term.name])
            total = total + weight.apply_to(step, value)
            if not isinstance(weight, Constant):
                assert float(logged[f"{term.name}.weight"]) == float(weight.now(step))
            if type(weight).apply_to is Weight.apply_to:
                torch.testing.assert_close(weight.apply_to(step, value), float(weight.now(step)) * value)
        torch.testing.assert_close(torch.as_tensor(logged["loss"]), total, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_controllers_are_updated_once_a_step_with_what_is_logged(bench: Bench, name: str) -> None:
    method = bench.fresh(name)
    loop = bench.loop(method)
    for step in range(3):
        copies = [[deepcopy(weight) for weight, _ in player.objective.parts] for player in method.players]
        logged = loop.step(step)
        for player, before in zip(method.players, copies, strict=True):
            for copy, (weight, term) in zip(before, player.objective.parts, strict=True):
                copy.update(step, torch.as_tensor(logged[term.name]))
                same(copy.state_dict(), weight.state_dict())


@pytest.mark.parametrize("name", METHODS)
def test_it_trains_given_a_label(pixels: DataSet, name: str, tmp_path: Path) -> None:
    run = train(name, pixels, tmp_path / "run", **{**FIT, **AT_WORK.get(name, {}), "given": "label"})
    z, u = torch.zeros(3, 3).numpy(), torch.eye(3).numpy()
    images = run.decode(z, u)
    assert abs(images[0] - images[1]).max() > 0
    assert all(math.isfinite(value) for line in run.log for value in line.values())


@pytest.mark.parametrize("name", METHODS)
def test_given_a_label_no_parameter_stands_still(bench: Bench, name: str) -> None:
    method = bench.fresh(name, given="label")
    before = {key: value.clone() for key, value in method.state_dict().items()}
    held = bench.data.hold_out(bench.data.holdout)
    loop = Loop(method, Batches(held, "train", 8, 0, ("label",), torch.device("cpu")), 0)
    for step in range(3):
        loop.step(step)
    assert not [key for key, p in method.named_parameters() if p.requires_grad and torch.equal(p, before[key])]


@pytest.mark.parametrize("kind", ["binary", "rgb", "vectors"])
@pytest.mark.parametrize("name", METHODS)
def test_it_trains_on_other_data(name: str, kind: str, request: pytest.FixtureRequest) -> None:
    data: DataSet = request.getfixturevalue(kind)
    spec = specify(name, data, "array", None, {**FIT, **AT_WORK.get(name, {})})
    method = session.build(spec, Own(data))
    method.prepare(adam(1e-3))
    loop = Loop(method, Batches(data, "train", 8, 0, (), torch.device("cpu")), 0)
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


@pytest.mark.parametrize("name", METHODS)
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
        with pytest.raises(Stopped, match="step 5, saved; go on with: elbo resume"):
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
    said = re.search(r"stopped at step (\d+), saved", str(stopped.value))
    assert said is not None
    assert newest(folder).step == int(said[1])


@pytest.mark.parametrize("name", METHODS)
def test_memory_is_at_work(bench: Bench, name: str) -> None:
    """Every buffer that a state keeps has changed by half-way and again by the end: resuming it is no empty promise."""
    folder = bench.whole(name).folder
    middle, end = half(bench, name), newest(folder).state
    for key, start in memory(bench.fresh(name)).items():
        assert not torch.equal(middle[key], start), f"{key} is asleep: give {name} an entry in AT_WORK"
        assert not torch.equal(middle[key], end[key]), f"{key} fell asleep: give {name} an entry in AT_WORK"


@pytest.mark.parametrize("forgotten", ["buffers", "optimisers"])
@pytest.mark.parametrize("name", METHODS)
def test_a_run_that_forgot_would_end_elsewhere(bench: Bench, name: str, forgotten: str) -> None:
    """The contract has teeth: resumed without its memory, a run does not arrive where the whole run did."""
    method = bench.fresh(name)
    start = memory(method)
    if forgotten == "buffers" and not start:
        assert all(type(w).update is Weight.update for w in method.modules() if isinstance(w, Weight))
        return
    kept = {
        key: value
        for key, value in half(bench, name).items()
        if forgotten == "buffers" or not key.startswith("optimiser/")
    }
    method.restore(kept | (start if forgotten == "buffers" else {}))
    loop = bench.loop(method)
    for step in range(HALF, WHOLE):
        loop.step(step)
    end = newest(bench.whole(name).folder).state
    assert any(not torch.equal(p, end[key]) for key, p in method.named_parameters())


@pytest.mark.parametrize("name", METHODS)
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


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_is_the_same_run_and_another_is_another(bench: Bench, name: str) -> None:
    def state(seed: int) -> dict[str, Tensor]:
        method = bench.fresh(name, seed=seed)
        loop = bench.loop(method, seed)
        for step in range(2):
            loop.step(step)
        return method.state()

    first = state(0)
    same(first, state(0))
    other = state(1)
    assert all(not torch.equal(first[key], other[key]) for key in first if key.endswith("weight"))


@pytest.mark.parametrize("name", METHODS)
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


# -- one method in the clothes of another ------------------------------------------------------------------------------

TWINS: list[tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]]]] = [
    (("beta-vae-decreasing", {"start": 4.0, "end": 4.0}), ("beta-vae", {"beta": 4.0})),
    (("beta-vae-decreasing", {"start": 4.0, "end": 4.0, "shape": "linear"}), ("beta-vae", {"beta": 4.0})),
    (("beta-vae-decreasing", {"start": 9.0, "end": 2.0, "ramp": 0.0}), ("beta-vae", {"beta": 2.0})),
    (("beta-vae", {"beta": 1.0}), ("vae", {})),
    (("vae-annealed", {"warmup": 0.0}), ("vae", {})),
    (("vae-annealed", {"start": 1.0}), ("vae", {})),
    (("control-vae", {"kp": 0.0, "ki": 0.0, "low": 3.0}), ("beta-vae", {"beta": 3.0})),
    (("mdr-vae", {"rate": 1e-6}), ("vae", {})),
    (("factor-vae", {"gamma": 0.0}), ("vae", {})),
    (("beta-vae-capacity", {"capacity": 0.0, "gamma": 5.0}), ("beta-vae", {"beta": 5.0})),
    (("dip-vae-i", {"off": 0.0, "diag": 0.0}), ("vae", {})),
    (("dip-vae-ii", {"off": 0.0, "diag": 0.0}), ("vae", {})),
    (("info-vae", {"alpha": 0.0, "lam": 1.0}), ("vae", {})),
    (("info-vae", {"alpha": 0.0, "lam": 1.0, "kernel": "imq"}), ("vae", {})),
    (("info-vae", {"alpha": 1.0, "lam": 7.0}), ("mmd-vae", {"lam": 7.0})),
    (("mmd-vae", {"lam": 0.0}), ("beta-vae", {"beta": 0.0})),
    (("wae-mmd", {"lam": 0.0, "reconstruction": "nll"}), ("ae", {})),
    (("wae-gan", {"lam": 0.0, "reconstruction": "nll"}), ("ae", {})),
    (("vae-iaf", {}), ("vae", {"posterior": "iaf"})),
    (("alpha-beta-vae", {"alpha": 0.0, "beta": 4.0}), ("beta-vae", {"beta": 4.0})),
    (("alpha-beta-vae", {"alpha": 0.0, "beta": 4.0, "divergence": "mmd"}), ("beta-vae", {"beta": 4.0})),
    (("alpha-beta-vae", {"alpha": 0.0, "beta": 4.0, "divergence": "inclusive-kl"}), ("beta-vae", {"beta": 4.0})),
    (("f-vae", {"lam": 0.0, "beta": 4.0}), ("beta-vae", {"beta": 4.0})),
    (("regularised-vae", {"lam1": 0.0, "lam2": 0.0}), ("vae", {})),
    (("regularised-vae", {"lam1": 1.0, "lam2": 0.0}), ("beta-vae", {"beta": 2.0})),
    (("regularised-vae", {"lam1": -1.0, "lam2": 0.0}), ("beta-vae", {"beta": 0.0})),
    (("regularised-vae", {"lam1": -1.0, "lam2": 7.0}), ("mmd-vae", {"lam": 7.0})),
]


@pytest.mark.parametrize(("left", "right"), TWINS)
def test_twins_are_bit_identical(
    bench: Bench, left: tuple[str, dict[str, Any]], right: tuple[str, dict[str, Any]]
) -> None:
    """Options that make two objectives the same make the two runs the same, bit for bit."""
    ends = []
    for name, options in (left, right):
        spec = specify(name, bench.data, "array", None, {**FIT, **options})
        method = session.build(spec, Own(bench.data))
        method.prepare(adam(FIT["lr"]))
        loop = bench.loop(method)
        for step in range(HALF):
            loop.step(step)
        ends.append({key: value.clone() for key, value in method.model.state_dict().items()})
    same(*ends)


@pytest.mark.parametrize("batch_size", [4, 16])
def test_capacity_counts_optimiser_steps(bench: Bench, batch_size: int) -> None:
    """Fault 6: C(t) = C_max min(1, t/T), whatever the batch size or the epoch."""
    options = {**FIT, "capacity": 6.0, "ramp": 4.0, "batch_size": batch_size}
    method = session.build(specify("beta-vae-capacity", bench.data, "array", None, options), Own(bench.data))
    method.prepare(adam(1e-3))
    loop = Loop(method, Batches(bench.data, "train", batch_size, 0, (), torch.device("cpu")), 0)
    assert [loop.step(step)["kl.weight"] for step in range(6)] == [0.0, 1.5, 3.0, 4.5, 6.0, 6.0]


@pytest.mark.parametrize(("net", "total"), [("burgess", 502_005), ("locatello", 690_517), ("locatello-4x4", 764_245)])
def test_models_have_the_published_number_of_parameters(net: str, total: int) -> None:
    """Fault 16, on the whole model of a method."""
    about = About("sprites", "pixels", (1, 64, 64), 737_280, {}, 2)
    method = card("vae").build(Parts(about, Choices(net=net)), {})
    assert sum(p.numel() for p in method.parameters()) == total


# -- players -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_a_player_moves_its_own_groups_alone(bench: Bench, name: str) -> None:
    """Fault 2: whatever a loss reads, its step leaves the groups of other players as they were, gradients too."""
    method = bench.fresh(name)
    loop, shared = bench.loop(method), None
    for number, player in enumerate(method.players):
        before = {group: [p.detach().clone() for p in owned] for group, owned in method.owned.items()}
        draw = loop.draw(player, 0, number, 0, shared)
        shared = shared or draw
        loop.move(player, player.objective(draw).total)
        for group, owned in method.owned.items():
            still = [torch.equal(a, b) for a, b in zip(before[group], owned, strict=True)]
            assert not all(still) if group in player.moves else all(still), group
    assert all(p.grad is None for p in method.parameters())


@pytest.mark.parametrize("name", METHODS)
def test_the_loss_of_a_critic_has_no_path_into_the_model(bench: Bench, name: str) -> None:
    """Fault 2: neither encoder, decoder nor prior is in the graph of what a critic descends."""
    method = bench.fresh(name)
    loop, shared = bench.loop(method), None
    for number, player in enumerate(method.players):
        draw = loop.draw(player, 0, number, 0, shared)
        shared = shared or draw
        total = player.objective(draw).total
        if player.moves == ("critic",):
            grads = torch.autograd.grad(total, list(method.model.parameters()), allow_unused=True)
            assert all(g is None for g in grads)


# -- every posterior, every prior, every variant -----------------------------------------------------------------------

COMBINATIONS: list[dict[str, Any]] = [
    *({"posterior": kind} for kind in ("gaussian", "point", "iaf", "implicit")),
    *({"prior": kind} for kind in ("anisotropic", "student", "clustered", "sparse")),
    {"prior": "sparse", "sparse_share": 0.0},
    {"latent": 1},
    {"latent": 1, "posterior": "iaf"},
]
MORE: list[tuple[str, dict[str, Any]]] = [
    ("wae-mmd", {"posterior": "iaf", "spread": 1.0}),
    ("wae-mmd", {"posterior": "implicit", "spread": 1.0}),
    ("regularised-vae", {"posterior": "iaf", "r2": "decorrelated"}),
    ("regularised-vae", {"posterior": "iaf", "r2": "inclusive-kl"}),
    ("alpha-beta-vae", {"posterior": "iaf", "divergence": "inclusive-kl"}),
]


def combined() -> Iterator[Any]:
    for name, options in [*product(METHODS, COMBINATIONS), *MORE]:
        label = ",".join(f"{key}={value}" for key, value in options.items())
        yield pytest.param(name, options, id=f"{name}-{label}")


@pytest.mark.parametrize(("name", "options"), list(combined()))
def test_a_combination_works_or_is_refused_when_it_is_built(
    vectors: DataSet, name: str, options: dict[str, Any]
) -> None:
    spec = specify(name, vectors, "array", None, {**FIT, **options})
    try:
        method = session.build(spec, Own(vectors), vectors)
    except Problem as problem:
        if "--" not in str(problem):
            pytest.fail(f"it does not say what to combine instead: {problem}")
        return
    method.prepare(adam(1e-3))
    logged = Loop(method, Batches(vectors, "train", 8, 0, (), torch.device("cpu")), 0).step(0)
    assert all(math.isfinite(float(value)) for value in logged.values())


VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("avb", {"adaptive": False, "critic_turns": 3}),
    ("wae-mmd", {"posterior": "gaussian", "spread": 0.1, "kernel": "rbf"}),
    ("wae-gan", {"posterior": "gaussian", "reconstruction": "nll"}),
    ("aae", {"posterior": "gaussian", "reconstruction": "squared"}),
    ("dip-vae-ii", {"third": 1.0}),
    ("dip-vae-ii", {"third": 1.0, "entries": "diagonal"}),
    ("info-vae", {"alpha": 0.5, "kernel": "imq"}),
    ("alpha-beta-vae", {"prior": "clustered", "divergence": "inclusive-kl"}),
    ("alpha-beta-vae", {"prior": "sparse"}),
    ("alpha-beta-vae", {"prior": "anisotropic", "divergence": "mmd"}),
    ("alpha-beta-vae", {"prior": "student"}),
    *(("f-vae", {"f": row}) for row in DIVERGENCES),
    *(("regularised-vae", {"r2": r2}) for r2 in ("mmd-imq", "inclusive-kl", "decorrelated", "unit-variance")),
    ("iwae", {"posterior": "iaf", "prior": "clustered"}),
    ("vae-iaf", {"latent": 1}),
    ("vae-iaf", {"flow_steps": 1}),
    ("wae-mmd", {"posterior": "implicit"}),
]


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_a_variant_moves_everything_and_goes_on_where_it_was(
    pixels: DataSet, name: str, options: dict[str, Any]
) -> None:
    """The core of the contract for the options that the defaults leave out."""

    def ready() -> tuple[Method, Loop]:
        spec = specify(name, pixels, "array", None, {**FIT, "net": "mlp-300", **options})
        method = session.build(spec, Own(pixels), pixels)
        method.prepare(adam(1e-3))
        return method, Loop(method, Batches(pixels, "train", 8, 0, (), torch.device("cpu")), 0)

    whole, loop = ready()
    before = {key: p.detach().clone() for key, p in whole.named_parameters()}
    for step in range(3):
        logged = loop.step(step)
        assert all(math.isfinite(float(value)) for value in logged.values())
        if step == 1:
            middle = {key: value.clone() for key, value in whole.state().items()}
    assert not [key for key, p in whole.named_parameters() if torch.equal(p, before[key])]
    assert updates(whole.state()) == turns(whole, 3)
    again, loop = ready()
    again.restore(middle)
    loop.step(2)
    same(again.state(), whole.state())


@pytest.mark.parametrize("f", DIVERGENCES)
def test_every_divergence_starts_finite_on_data_that_is_not_standardised(vectors: DataSet, f: str) -> None:
    method = session.build(specify("f-vae", vectors, "array", None, {**FIT, "f": f}), Own(vectors), vectors)
    method.prepare(adam(1e-3))
    loop = Loop(method, Batches(vectors, "train", 8, 0, (), torch.device("cpu")), 0)
    assert all(math.isfinite(float(value)) for step in range(3) for value in loop.step(step).values())


@pytest.mark.parametrize("name", [n for n in METHODS if n not in ("ae", "aae", "wae-gan")])  # whose p(z) sees no u
@pytest.mark.parametrize("prior", ["anisotropic", "student", "clustered", "sparse"])
def test_a_structured_prior_given_labels_is_refused(vectors: DataSet, name: str, prior: str) -> None:
    spec = specify(name, vectors, "array", None, {**FIT, "prior": prior, "given": "label"})
    with pytest.raises(Problem, match=f"--prior {prior} does not depend on labels"):
        session.build(spec, Own(vectors), vectors)


def test_the_anisotropic_prior_has_the_spectrum_of_the_data(vectors: DataSet, tmp_path: Path) -> None:
    """Fixed, scaled to mean one, kept in the run: what was read off the training rows is there after loading."""
    run = train("alpha-beta-vae", vectors, tmp_path / "run", **{**FIT, "prior": "anisotropic", "alpha": 0.0})
    x = run.data.x(run.data.splits["train"]).numpy().astype(np.float64)
    spectrum = np.linalg.eigvalsh(np.cov(x.T, ddof=0))[::-1][:3]
    found = load(run.folder, data=vectors).model.prior.logvar.exp().numpy()
    np.testing.assert_allclose(found, spectrum / spectrum.mean(), rtol=1e-4)
    assert found.mean() == pytest.approx(1.0)


@pytest.mark.parametrize(("alpha", "lam"), [(0.0, 0.001), (0.0, 0.999), (-3.0, 3.0), (0.5, 0.4)])
def test_an_mmd_of_negative_weight_is_refused(pixels: DataSet, tmp_path: Path, alpha: float, lam: float) -> None:
    """Fault 13: a peer's defaults, alpha 0 and lambda 0.001, push q(z) away from the prior."""
    with pytest.raises(Problem, match="alpha \\+ lam must be at least 1"):
        train("info-vae", pixels, tmp_path / "run", **{**FIT, "alpha": alpha, "lam": lam})
    assert not (tmp_path / "run").exists()


# -- a penalty of one's own --------------------------------------------------------------------------------------------


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two penalties as a user registers them, forgotten after the test."""
    monkeypatch.setattr(penalties, "_PENALTIES", dict(penalties._PENALTIES))

    @elboroom.penalty("far")
    def far(draw: Draw) -> Tensor:
        return draw.z[0].square().mean(0).sum()

    @elboroom.penalty("wide", of="example")
    def wide(draw: Draw) -> Tensor:
        return draw.q.variance


OWN: dict[str, Any] = {"r1": "wide", "lam1": 2.0, "r2": "far", "lam2": 3.0}


@pytest.mark.usefixtures("own")
def test_a_penalty_of_ones_own_trains_is_logged_and_resumes(bench: Bench, tmp_path: Path) -> None:
    whole, folder = bench.train("regularised-vae", tmp_path / "whole", **OWN), tmp_path / "run"
    assert whole.spec.options["r2"] == "far"
    for line in whole.log:
        assert line["wide"] > 0
        assert line["far"] > 0
        total = line["nll"] + line["kl"] + 2 * line["wide"] + 3 * line["far"]
        assert line["loss"] == pytest.approx(total, rel=1e-6)
    without = bench.train("regularised-vae", tmp_path / "without", **{**OWN, "lam2": 0.0})
    ends = [newest(run.folder).state["model.posterior.net.dense.0.weight"] for run in (whole, without)]
    assert not torch.equal(*ends), "its gradient reaches the encoder"
    with pytest.raises(Killed):
        bench.train("regularised-vae", folder, bar=act_at(WHOLE - 1, kill), **OWN)
    resume(folder, data=bench.data)
    same(newest(folder).state, newest(whole.folder).state)


def test_a_penalty_that_nobody_registered_is_refused(
    bench: Bench, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Problem, match=r"no penalty of the aggregate 'far'.*registered by importing the module"):
        bench.train("regularised-vae", tmp_path / "early", **OWN | {"r1": "kl"})
    assert not (tmp_path / "early").exists()
    before = penalties._PENALTIES
    request.getfixturevalue("own")
    with pytest.raises(Problem, match="no penalty of the example 'far'"):
        bench.train("regularised-vae", tmp_path / "mixed", **OWN | {"r1": "far"})
    with pytest.raises(Killed):
        bench.train("regularised-vae", tmp_path / "run", bar=act_at(WHOLE - 1, kill), **OWN)
    monkeypatch.setattr(penalties, "_PENALTIES", before)
    for again in (load, resume):
        with pytest.raises(Problem, match="no penalty of the example 'wide'"):
            again(tmp_path / "run", data=bench.data)
    assert newest(tmp_path / "run").step == HALF, "what was computed is kept"


# -- the run that comes of it ------------------------------------------------------------------------------------------


def test_an_autoencoder_is_sampled_from_the_gaussian_of_its_codes(bench: Bench) -> None:
    """It has no prior: codes of samples have the mean and the covariance of the codes of the training examples."""
    run, n = load(bench.whole("ae").folder, data=bench.data), 40_000
    codes = run.encode(bench.data.hold_out(bench.data.holdout).x(run.data.splits["train"]).numpy())
    run.decode = lambda z, u=None: z  # type: ignore[method-assign]
    z = run.sample(n)
    deviation = codes.std(0, ddof=1)
    np.testing.assert_array_less(np.abs(z.mean(0) - codes.mean(0)), 5 * deviation / math.sqrt(n))
    error = 5 * np.outer(deviation, deviation) * math.sqrt(2 / n)
    np.testing.assert_array_less(np.abs(np.cov(z.T) - np.cov(codes.T)), error)
    assert abs(z.mean(0)).max() > 10 / math.sqrt(n), "which are not those of N(0, I)"


@pytest.mark.parametrize("name", ["ae", "vae", "aae", "avb"])
def test_the_same_seed_gives_the_same_samples(bench: Bench, name: str) -> None:
    run = load(bench.whole(name).folder, data=bench.data)
    assert np.array_equal(run.sample(3), run.sample(3))


def test_a_model_with_a_prior_is_sampled_from_it(bench: Bench) -> None:
    run, n = load(bench.whole("wae-mmd").folder, data=bench.data), 40_000
    run.decode = lambda z, u=None: z  # type: ignore[method-assign]
    z = run.sample(n)
    assert abs(z.mean(0)).max() < 5 / math.sqrt(n)
    assert abs(np.cov(z.T) - np.eye(3)).max() < 5 * math.sqrt(2 / n)


@pytest.mark.parametrize("name", METHODS)
def test_the_same_question_has_the_same_answer(bench: Bench, name: str) -> None:
    run = bench.whole(name)
    batch = run.examples(4)
    assert np.array_equal(run.encode(batch), run.encode(batch))
    assert np.array_equal(run.reconstruct(batch), run.reconstruct(batch))


def test_a_run_is_loaded_whatever_its_first_tensor_is(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flow keeps masks of bool and orders of int64 beside its weights, and a file names no first one."""
    run, read = bench.whole("vae-iaf"), safetensors.torch.load
    monkeypatch.setattr(safetensors.torch, "load", lambda content: by_kind(read(content), floats_first=False))
    same(load(run.folder, data=bench.data).model.state_dict(), run.model.state_dict())


# -- faults of peers ---------------------------------------------------------------------------------------------------

FAULTS: dict[str, tuple[str, ...]] = {
    "1 MSS matrix": ("terms/test_aggregate.py::test_rows_sum_to_one_with_one_nth_on_the_diagonal",),
    "2 encoder leak": (
        "terms/test_adversarial.py::test_a_step_after_the_critics_backward_is_the_same_step",
        "test_methods.py::test_the_loss_of_a_critic_has_no_path_into_the_model",
        "test_methods.py::test_a_player_moves_its_own_groups_alone",
    ),
    "3 half batch": ("terms/test_adversarial.py::test_both_players_see_the_full_batch",),
    "4 permutation axis": ("terms/test_adversarial.py::test_columns_are_rearranged_each_on_its_own",),
    "5 DIP": (
        "terms/test_moments.py::test_the_covariance_is_that_of_numpy",
        "terms/test_moments.py::test_a_batch_that_is_there_twice_costs_the_same",
    ),
    "6 capacity": (
        "test_methods.py::test_capacity_counts_optimiser_steps",
        "weights/test_controllers.py::test_capacity_is_of_the_mean_not_the_mean_of_distances",
    ),
    "7 loss scale": (
        "families/test_pixel_families.py::test_twice_the_pixels_are_twice_the_nll",
        "terms/test_evidence_terms.py::test_twice_the_pixels_leave_kl_untouched",
    ),
    "8 step counting": ("test_methods.py::test_every_optimiser_makes_one_update_a_turn",),
    "10 evaluation averages over all batches": ("evaluate/test_likelihood.py::test_every_batch_counts_once",),
    "13 InfoVAE sign": ("test_methods.py::test_an_mmd_of_negative_weight_is_refused",),
    "14 IWAE report": ("terms/test_evidence_terms.py::test_the_logged_bound_is_the_log_of_the_mean_weight",),
    "15 PI controller": ("weights/test_controllers.py::test_pi_leaves_a_bound_on_the_next_step",),
    "16 kernel size": ("test_methods.py::test_models_have_the_published_number_of_parameters",),
    "17 memory survives": (
        "test_methods.py::test_it_resumes_bit_for_bit_after_a_kill",
        "test_methods.py::test_a_run_that_forgot_would_end_elsewhere",
        "test_methods.py::test_a_variant_moves_everything_and_goes_on_where_it_was",
    ),
}
# 9 to 12 are faults of metrics and are tested in evaluate/disentanglement: 9 in test_factor_vae.py and test_irs.py,
# 10 in test_known_answers.py, 11 in test_source.py, 12 in test_factor_vae.py.


@pytest.mark.parametrize("where", [where for tests in FAULTS.values() for where in tests])
def test_the_table_of_faults_names_tests_that_are_there(where: str) -> None:
    file, _, test = where.partition("::")
    tree = ast.parse((Path(__file__).parent / file).read_text())
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


# -- it documents itself -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_it_documents_itself(name: str) -> None:
    entry: Card = card(name)
    assert entry.name == name == name.lower()
    assert len(entry.summary) > 15
    assert entry.summary.endswith(".")
    assert entry.formula
    assert re.search(r"\b(19|20)\d\d\b", entry.paper), "a paper has a year"
    shown = f"{entry.formula} {entry.summary} {entry.notes} {entry.builder.__name__}"
    for option in entry.options:
        assert option.annotation is not inspect.Parameter.empty
        assert option.default is not inspect.Parameter.empty, f"--{option.name} has no default"
        assert option.annotation is not Any
    assert "TODO" not in shown


@pytest.mark.parametrize("kind", ["pixels", "vectors", "tokens"])
@pytest.mark.parametrize("name", METHODS)
def test_options_round_trip(name: str, kind: str) -> None:
    entry = card(name)
    options = entry.validate({}, kind)
    assert list(options) == [option.name for option in entry.options]
    assert not any(isinstance(value, ByData) for value in options.values())
    assert entry.validate(options, kind) == options
    assert json.loads(json.dumps(options, allow_nan=False)) == options
    assert entry.validate(json.loads(json.dumps(options)), kind) == options
    assert entry.validate({key: str(value) for key, value in options.items()}, kind) == options, "as typed in a shell"
    with pytest.raises(Problem, match="no option --no-such"):
        entry.validate({"no_such": 1}, kind)


@pytest.mark.parametrize("name", METHODS)
def test_its_spec_round_trips(bench: Bench, name: str) -> None:
    run = bench.whole(name)
    assert Spec.read(run.folder) == run.spec
    assert set(run.spec.options) == {option.name for option in card(name).options}
    assert str(run.method.players[0].objective)


@pytest.mark.parametrize("name", METHODS)
def test_a_wrong_option_is_one_sentence(pixels: DataSet, name: str) -> None:
    with pytest.raises(Problem, match=f"{name} has no option --latnet; did you mean 'latent'"):
        specify(name, pixels, "array", None, {"latnet": 3})
    for option in card(name).options:
        if option.annotation is str:  # a name, which is looked up when the method is built
            spec = specify(name, pixels, "array", None, {option.name: "nonsense"})
            with pytest.raises(Problem, match="'nonsense'"):
                session.build(spec, Own(pixels))
            continue
        with pytest.raises(Problem, match=f"--{option.name.replace('_', '-')}"):
            specify(name, pixels, "array", None, {option.name: "nonsense"})


def test_an_infinite_option_is_kept_or_refused_in_a_sentence(pixels: DataSet, tmp_path: Path) -> None:
    """ControlVAE's published range is [1, none]; JSON knows no infinity."""
    try:
        run = train("control-vae", pixels, tmp_path / "run", **{**FIT, "steps": 1, "high": "inf"})
    except Problem:
        assert not (tmp_path / "run").exists()
    else:
        assert run.spec.options["high"] == math.inf


@pytest.mark.parametrize("name", METHODS)
def test_an_option_that_is_no_number_is_refused(pixels: DataSet, name: str) -> None:
    for option in card(name).options:
        if "float" in str(option.annotation):
            with pytest.raises(Problem, match=f"--{option.name.replace('_', '-')}"):
                specify(name, pixels, "array", None, {**FIT, option.name: "nan"})


def test_an_empty_range_is_refused(pixels: DataSet) -> None:
    spec = specify("control-vae", pixels, "array", None, {**FIT, "low": 5.0, "high": 1.0})
    with pytest.raises(Problem):
        session.build(spec, Own(pixels))


def test_the_registry_is_not_empty() -> None:
    assert {"ae", "vae", "beta-vae"} <= set(METHODS)
    assert AT_WORK.keys() <= set(METHODS), "an entry of AT_WORK names no method"
