"""run.transfer: which style, how much of it, and what is refused in a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.data.text import gather
from elboroom.families.decoding import Beam, Greedy
from elboroom.runs.lifecycle import train
from elboroom.runs.run import Run

SMALL: dict[str, Any] = {
    "steps": 12,
    "batch_size": 8,
    "embed": 8,
    "hidden": 8,
    "threads": 1,
    "device": "cpu",
    "lr": 1e-2,
}
NOUNS = ("soup", "cake", "room", "staff", "view", "door")
TEXT = ["the soup was awful", "the door was great"]


@pytest.fixture(scope="module")
def reviews() -> DataSet:
    said = [
        (f"the {noun} was {word}", (label,)) for noun in NOUNS for word, label in (("awful", "bad"), ("great", "good"))
    ]
    return gather("reviews", {"train": said * 4, "test": said}, {"mood": None})


@pytest.fixture(scope="module")
def run(reviews: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train("style-vae", reviews, tmp_path_factory.mktemp("style") / "run", style_size=2, content_size=3, **SMALL)


@pytest.fixture(scope="module")
def told(reviews: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train("style-embedding", reviews, tmp_path_factory.mktemp("told") / "run", latent=3, **SMALL)


@pytest.fixture(scope="module")
def plain(reviews: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train("vae", reviews, tmp_path_factory.mktemp("plain") / "run", latent=3, **SMALL)


def codes(run: Run, monkeypatch: pytest.MonkeyPatch, *args: Any, **options: Any) -> Any:
    """What is decoded: codes, and the labels given beside them."""
    seen: list[Any] = []

    def decoded(z: Any, u: Any, decoding: Any, context: Any = None) -> list[str]:
        seen.append((z.numpy().copy(), u, decoding))
        return [""] * len(z)

    monkeypatch.setattr(run, "_decoded", decoded)
    run.transfer(*args, **options)
    return seen[0]


def test_content_is_kept_and_style_is_the_mean_of_the_class(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    own, means = run.encode(TEXT), run.model.posterior.styles["mood"].means.numpy()
    z, _, how = codes(run, monkeypatch, TEXT, "good")
    np.testing.assert_allclose(z[:, 2:], own[:, 2:])
    np.testing.assert_allclose(z[:, :2], np.stack([means[1]] * 2), rtol=1e-5)
    assert how == Greedy(unknown=False)
    half, *_ = codes(run, monkeypatch, TEXT, {"mood": "good"}, strength=0.5)
    np.testing.assert_allclose(half[:, :2], (own[:, :2] + means[1]) / 2, rtol=1e-4, atol=1e-5)
    none, *_ = codes(run, monkeypatch, TEXT, "mood=bad", strength=0.0)
    np.testing.assert_allclose(none, own)


def test_the_style_of_another_sentence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = run.encode(TEXT), run.encode(["the view was great"])
    z, *_ = codes(run, monkeypatch, TEXT, like="the view was great")
    np.testing.assert_allclose(z, np.hstack([np.vstack([other[:, :2]] * 2), own[:, 2:]]), rtol=1e-5, atol=1e-6)


def test_one_sentence_to_be_like_is_read_with_the_labels_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [
        (f"the {noun} {verb} {word}", (label, tense))
        for noun in NOUNS
        for verb, tense in (("is", "now"), ("was", "then"))
        for word, label in (("awful", "bad"), ("great", "good"))
    ]
    data = gather("reviews", {"train": said * 2, "test": said}, {"mood": None, "tense": None})
    told = train("style-vae", data, tmp_path, style_size=2, content_size=3, label="mood", given="tense", **SMALL)
    texts, u = [*TEXT, "the room is great"], np.array([[0, 1], [0, 1], [1, 0]], np.float32)
    z, *_ = codes(told, monkeypatch, texts, like="the view was great", u=u)
    other = told.encode(["the view was great"] * 3, u)
    np.testing.assert_allclose(z[:, :2], other[:, :2], rtol=1e-5, atol=1e-6)
    again, *_ = codes(told, monkeypatch, texts, like=["the view was great"] * 3, u=u)
    np.testing.assert_allclose(z, again)


def test_without_a_word_on_it_each_of_two_styles_becomes_the_other(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    means = run.model.posterior.styles["mood"].means.numpy()
    own = run.encode(TEXT)
    far = [int(np.argmax(((z[:2] - means) ** 2).sum(1))) for z in own]
    z, *_ = codes(run, monkeypatch, TEXT)
    np.testing.assert_allclose(z[:, :2], means[far], rtol=1e-5)


def test_means_are_those_of_the_training_codes(reviews: DataSet, run: Run) -> None:
    """The running mean is near that of the codes at the end: the encoder of a short run has moved a little since."""
    memory = run.model.posterior.styles["mood"]
    assert memory.count.min() > 0
    assert torch.isfinite(memory.means).all()
    assert memory.means.shape == (2, 2)


def test_a_decoder_that_is_given_the_label_is_given_the_other(told: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    z, u, _ = codes(told, monkeypatch, TEXT, "good")
    np.testing.assert_allclose(z, told.encode(TEXT))
    assert u.tolist() == [[0, 1], [0, 1]]
    assert len(told.transfer(TEXT, "bad", decoding=Beam(2))) == 2
    with pytest.raises(Problem, match="--strength has no effect with style-embedding"):
        told.transfer(TEXT, "good", strength=2.0)
    with pytest.raises(Problem, match="--like needs a block of style"):
        told.transfer(TEXT, like="the view was great")
    with pytest.raises(Problem, match="say the style with --to: bad, good"):
        told.transfer(TEXT)


def test_any_model_has_the_difference_of_class_means(plain: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    split = plain.split("train")
    known, y = split.codes[0].numpy(), plain.data.labels[split.rows, 0]
    offset = known[y == 1].mean(0) - known[y == 0].mean(0)
    z, *_ = codes(plain, monkeypatch, TEXT, "good", by="offset", strength=2.0)
    np.testing.assert_allclose(z, plain.encode(TEXT) + 2 * offset, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        (TEXT, {"to": "angry"}, "mood has no value 'angry'"),
        (TEXT, {"to": "colour=red"}, "unknown label that this run changes 'colour'"),
        (TEXT, {"to": ""}, "--to is empty"),
        ([""], {"to": "good"}, "at least one word, and one of these is empty"),
        (["xyzzy quux"], {"to": "good"}, "this model knows no word of 'xyzzy quux'"),
        (TEXT, {"to": "good", "like": "the cake was awful"}, "--to and --like both say the style"),
        (TEXT, {"to": "good", "strength": float("nan")}, "finite number"),
        (TEXT, {"to": "good", "by": "magic"}, "not 'magic'"),
        (TEXT, {"like": ["a", "soup", "cake"]}, "knows no word of 'a'"),
    ],
)
def test_what_cannot_be_is_one_sentence(run: Run, text: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Problem, match=sentence):
        run.transfer(text, **options)


def test_a_run_without_style_says_what_to_do(plain: Run) -> None:
    with pytest.raises(Problem, match="vae has no style: train style-vae"):
        plain.transfer(TEXT, "good")


def test_more_than_two_values_are_to_be_named(sentences: DataSet, tmp_path: Path) -> None:
    run = train("style-vae", sentences, tmp_path / "run", style_size=2, content_size=3, **SMALL)
    with pytest.raises(Problem, match="label is 0, 1, 2; say which with --to"):
        run.transfer(["w1 w2"])
