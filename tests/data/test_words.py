"""Words of style by log-odds, stop words, words of content."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from shell import elbo

from elboroom.data.dataset import DataSet
from elboroom.data.text import gather
from elboroom.data.words import STOP, content_tokens, is_word, log_odds, style_words, tells

GOOD = ["the food was great .", "great place .", "the soup was warm ."] * 20
BAD = ["the food was awful .", "awful place .", "the soup was cold ."] * 20


@pytest.fixture(scope="module")
def reviews() -> DataSet:
    read = [(text, ("good",)) for text in GOOD] + [(text, ("bad",)) for text in BAD]
    return gather("reviews", {"train": read}, {"label": None}, holdout=0.1)


def test_words_of_one_class_alone_tell_it_and_shared_ones_do_not() -> None:
    found = style_words(GOOD + BAD, [1] * len(GOOD) + [0] * len(BAD), 2)
    assert {entry.word: entry.value for entry in found} == {"great": 1, "warm": 1, "awful": 0, "cold": 0}
    assert [entry.sigmas for entry in found] == sorted((entry.sigmas for entry in found), reverse=True)


def test_log_odds_by_hand_and_their_signs() -> None:
    counts = np.array([[30.0, 10.0], [10.0, 30.0]])
    delta, sigmas = log_odds(counts)
    odds = np.log((30.5 / 10.5) / (10.5 / 30.5))
    np.testing.assert_allclose(delta, [[odds, -odds], [-odds, odds]])
    np.testing.assert_allclose(np.abs(sigmas), odds / np.sqrt(1 / 30.5 + 1 / 10.5))
    assert tells(counts).all()
    assert not tells(np.array([[30.0, 10.0], [20.0, 20.0]])).any(), "odds of three are not enough"
    assert not tells(np.array([[1.0, 100.0], [0.0, 100.0]])).any(), "one occurrence says nothing"


def test_three_classes_are_told_one_against_the_rest() -> None:
    texts = ["a was", "b is", "c will"] * 20
    found = {entry.word: entry.value for entry in style_words(texts, [0, 1, 2] * 20, 3)}
    assert found == {"a": 0, "was": 0, "b": 1, "is": 1, "c": 2, "will": 2}


def test_words_of_content_are_neither_marks_nor_stop_words_nor_style(reviews: DataSet) -> None:
    assert reviews.tokeniser is not None
    mask = content_tokens(reviews, ["label"])
    assert {token for token, is_content in zip(reviews.tokeniser.tokens, mask, strict=True) if is_content} == {
        "food",
        "place",
        "soup",
    }
    assert "the" in STOP
    assert not any(map(is_word, (".", "<unk>", "''")))


def test_data_show_lists_the_words_of_a_style(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    said = [(y, w, n) for y, w in (("bad", "awful"), ("good", "great")) for n in ("soup", "cake", "room", "view")]
    path.write_text("".join(f"{y}\tthe {n} was {w}\n" for y, w, n in said) * 3)
    code, out, _ = elbo("data", "show", path, "--style-words", "label", "--json")
    assert code == 0
    assert json.loads(out)["style_words"] == {"bad": ["awful"], "good": ["great"]}
    assert "awful" in elbo("data", "show", path, "--style-words", "label")[1]
    assert elbo("data", "show", path, "--style-words", "tone")[0] == 2
