"""The means of optimisation: optimisers, learning rates that move, averaged weights, and all of it resumed."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from contract import FIT, WHOLE, Bench, Killed, act_at, kill, newest, same
from processes import equal
from safetensors import torch as tensors

from elboroom.build.parts import Choices, Parts
from elboroom.core.draw import Draw
from elboroom.core.method import Method
from elboroom.core.problem import Problem
from elboroom.core.stages import Stages
from elboroom.data.arrays import dataset
from elboroom.data.dataset import DataSet
from elboroom.methods import card
from elboroom.runs.lifecycle import load, resume, train
from elboroom.training import watches
from elboroom.training.batches import Batches, reseed
from elboroom.training.checkpoint import Checkpoints
from elboroom.training.fit import Fit
from elboroom.training.loop import Loop
from elboroom.training.watches import Halving, held_out, negative_elbo

CPU = torch.device("cpu")
PLATEAU = {"decay": "plateau", "look_every": 1, "decay_patience": 1, "decay_times": 50}

# -- optimisers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fit", "theirs"),
    [
        (Fit(optimiser="sgd", lr=0.01, momentum=0.9, weight_decay=0.1), torch.optim.SGD),
        (Fit(optimiser="adamw", lr=0.01, weight_decay=0.1), torch.optim.AdamW),
        (Fit(optimiser="adamw", lr=0.01), torch.optim.AdamW),
    ],
)
def test_a_step_is_that_of_the_optimiser(fit: Fit, theirs: Any) -> None:
    data = dataset(np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32))
    ours = card("vae").build(Parts(data.about, Choices(latent=2)), {})
    plain = copy.deepcopy(ours.model)
    ours.prepare(fit.make_optimiser())
    given = {name: value for name in ("momentum", "weight_decay") if (value := getattr(fit, name))}
    optimiser = theirs(plain.parameters(), lr=0.01, **given)
    batches = Batches(data, "train", 8, 0, (), CPU)
    loop = Loop(ours, batches, seed=0)
    for step in range(3):
        loop.step(step)
        reseed(0, step, 0, 0)
        draw = Draw(plain, batches(step))
        optimiser.zero_grad()
        (draw.nll.mean() + draw.rate.sum(1).mean()).backward()
        optimiser.step()
    for (name, a), b in zip(ours.model.named_parameters(), plain.parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-6), name


def test_a_critic_keeps_its_optimiser_and_its_rate(pixels: DataSet) -> None:
    method = card("factor-vae").build(Parts(pixels.about, Choices(latent=2)), {"critic_lr": 0.125})
    method.prepare(Fit(optimiser="sgd", lr=1.0).make_optimiser())
    method.set_rate(0.25)
    rates = {name: optimiser.param_groups[0]["lr"] for name, optimiser in method.optimisers.items()}
    assert rates == {"vae": 0.25, "critic": 0.125}
    assert isinstance(method.optimisers["critic"], torch.optim.Adam)


# -- the learning rate -------------------------------------------------------------------------------------------------


def test_rates_rise_and_fall() -> None:
    linear = Fit(lr=2.0, steps=10, warmup_steps=4, decay="linear")
    assert [linear.rate(step) for step in range(12)] == pytest.approx(
        [0.5, 1, 1.5, 2, 2, 5 / 3, 4 / 3, 1, 2 / 3, 1 / 3, 0, 0]
    )
    cosine = Fit(lr=2.0, steps=8, decay="cosine", lr_end=0.25)
    assert [cosine.rate(step) for step in (0, 2, 4, 8, 99)] == pytest.approx(
        [2.0, 0.5 + 1.5 * (1 + math.sqrt(0.5)) / 2, 1.25, 0.5, 0.5]
    )
    assert Fit(lr=2.0, steps=8, warmup_steps=2).rate(5) == 2.0


def test_either_of_two_stages_has_a_curve_of_its_own(pixels: DataSet, tmp_path: Path) -> None:
    """Its optimiser begins anew, and so does its rate, where the first stage was ended early too."""
    few = {**FIT, "steps": 8, "lr": 1.0, "decay": "linear", "log_every": 1, "optimiser": "sgd", "clip": 1e-6}
    run = train("ae-pretrained-free-bits", pixels, tmp_path / "run", pretraining=0.5, pretraining_patience=0, **few)
    assert [line["lr"] for line in run.log] == pytest.approx([1, 0.75, 0.5, 0.25] * 2)
    stages = card("ae-pretrained-free-bits").build(Parts(pixels.about, Choices(latent=2)), {})
    assert isinstance(stages, Stages)
    assert not stages.ended([True], 3)
    assert stages.stage_bounds(2, 8) == (0, 3)
    assert stages.stage_bounds(3, 8) == (3, 8)


def test_the_rate_is_what_steps_take(pixels: DataSet, tmp_path: Path) -> None:
    """With gradient descent, a step at a tenth of the rate is a tenth of the step."""
    few = {**FIT, "optimiser": "sgd", "lr": 1e-3, "steps": 11, "log_every": 1, "checkpoint_every": 1}
    start = train("vae", pixels, tmp_path / "start", **{**few, "lr": 1e-12, "steps": 1}).model.state_dict()
    moves = []
    for name, warm in (("warm", {"warmup_steps": 10}), ("cold", {})):
        with pytest.raises(Killed):
            train("vae", pixels, tmp_path / name, **few, **warm, bar=act_at(2, kill))
        after = load(tmp_path / name, data=pixels).model.state_dict()
        moves.append(torch.cat([(after[k] - start[k]).flatten() for k in start]))
    torch.testing.assert_close(moves[0] * 10, moves[1], rtol=1e-2, atol=1e-6)


def test_the_log_has_the_rate_where_it_moves_alone(bench: Bench, tmp_path: Path) -> None:
    assert not any("lr" in line for line in bench.whole("vae").log)
    run = bench.train("vae", tmp_path / "run", decay="linear", log_every=1)
    assert [line["lr"] for line in run.log] == pytest.approx([1e-3 * (1 - step / WHOLE) for step in range(WHOLE)])


def test_a_run_whose_rate_has_come_to_nothing_is_not_prolonged(bench: Bench, tmp_path: Path) -> None:
    run = bench.train("vae", tmp_path / "none", decay="cosine")
    with pytest.raises(Problem, match="the learning rate of this run is 0 from step 8 on"):
        resume(run.folder, 4, data=bench.data)
    assert json.loads((run.folder / "spec.json").read_text())["until"] == WHOLE
    some = bench.train("vae", tmp_path / "some", decay="cosine", lr_end=0.1, log_every=1)
    assert [line["lr"] for line in resume(some.folder, 2, data=bench.data).log][WHOLE:] == pytest.approx([1e-4] * 2)


# -- plateau -----------------------------------------------------------------------------------------------------------


def looked(
    losses: list[float], monkeypatch: pytest.MonkeyPatch, average: float = 0.0, **options: int
) -> Iterator[tuple[Method, Halving, bool]]:
    """A method and its Halving after each look, which sees these losses; the weights at look n are n."""
    data = dataset(np.zeros((40, 6), np.float32))
    method = card("vae").build(Parts(data.about, Choices(latent=2)), {})
    halving = Halving(method.model, **{"patience": 2, "times": 5, "start": 0, "every": 10, **options})
    method.watch(halving)
    method.prepare(Fit(optimiser="sgd", lr=1.0, momentum=0.9).make_optimiser(), average=average)
    halving.attach(lambda: [], 1)
    for number, loss in enumerate(losses, 1):
        with torch.no_grad():
            for parameter in method.parameters():
                parameter.fill_(number)
                method.optimisers["model"].state[parameter] = {"momentum_buffer": torch.zeros_like(parameter)}
        if method.average is not None:
            method.average.update(method.model)
        monkeypatch.setattr(watches, "validated", lambda *_, loss=loss: torch.tensor(loss, dtype=torch.float64))
        yield method, halving, halving.look(method, number * 10)


def weight(method: Method) -> float:
    return next(method.model.parameters()).flatten()[0].item()


def test_a_plateau_halves_the_rate_and_restores_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = [
        (halving.share, weight(method), len(method.optimisers["model"].state) > 0, halving.improved, ended)
        for method, halving, ended in looked([5, 4, 4.5, 4.2, 4.1, 4.3, 3, 9, 9], monkeypatch, times=2)
    ]
    assert seen == [
        (1.0, 1, True, True, False),
        (1.0, 2, True, True, False),
        (1.0, 3, True, False, False),
        (0.5, 2, False, False, False),  # two looks above 4: back to the weights of look 2
        (0.5, 5, True, False, False),  # as good as the look before, which is what counts from then on
        (0.5, 6, True, False, False),
        (0.5, 7, True, True, False),
        (0.5, 8, True, False, False),
        (0.25, 7, False, False, True),  # the second halving ends the run
    ]


def test_a_plateau_does_not_halve_before_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = [halving.share for _, halving, _ in looked([1, 2, 2, 2, 2, 2], monkeypatch, start=5)]
    assert shares == [1, 1, 1, 1, 0.5, 0.5]


def test_a_run_ends_after_its_halvings_with_the_best_weights(pixels: DataSet, tmp_path: Path) -> None:
    """A rate so large that looks get worse."""
    options = {**FIT, "steps": 40, "net": "mlp-300", "optimiser": "sgd", "lr": 0.5, "clip": 1.0, "log_every": 1}
    run = train("vae", pixels, tmp_path / "run", **{**options, **PLATEAU, "decay_times": 2})
    seen = [line["loss_valid"] for line in run.log]
    rates = [line["lr"] for line in run.log]
    assert len(rates) < 40
    assert rates[0] == 0.5
    assert rates[-1] == 0.25, "the second halving is the end"
    best = Checkpoints(run.folder / "checkpoints").best()
    assert best is not None
    assert best.step == int(np.argmin(seen)) + 1
    state = newest(run.folder).state
    for name, tensor in best.state.items():
        if name.startswith("model."):
            assert torch.equal(state[name], tensor)
    assert negative_elbo(run.model, held_out(run.data, (), CPU)).item() == pytest.approx(min(seen), rel=1e-6)


WATCHED: dict[str, dict[str, Any]] = {
    "patience": {"patience": 2, "look_every": 1, "decay": "none"},
    "plateau": {**PLATEAU, "decay_times": 2},
}


@pytest.fixture(scope="module", params=WATCHED)
def ended(request: pytest.FixtureRequest, pixels: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose rate is so large that looks get worse: a watch ended it before its 40 steps."""
    torch.set_num_threads(1)
    options = {**FIT, "steps": 40, "net": "mlp-300", "optimiser": "sgd", "lr": 0.5, "clip": 1.0, "checkpoint_every": 1}
    folder = tmp_path_factory.mktemp("ended") / "run"
    return train("vae", pixels, folder, **{**options, **WATCHED[request.param]}).folder


