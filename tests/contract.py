"""What the tests of the registry share: small runs of every method, and how they are held against one another."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from elboroom.build import examples
from elboroom.core.method import Method, adam
from elboroom.core.objective import Weight
from elboroom.core.stages import Stages
from elboroom.data import arrays
from elboroom.data.dataset import DataSet
from elboroom.data.sequences import CONTEXT
from elboroom.data.text import Reading, gather
from elboroom.methods import cards
from elboroom.runs.lifecycle import train
from elboroom.runs.run import Run
from elboroom.training import session
from elboroom.training.base import grounded, inherited, read_like
from elboroom.training.batches import Batches
from elboroom.training.checkpoint import Checkpoint, Checkpoints
from elboroom.training.loop import Loop
from elboroom.training.session import Own
from elboroom.training.spec import Spec, specify

METHODS = [name for name, card in cards().items() if "pixels" in card.on]
TEXT_METHODS = [name for name, card in cards().items() if "tokens" in card.on and not card.needs_context]
CONTEXT_METHODS = [name for name, card in cards().items() if card.needs_context]
FROM_NOTHING = [
    name for name in METHODS if not cards()[name].needs_base
]  # the others stand on a run that a Bench trains
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
# Options that put memory to work, or make a step short. A method whose memory its defaults leave asleep fails
# `test_memory_is_at_work` until it has an entry here.
AT_WORK: dict[str, dict[str, Any]] = {
    "control-vae": {"target": 0.05, "ki": 0.01, "ramp": 0.0},  # kl starts above it, so that beta leaves its lower bound
    "mdr-vae": {"rate": 200.0},
    "lm": {"latent": None},  # it has none
    "seq2seq": {"latent": None},
    "bst": {"latent": None, "pretraining": 0.25},  # so that it is in its second stage half-way
    "cae": {"gate": 100.0},  # so that its critics are listened to from the first step on
    "cvae-bow": {"act": True},
    "ae-pretrained-free-bits": {  # so that it is in its second stage half-way; what ends a first stage has a test of its own
        "pretraining": 0.25,
        "pretraining_patience": 0,
        "target": 0.01,
    },
    "free-bits": {"target": 0.01},  # kl starts above it, so that a prior given labels is taught
    "vamp-vae": {"pseudo_inputs": 20},  # 500 would make the steps of one method as long as those of ten
    "apo-vae-vamp": {"pseudo_inputs": 20},
    "style-vae": {"latent": None, "style_size": 2, "content_size": 3},  # its z is its blocks
    "style-ae": {"latent": None, "style_size": 2, "content_size": 3},
    "emb2emb": {"to": "1", "pretraining": 0.25},  # so that it is in its second stage half-way
    "lagging-vae": {  # so dear a rate that I(x; z) falls, from codes that begin far enough apart
        "at_most": 1,
        "look": 0.125,
        "start": 1000.0,
        "warmup": 1.0,
        "init": "kaiming",
        "likelihood": "auto",
    },
}


# Buffers that a state keeps and that never change: masks of flows, spectra of priors, statistics of the data.
CONSTANT = re.compile(
    r"model\.(posterior\.flow\..*\.(order|mask)|prior\.logvar)|.*\.pseudo\.(ids|lengths)|.*\.(centre|scale)"
)


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
        if found := re.fullmatch(r"((?:first|then)\.)?optimiser/(\w+)/.*/step", key):
            counts.setdefault((found[1] or "") + found[2], set()).add(float(value))
    return counts


def turns(method: Method | Stages, steps: int) -> dict[str, set[float]]:
    """How many updates each group should have made: one for every turn of every player that moves it."""
    if isinstance(method, Stages):
        parts = (("first.", turns(method.first, method.until)), ("then.", turns(method.then, steps - method.until)))
        return {name + group: count for name, found in parts for group, count in found.items()}
    counted = dict.fromkeys(method.groups, 0)
    for player in method.players:
        for name in player.moves:
            counted[name] += sum(len(list(player.turns(step, []))) for step in range(steps))
    return {name: {float(count)} for name, count in counted.items()}


@cache
def built(name: str) -> Method:
    """A small model of a method for pixels, to be asked what it has and never trained."""
    images = np.random.default_rng(0).integers(0, 256, (40, 8, 8)).astype(np.uint8)
    data = arrays.dataset(images, labels=np.arange(40) % 3)
    options = {**FIT, **AT_WORK.get(name, {}), "net": "mlp-300"}
    with torch.random.fork_rng():
        return session.build(specify(name, data, "array", None, options), Own(data))


def those(has: Callable[[Method], object]) -> list[str]:
    """The methods whose built model has something; a test of what no method has would be empty, and is told."""
    found = [name for name in FROM_NOTHING if has(built(name))]
    assert found, "no method has it"
    return found


def controllers(method: Method) -> list[Weight]:
    """The weights that look at the value of their term."""
    return [m for m in method.modules() if isinstance(m, Weight) and type(m).update is not Weight.update]


def laws(method: Method) -> Hashable:
    """Which families a model is made of."""
    return type(method.model.posterior), type(method.model.prior)


def game(method: Method) -> Hashable:
    """Who descends which terms, stage by stage."""
    stages = (method.first, method.then) if isinstance(method, Stages) else (method,)
    return tuple((tuple(t.name for t in p.objective.terms), p.moves) for stage in stages for p in stage.players)


def state(method: Method) -> Hashable:
    """What its state is made of: the families, the groups, the memory."""
    return laws(method), tuple(method.groups), tuple(memory(method))


def first_of_each(kind: Callable[[Method], Hashable], names: Iterable[str] = METHODS) -> list[str]:
    """The first method of each kind. One for text alone, or that needs a base, is not built here: of a kind of its own."""
    found: dict[Hashable, str] = {}
    for name in names:
        found.setdefault(kind(built(name)) if name in FROM_NOTHING else name, name)
    return list(found.values())


def one_of_each(kind: Callable[[Method], Hashable], names: Iterable[str] = METHODS) -> list[Any]:
    """All methods, as parameters of a test: the first of each kind in `make test`, those like it in `make test-slow`."""
    first = first_of_each(kind, names)
    return [pytest.param(name, marks=() if name in first else pytest.mark.slow) for name in names]


@cache
def talk() -> DataSet:
    """Replies with up to three turns before them, and an act."""
    rng = np.random.default_rng(0)
    said = [[" ".join(rng.choice(list("abcdef"), int(rng.integers(1, 5)))) for _ in range(4)] for _ in range(80)]
    read = [(t[0], ("ask" if i % 2 else "tell",), (tuple(t[1 : 1 + i % 4]),)) for i, t in enumerate(said)]
    return gather("talk", {"train": read}, {"act": None}, Reading(), 0.1, beside=[CONTEXT])


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

    def __init__(self, data: DataSet, folder: Path, options: dict[str, Any] | None = None) -> None:
        self.data, self.folder, self.options = data, folder, options or {}
        self.runs: dict[str, Run] = {}

    def train(self, name: str, out: Path, **more: Any) -> Run:
        given = {**FIT, **self.options, **AT_WORK.get(name, {}), **more}
        return train(name, self.data, out, base=self.base(name, given), **given)

    def base(self, name: str, given: dict[str, Any]) -> Path | None:
        """A run for a method that needs one to stand on, given the same labels; None for others."""
        if not cards()[name].needs_base:
            return None
        base = examples.base(cards()[name])
        folder = self.folder / f"base-{base}-{given.get('given', '')}"
        if not folder.exists():
            train(
                base,
                self.data,
                folder,
                **{**FIT, **self.options, **AT_WORK.get(base, {}), "given": given.get("given", "")},
            )
        return folder

    def whole(self, name: str) -> Run:
        if name not in self.runs:
            self.runs[name] = self.train(name, self.folder / name)
        return self.runs[name]

    def fresh(self, name: str, **more: Any) -> Method:
        """The method at step 0, ready to train."""
        given = {**FIT, **self.options, **AT_WORK.get(name, {}), **more}
        base = self.base(name, given)
        data, reads = self.data, cards()[name].base_reads
        if base is not None and reads == CONTEXT:  # in whose tokens contexts are
            data, given = read_like(data, base, reads), inherited(grounded(base)[1], given, Reading(), reads)
        spec = specify(name, data, "array", None, given, base=grounded(base)[0] if base else None)
        method = session.build(spec, Own(data))
        method.prepare(adam(FIT["lr"]))
        method.given_names = spec.model.given_names  # which its batches have to bring
        return method

    def loop(self, method: Method, seed: int = 0) -> Loop:
        held = self.data.hold_out(self.data.holdout)
        given = getattr(method, "given_names", ())
        return Loop(method, Batches(held, "train", FIT["batch_size"], seed, given, torch.device("cpu")), seed)


def by_kind(state: dict[str, Tensor], floats_first: bool) -> dict[str, Tensor]:
    """The same state with its numbers, or its masks and counts, in front."""
    return dict(sorted(state.items(), key=lambda item: item[1].is_floating_point() != floats_first))


def moved(before: Method, after: dict[str, Tensor]) -> Iterator[tuple[str, bool, bool]]:
    """(name, whether it may move, whether it did) for every parameter; what a state does not keep comes from a base.

    What a second stage keeps as the first has left it is where that is, and did not move by itself.
    """
    for name, parameter in before.named_parameters():
        learnt = after.get(name.replace("then.", "first.", 1))
        if not parameter.requires_grad and learnt is not None and torch.equal(after[name], learnt):
            continue
        yield name, parameter.requires_grad, name in after and not torch.equal(parameter, after[name])
