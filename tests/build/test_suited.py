"""What a run takes where nothing was said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from elboroom.build.suited import FLAT, suited
from elboroom.data.dataset import About
from elboroom.methods import cards


def about(kind: str = "pixels", shape: tuple[int, ...] = (1, 28, 28), levels: int = 256, n: int = 2000) -> About:
    return About("x", kind, shape, n, {}, levels)  # type: ignore[arg-type]


def test_large_black_and_white_images_learn_at_another_pace_than_dsprites_and_small_ones_have_full_nets() -> None:
    large = suited(about(levels=2, shape=(1, 64, 64)), {})
    assert (large["init"], large["lr"], large["decay"], "net" in large) == ("small", 1e-3, "cosine", False)
    assert suited(replace(about(levels=2, shape=(1, 64, 64)), name="dsprites"), {}) == {}, "as in the papers"
    small, grey = suited(about(levels=2), {}), suited(about(), {})
    assert small == {"net": "mlp-300-300", "init": "small"} | {
        n: grey[n] for n in ("batch_size", "steps", "lr", "decay", "lr_end")
    }
    assert suited(about(levels=2), {"net": "burgess", "lr": 1e-4}).keys() == {"init", "batch_size", "steps"}


def test_text_has_five_epochs_unless_it_is_said_when_to_end() -> None:
    def steps(n: int, **said: Any) -> Any:
        return suited(about("tokens", (20,), 100, n), said).get("steps")

    assert [steps(n) for n in (100, 30_000, 10**6)] == [3_000, round(5 * 30_000 / 32), 6_000]
    assert steps(42_000, batch_size=64) == round(5 * 42_000 / 64)
    for said in ({"steps": 7}, {"epochs": 2}, {"patience": 3}, {"decay": "plateau"}):
        assert steps(42_000, **said) is None


def test_an_autoencoder_of_text_drops_little() -> None:
    text, said = about("tokens", (20,), 100), {"steps": 1}
    assert suited(text, said, autoencoder=True) == suited(text, said) | {"dropout": 0.1}
    assert suited(text, said | {"dropout": 0.5}, autoencoder=True) == suited(text, said)
    assert "dropout" not in suited(text, said)
    assert "dropout" not in suited(about(), {}, autoencoder=True)
    assert [name for name, entry in cards().items() if entry.autoencoder] == [
        "aae", "ae", "cae", "daae", "dae", "laae", "multi-decoder", "style-ae", "style-embedding",
        "wae-d", "wae-gan", "wae-mmd", "wae-s",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["pixels", "vectors"])
def test_what_is_said_stays(kind: str) -> None:
    said = {
        "likelihood": "gaussian",
        "net": "mlp-300",
        "steps": 7,
        "batch_size": 5,
        "init": "torch",
        "standardise": False,
    }
    assert suited(about(kind, levels=0), said).keys() <= {"lr", "decay", "lr_end"}
    for name, value in (("lr", 0.1), ("decay", "none"), ("optimiser", "sgd")):
        assert not {"lr", "decay", "lr_end"} & suited(about(kind), {name: value}).keys()
    assert suited(about(kind), {"lr_end": 0.1})["decay"] == "cosine"
    assert "steps" not in suited(about(kind), {"epochs": 3})


def test_the_net_follows_the_size_of_the_image() -> None:
    def net(*shape: int) -> Any:
        return suited(about(shape=shape), {})["net"]

    assert net(1, 16, 16) == net(1, 28, 28) == "mlp-300-300+linear"
    assert net(3, 64, 64) == net(1, 64, 64) == "burgess+linear"
    assert 28 * 28 < FLAT < 64 * 64


def test_only_a_gaussian_is_standardised_and_a_sigma_is_in_the_units_of_the_data() -> None:
    assert suited(about(), {})["standardise"]
    assert not suited(about(), {"likelihood": "bernoulli"})["standardise"]
    fixed = suited(about(), {"sigma": 0.1})
    assert (fixed["likelihood"], fixed["standardise"]) == ("gaussian", False)


def test_a_squared_error_learns_no_sigma() -> None:
    assert suited(about(), {"reconstruction": "squared"})["likelihood"] == "gaussian"
    assert suited(about(), {"reconstruction": "nll"})["likelihood"] == "gaussian-optimal"


def test_a_batch_is_no_larger_than_the_data_and_steps_follow_it() -> None:
    assert suited(about(n=20), {})["batch_size"] == 20
    few, many = (suited(about(n=n), {})["steps"] for n in (100, 60_000))
    assert few < many


@pytest.mark.parametrize(("kind", "shape"), [("pixels", (1, 8, 8)), ("vectors", (20,)), ("tokens", (20,))])
def test_a_batch_of_nought_is_the_default(kind: str, shape: tuple[int, ...]) -> None:
    chosen, said = suited(about(kind, shape, 100, 500), {}), suited(about(kind, shape, 100, 500), {"batch_size": 0})
    assert said == {name: value for name, value in chosen.items() if name != "batch_size"}
