"""What is said before the first step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elboroom.build.choices import Choices
from elboroom.data import arrays, registry
from elboroom.data.dataset import DataSet
from elboroom.data.text import handed
from elboroom.evaluate.verdicts import against_pca
from elboroom.training.fit import Fit
from elboroom.training.opening import opening
from elboroom.training.session import Own, prepare
from elboroom.training.spec import Spec, specify, split

DIGITS = np.arange(2 * 16 * 8 * 8).reshape(-1, 8, 8) % 17  # whole numbers from 0 to 16


def spec(array: Any, levels: int | None = None, **options: Any) -> Spec:
    return specify("vae", arrays.dataset(array, levels=levels), "array", None, options, levels=levels)


def said(data: DataSet, method: str = "vae", **options: Any) -> list[str]:
    made = specify(method, data, "array", None, options | {"threads": 1}, levels=None)
    return opening(prepare(made, Own(data), split(data, made.fit)))


def test_the_range_of_whole_numbers_is_said() -> None:
    assert "values from 0 to 16 (if 16 is not white, say --levels)" in said(arrays.dataset(DIGITS))[0]
    assert "values from 0 to 255" in said(arrays.dataset(DIGITS, levels=256))[0]
    assert "values in [0, 1]" in said(arrays.dataset(DIGITS / 16.5))[0]
    assert "vectors of 64 numbers" in said(arrays.dataset(DIGITS.reshape(-1, 64)))[0]


@pytest.mark.parametrize(
    ("times", "steps", "passes"), [(4, 1, " 0.3 of a pass over"), (1, 1, " one pass over"), (1, 2, " 2 passes over")]
)
def test_passes_over_the_data_are_counted_in_words(times: int, steps: int, passes: str) -> None:
    assert passes in "\n".join(said(arrays.dataset(np.tile(DIGITS, (times, 1, 1))), steps=steps))


def test_examples_splits_labels_and_the_size_of_the_model_are_said() -> None:
    data, labels, model, *_ = said(arrays.dataset(DIGITS, labels=np.arange(32) % 7), latent=3)
    assert data == (
        "data: array: 32 images of 1 x 8 x 8, values from 0 to 16 (if 16 is not white, say --levels); 29 to train on, 3 to "
        "test on"
    )
    assert labels == "labels: label (7 values: 0, 1, 2, 3, 4, ...)"
    assert model.startswith("model: vae, net mlp-300-300+linear, likelihood gaussian-optimal, 3 latent dimensions, ")
    assert model.endswith(" parameters")


def test_text_says_its_words_and_how_many_of_the_test_split_are_unknown() -> None:
    some = [f"w{i % 7} w{i % 5} rare{i}" for i in range(40)]
    data, model, *_ = said(handed(some), embed=4, hidden=4)
    assert data.startswith("data: array: 40 sentences of up to 4 tokens, ")
    assert data.endswith("36 to train on, 4 to test on (33.3% of whose words are unknown)")
    assert model.startswith("model: vae, net lstm, 32 latent dimensions")


def test_dimensions_are_those_of_the_model() -> None:
    some = [f"w{i % 7} w{i % 5}" for i in range(40)]
    for method, dimensions in (("style-vae", "136 latent dimensions"), ("lm", "no latent dimensions")):
        _, _, model, *_ = said(handed(some, [i % 2 for i in range(40)]), method, embed=4, hidden=4)
        assert dimensions in model


def test_what_was_chosen_is_said_with_its_reason_and_what_was_asked_for_is_not() -> None:
    chosen = "\n".join(said(arrays.dataset(DIGITS), likelihood="bernoulli")[2:])
    assert "--net mlp-300-300+linear" in chosen
    assert "64 values are few enough for full layers" in chosen
    assert "--likelihood" not in chosen
    large = "\n".join(said(arrays.dataset(np.kron(DIGITS % 2, np.ones((8, 8), int))))[2:])
    assert "--init small" in large
    assert "--net" not in large, "burgess as it is"
    assert "--net mlp-300-300 " in "\n".join(said(arrays.dataset(DIGITS % 2)))


@pytest.fixture
def reviews(tmp_path: Path) -> DataSet:
    file = tmp_path / "reviews.tsv"
    file.write_text("".join(f"{('good', 'bad')[i % 2]}\tthe w{i % 7} was w{i % 5}\n" for i in range(40)))
    return registry.load(file)


def chosen(data: DataSet, method: str = "vae", **options: Any) -> dict[str, str]:
    """What is said to be chosen, by its reason."""
    _, _, _, *lines = said(data, method, embed=4, hidden=4, **options)
    assert not lines or lines[0] == "chosen for this data, since you did not say (docs/defaults.md):"
    return dict(line.strip().split("  ", 1) for line in lines[1:])


def test_text_says_what_was_chosen_and_why(reviews: DataSet) -> None:
    assert {flags: reason.strip() for flags, reason in chosen(reviews).items()} == {
        "--trunk c": "nets begin so that codes lie in 7 directions, where those of a and b lay in one",
        "--dropout 0.5": "a decoder that guesses words, as a language model does, needs it",
        "--batch-size 32": "on PTB 3.5 nats ahead of 64, early and at equal data",
        "--steps 3000": "2667 passes over the data",
        "--lr 0.003 --decay cosine --lr-end 0.05": "the learning rate falls over the run; on PTB 3 nats better than a "
        "constant 1e-3",
    }
    assert "an autoencoder reads" in chosen(reviews, "ae")["--dropout 0.1"]


def test_what_was_said_of_text_is_not_told_as_chosen(reviews: DataSet) -> None:
    told = chosen(reviews, lr=0.003, steps=5, batch_size=32, trunk="c", dropout=0.5)
    assert told == {"--decay cosine --lr-end 0.05": "the learning rate falls over the run"}
    assert chosen(reviews, optimiser="sgd", lr=1.0).keys() == {"--dropout 0.5", "--batch-size 32", "--steps 3000"}
    assert chosen(reviews, lr=0.003, steps=5, batch_size=32, trunk="c", dropout=0.5, decay="none") == {}


@pytest.mark.parametrize("net", ["lstm", "gru", "dilated", "transformer"])
def test_the_dropout_that_is_told_is_that_of_the_decoder(reviews: DataSet, net: str) -> None:
    made = specify("vae", reviews, "array", None, {"threads": 1, "net": net, "embed": 4, "hidden": 4})
    ready = prepare(made, Own(reviews), split(reviews, made.fit))
    (told,) = (line for line in opening(ready) if "--dropout" in line)
    found = {float(getattr(module, "dropout", 0.0)) for module in ready.method.modules()}
    assert found - {0.0} == {float(told.split()[1])}


@pytest.mark.parametrize(
    "options",
    [
        {}, {"lr": 0.01}, {"decay": "linear"}, {"lr_end": 0.3}, {"lr_end": 0.0}, {"decay": "plateau"}, {"batch_size": 0},
        {"optimiser": "sgd", "lr": 1.0}, {"optimiser": "adamw"}, {"patience": 2}, {"epochs": 3.0}, {"trunk": "a"},
    ],
)  # fmt: skip
def test_choosing_for_text_changes_no_default(reviews: DataSet, options: dict[str, Any]) -> None:
    made = specify("vae", reviews, "array", None, options)
    usual = Fit(**{k: v for k, v in options.items() if k in Fit.model_fields}).for_kind("tokens")
    for name in ("lr", "decay", "lr_end", "batch_size"):
        assert getattr(made.fit, name) == getattr(usual, name)
    assert made.model.trunk == Choices(trunk=options.get("trunk")).for_kind("tokens", usual.optimiser).trunk


def test_a_batch_larger_than_the_data_shrinks_with_a_word() -> None:
    assert spec(DIGITS).fit.batch_size == 29
    with pytest.warns(UserWarning, match="--batch-size 64 is more than the 29 training examples; it is 29"):
        assert spec(DIGITS, batch_size=64).fit.batch_size == 29


def test_the_command_makes_the_same_run_again() -> None:
    made = spec(DIGITS, decay="none", lr=1e-3, net="auto")
    assert "--decay none" in made.command
    assert "--net auto" in made.command
    assert "--no-standardise" in spec(DIGITS, standardise=False).command


def test_a_share_that_rounds_to_nought_has_no_sign() -> None:
    """Of what is said at the end."""
    assert "keep 0% of the variance; PCA of the same size (3) keeps 0%." in against_pca(-0.004, -0.001, 3)
    assert "keep -40% of the variance" in against_pca(-0.4, 0.2, 3)