def test_a_run_that_a_watch_has_ended_is_complete_and_can_be_prolonged(
    ended: Path, pixels: DataSet, tmp_path: Path
) -> None:
    end = newest(ended).step
    assert end < 40
    for more in (None, 3):
        folder = tmp_path / str(more)
        shutil.copytree(ended, folder)
        if more is None:
            with pytest.raises(Problem, match=f"is complete at step {end}; to train longer, use --steps MORE"):
                resume(folder, data=pixels)
            same(newest(folder).state, newest(ended).state)
        else:
            resume(folder, more, data=pixels)
            assert end < newest(folder).step <= end + more


def test_a_crash_between_the_end_and_its_checkpoint_loses_neither(ended: Path, pixels: DataSet, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(ended, folder)
    for file in (folder / "checkpoints").glob(f"step-{newest(ended).step:09d}.*"):
        file.unlink()
    resume(folder, data=pixels)
    same(newest(folder).state, newest(ended).state)
    assert (folder / "log.jsonl").read_text() == (ended / "log.jsonl").read_text()
    assert (folder / "spec.json").read_text() == (ended / "spec.json").read_text()


def test_a_run_that_is_prolonged_waits_as_long_again(monkeypatch: pytest.MonkeyPatch) -> None:
    plateau, seen = watches.Plateau(2, 1), []
    plateau.attach(lambda: [], 1)
    method = card("vae").build(Parts(dataset(np.zeros((40, 6), np.float32)).about, Choices(latent=2)), {})
    for loss in (1, 2, 2, 2, 2):
        monkeypatch.setattr(watches, "validated", lambda *_, loss=loss: torch.tensor(loss, dtype=torch.float64))
        seen.append(plateau.look(method, 1))
    assert seen == [False, False, True, False, True]
    ends = [over for _, _, over in looked([1, 2, 2, 1, 2, 2], monkeypatch, times=1)]
    assert ends == [False, False, True, False, False, True]


# -- the average -------------------------------------------------------------------------------------------------------


def test_the_average_is_of_all_steps(bench: Bench, tmp_path: Path) -> None:
    """d = min(decay, n / (n + 9)), by hand; what is loaded is the average."""
    decay, states = 0.3, []
    step = Loop.step

    def kept(loop: Loop, number: int) -> Any:
        logged = step(loop, number)
        states.append({name: tensor.clone() for name, tensor in loop.method.model.state_dict().items()})
        return logged

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "step", kept)
        run = bench.train("vae", tmp_path / "run", average=decay)
    wanted = states[0]
    for n, state in enumerate(states[1:], 1):
        d = min(decay, n / (n + 9))
        wanted = {name: d * wanted[name] + (1 - d) * state[name] for name in wanted}
    for name, tensor in run.model.state_dict().items():
        torch.testing.assert_close(tensor, wanted[name])
        assert torch.equal(newest(run.folder).state[f"model.{name}"], states[-1][name])
    same(states[-1], bench.whole("vae").model.state_dict())  # training goes on as it would
    assert run.spec.fit.average == decay


