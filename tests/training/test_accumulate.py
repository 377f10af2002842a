"""A batch that is taken in parts gives the update of the whole: the same noise, the same loss, the same controllers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from contract import FIT, FROM_NOTHING, METHODS, TEXT_METHODS, Bench, newest
from torch import Tensor

from elboroom.build.parts import Choices, Parts
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.methods import card
from elboroom.runs.lifecycle import train
from elboroom.training.recorder import read_log

STEPS: dict[str, Any] = {"steps": 2, "log_every": 1, "checkpoint_every": 2, "optimiser": "sgd", "lr": 1e-3, "clip": 1.0}


COUPLED = {  # the methods whose loss or nets couple the examples of a batch
    *(
        "alpha-beta-vae",
        "beta-tcvae",
        "beta-vae-capacity",
        "bn-vae",
        "bn-vae-tau",
        "dip-vae-i",
        "dip-vae-ii",
        "factor-vae",
    ),
    *("info-vae", "mmd-vae", "regularised-vae", "wae-d", "wae-mmd", "wae-s", "cae"),
}


def parts_equal_the_whole(name: str, bench: Bench, out: Path, parts: int = 2, **more: Any) -> None:
    """After two steps of gradient descent."""
    if name in COUPLED:
        with pytest.raises(Problem, match="needs all examples of a batch together"):
            bench.train(name, out / "parts", accumulate=parts, **STEPS, **more)
        return
    in_parts = bench.train(name, out / "parts", accumulate=parts, **STEPS, **more).folder
    whole = bench.train(name, out / "whole", **STEPS, **more).folder
    wanted, found = newest(whole).state, newest(in_parts).state
    for key in wanted:
        a, b = wanted[key].double(), found[key].double()
        if key.startswith("others."):  # critics have Adam, which makes much of rounding
            assert (a - b).norm() <= 1e-4 * a.norm() + 1e-6, key
        elif not key.startswith("optimiser/"):
            assert torch.allclose(a, b, rtol=1e-6, atol=1e-6), key
    for a, b in zip(*(read_log(run / "log.jsonl") for run in (whole, in_parts)), strict=True):
        assert a == pytest.approx(b, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("name", FROM_NOTHING)
def test_parts_equal_the_whole(name: str, bench: Bench, tmp_path: Path) -> None:
    parts_equal_the_whole(name, bench, tmp_path, **{"cycles": 1} if name == "vae-cyclical" else {})


@pytest.mark.parametrize("name", [name for name in TEXT_METHODS if name not in METHODS] + ["vae", "lagging-vae"])
def test_parts_equal_the_whole_on_text(name: str, text_bench: Bench, tmp_path: Path) -> None:
    """With dropout, of sentences of several lengths, whose embeddings have sparse gradients."""
    parts_equal_the_whole(name, text_bench, tmp_path, 4, dropout=0.5, word_dropout=0.2)


@pytest.mark.parametrize(
    ("data", "method", "options"),
    [
        ("pixels", "vae", {"net": "mlp-300", "lr": 1e-4}),  # nothing is clipped: the least step that is no rounding
        ("sentences", "vae", {"embed": 6, "hidden": 7, "trunk": "b", "word_dropout": 0.2}),
        ("sentences", "vae", {"embed": 8, "net": "transformer"}),
        ("sentences", "dae", {"embed": 6, "hidden": 7, "trunk": "b", "drop": 0.3, "blank": 0.2}),
    ],
    ids=["pixels", "lstm", "transformer", "corrupted"],
)
def test_two_parts_of_32_are_a_batch_of_64(
    data: str, method: str, options: dict[str, Any], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The longest sentence of a part is not that of the batch: dropout of words and of features is the same all the same."""
    given = {**FIT, "steps": 1, "batch_size": 64, "latent": 4, "optimiser": "sgd", "lr": 1.0, **options}
    found = request.getfixturevalue(data)
    whole, parts = (newest(train(method, found, tmp_path / str(n), accumulate=n, **given).folder).state for n in (1, 2))
    start = newest(train(method, found, tmp_path / "start", **{**given, "lr": 1e-30}).folder).state
    for key in (key for key in whole if key.startswith("model.") and not torch.equal(whole[key], start[key])):
        update, apart = (whole[key] - start[key]).double().norm(), (whole[key] - parts[key]).double().norm()
        assert apart < 2e-3 * update, key


def test_the_parts_have_noise_of_their_own_where_it_cannot_be_that_of_the_whole() -> None:
    """Rejections of von Mises-Fisher depend on every concentration: the parts do not repeat each other's draws."""
    from elboroom.core import distributed
    from elboroom.families.sphere import VonMisesFisher

    q = VonMisesFisher(torch.nn.functional.normalize(torch.ones(4, 5), dim=-1), torch.full((4, 1), 20.0)[:, 0])
    drawn = []
    for part in range(2):
        torch.manual_seed(0)
        with distributed.part(part, 2):
            drawn.append(q.rsample((1,)))
    assert not torch.isclose(drawn[0], drawn[1]).any()
    assert distributed.share() == (0, 1)


@pytest.mark.parametrize("name", ["factor-vae", "beta-tcvae", "bn-vae", "beta-vae-capacity"])
def test_what_couples_the_examples_of_a_batch_is_refused(name: str, pixels: DataSet, tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"--accumulate 2: .* needs all examples of a batch together"):
        train(name, pixels, tmp_path / "run", accumulate=2, **FIT)
    assert not (tmp_path / "run").exists()


def test_batch_norm_that_stands_frozen_is_not_in_the_way(bench: Bench, tmp_path: Path) -> None:
    """A frozen base takes its running averages, of whatever batch."""
    options = {**FIT, **bench.options, "base": bench.whole("bn-vae").folder}
    train("probe", bench.data, tmp_path / "run", accumulate=2, **options)


def test_batch_norm_of_ones_own_is_refused(pixels: DataSet, tmp_path: Path) -> None:
    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(256, 6), torch.nn.BatchNorm1d(6))

        def forward(self, x: Tensor, u: Tensor | None) -> Tensor:
            found: Tensor = self.layers(x)
            return found

    with pytest.raises(Problem, match="BatchNorm1d needs all examples"):
        train("vae", pixels, tmp_path / "run", accumulate=2, encoder=Encoder(), **FIT)


def test_parts_are_of_one_size(pixels: DataSet, sentences: DataSet, tmp_path: Path) -> None:
    with pytest.raises(Problem, match="--batch-size 8 cannot be taken in 3 parts: make it a multiple"):
        train("vae", pixels, tmp_path / "run", accumulate=3, **FIT)
    with pytest.raises(Problem, match="cannot be taken in 2 parts on each of 8 devices"):
        train("vae", pixels, tmp_path / "run", accumulate=2, **FIT, devices=8)
    with pytest.raises(Problem, match="use --batches buckets"):
        train("vae", sentences, tmp_path / "run", accumulate=2, batches="constant", **FIT)


def test_a_part_is_what_the_nets_see(pixels: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is what saves memory."""
    seen = []
    forward = type(card("vae").build(Parts(pixels.about, Choices()), {}).model.posterior).forward
    name = type(card("vae").build(Parts(pixels.about, Choices()), {}).model.posterior)

    def look(self: Any, batch: Any) -> Any:
        seen.append(len(batch.x))
        return forward(self, batch)

    monkeypatch.setattr(name, "forward", look)
    train("vae", pixels, tmp_path / "run", accumulate=4, **{**FIT, "steps": 1})
    assert seen == [2] * 4