def test_looks_and_buffers_of_an_average(bench: Bench, tmp_path: Path) -> None:
    """A look sees what is loaded; running means of batch norm are copied."""
    run = bench.train("bn-vae", tmp_path / "run", average=0.9, patience=9, look_every=WHOLE, log_every=1)
    again = negative_elbo(run.model, held_out(run.data, (), CPU)).item()
    assert run.log[-1]["loss_valid"] == pytest.approx(again, rel=1e-6)
    state = newest(run.folder).state
    for name in ("posterior.norm.running_var", "posterior.norm.num_batches_tracked"):
        assert torch.equal(run.model.state_dict()[name], state[f"model.{name}"])
    assert any(not torch.equal(tensor, state[f"model.{name}"]) for name, tensor in run.model.state_dict().items())


def test_a_halving_goes_back_to_averaged_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that the look saw; and the average goes on from there."""
    *_, (method, _, _) = looked([3, 1, 2, 2], monkeypatch, average=0.5)
    assert weight(method) == pytest.approx(0.1 * 1 + 0.9 * 2)
    with method.averaged():
        assert weight(method) == pytest.approx(1.9)
    assert weight(method) == pytest.approx(1.9)


# -- it resumes --------------------------------------------------------------------------------------------------------

OF_BYTES = {"likelihood": "bernoulli", "net": "burgess", "init": "kaiming"}  # bounded, whatever a large step does
FAST = {"optimiser": "sgd", "lr": 3.0, "momentum": 0.5, "clip": 1.0, **OF_BYTES}  # so that looks get worse
MEANS: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("vae", {"optimiser": "sgd", **OF_BYTES}),
    "momentum": ("vae", {"optimiser": "sgd", "momentum": 0.9, "weight_decay": 0.1, **OF_BYTES}),
    "adamw": ("factor-vae", {"optimiser": "adamw", "weight_decay": 0.1}),
    "cosine": ("vae", {"decay": "cosine", "warmup_steps": 3}),
    "plateau": ("vae", {**PLATEAU, **FAST}),
    "average": ("bn-vae", {"average": 0.9}),
    "accumulate": ("vae", {"accumulate": 4, "optimiser": "adamw"}),
    "stages": (
        "ae-pretrained-free-bits",
        {**PLATEAU, **FAST, "lr": 30.0, "average": 0.5},
    ),
}


@pytest.mark.parametrize("name", MEANS)
def test_it_resumes_bit_for_bit_after_a_kill(name: str, bench: Bench, tmp_path: Path) -> None:
    method, options = MEANS[name]
    if bench.data.about.kind == "tokens":
        options = {key: value for key, value in options.items() if key not in OF_BYTES}
    whole, folder = bench.train(method, tmp_path / "whole", **options), tmp_path / "run"
    with pytest.raises(Killed):
        bench.train(method, folder, bar=act_at(WHOLE - 1, kill), **options)
    again = resume(folder, data=bench.data)
    end = newest(whole.folder).state
    same(newest(folder).state, end)
    same(again.model.state_dict(), whole.model.state_dict())
    assert (folder / "log.jsonl").read_text() == (whole.folder / "log.jsonl").read_text()
    if options.get("decay") == "plateau":
        half = Checkpoints(whole.folder / "checkpoints").read("step-000000004").state
        (halvings,) = (key for key in end if key.endswith("halvings"))
        assert 0 < half[halvings] <= end[halvings], "the memory was at work before the kill"


@pytest.mark.parametrize("name", ["momentum", "accumulate"])
def test_text_resumes_bit_for_bit_after_a_kill(name: str, text_bench: Bench, tmp_path: Path) -> None:
    test_it_resumes_bit_for_bit_after_a_kill(name, text_bench, tmp_path)


TOGETHER: dict[str, dict[str, Any]] = {
    "sgd": {"optimiser": "sgd", "decay": "plateau", "look_every": 2, "decay_patience": 1, "lr": 0.05},
    "adamw": {"optimiser": "adamw", "weight_decay": 0.1, "decay": "cosine", "lr": 1e-3},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TOGETHER)
@pytest.mark.parametrize("data", ["pixels", "sentences"])
def test_two_processes_equal_one(data: str, name: str, tmp_path: Path) -> None:
    """All means at once, in two parts on each of two processes."""
    np.save(tmp_path / "x.npy", (np.random.default_rng(0).random((300, 16, 16)) > 0.7).astype(np.uint8) * 255)
    means = {**TOGETHER[name], "warmup_steps": 2, "clip": 1.0, "accumulate": 2, "average": 0.9}
    means |= {"batch_size": 16, "steps": 5, "log_every": 1}
    if data == "sentences":
        means |= {"embed": 8, "hidden": 8, "dropout": 0.0}
    source = tmp_path / "x.npy" if data == "pixels" else data
    equal("vae", source, tmp_path, {**means, "latent": 4, "threads": 1, "device": "cpu"})


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("shape", "momentum_buffer' has shape"),
        ("type", "has type torch.float64"),
        ("value", "NaN or infinite"),
        ("of adam", "unknown tensor 'optimiser/model/0/exp_avg'"),
        ("average", "average.weights.* NaN or infinite"),
        ("weights", "weights.* has shape"),
    ],
)
def test_a_forged_memory_is_refused(wrong: str, said: str, bench: Bench, tmp_path: Path) -> None:
    run = bench.train("vae", tmp_path / "run", **{**MEANS["momentum"][1], **PLATEAU, "average": 0.9, "patience": 0})
    path = max((run.folder / "checkpoints").glob("step-*.safetensors"))
    state = tensors.load(path.read_bytes())
    moment, average, kept = (
        next(name for name in sorted(state) if part in name)
        for part in ("momentum_buffer", "average.weights", "memory.0.weights")
    )
    state |= {
        "shape": {moment: torch.zeros(2)},
        "type": {moment: state[moment].double()},
        "value": {moment: torch.full_like(state[moment], torch.nan)},
        "of adam": {"optimiser/model/0/exp_avg": state[moment].clone()},
        "average": {average: torch.full_like(state[average], torch.nan)},
        "weights": {kept: torch.zeros(2)},
    }[wrong]
    content = tensors.save(state)
    path.write_bytes(content)
    vouch = json.loads(path.with_suffix(".json").read_text())
    vouch |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    path.with_suffix(".json").write_text(json.dumps(vouch))
    with pytest.raises(Problem, match=said):
        resume(run.folder, 2, data=bench.data)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"momentum": 0.9}, "--momentum is for --optimiser sgd; remove it"),
        ({"optimiser": "adamw", "momentum": 0.9}, "--momentum is for --optimiser sgd"),
        ({"weight_decay": 0.1}, "--weight-decay is for --optimiser adamw or sgd"),
        ({"optimiser": "sgd"}, "set --lr"),
        ({"optimiser": "adamw", "lr_end": 0.1}, "--lr-end is for --decay cosine or linear"),
        ({"decay": "plateau", "lr_end": 0.1}, "--lr-end is for --decay cosine or linear"),
        ({"decay_patience": 2}, "--decay-patience is for --decay plateau"),
        ({"decay": "cosine", "decay_times": 5}, "--decay-times is for --decay plateau"),
        ({"decay_from": 3}, "--decay-from is for --decay plateau"),
        ({"decay": "plateau", "patience": 3}, "ends the run by itself"),
        ({"decay": "cosine", "look_every": 3}, "--look-every has no effect"),
        ({"warmup_steps": 8}, "--warmup-steps 8 is not less than the 8 steps of the run"),
        ({"average": 1.0}, "--average 1.0"),
    ],
)
def test_what_has_no_effect_is_refused(options: dict[str, Any], said: str, pixels: DataSet, tmp_path: Path) -> None:
    given = {name: value for name, value in FIT.items() if name != "lr"}
    with pytest.raises(Problem, match=said):
        train("vae", pixels, tmp_path / "run", **given, **options)
    assert not (tmp_path / "run").exists()
