"""Scores of several replies, by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from elboroom.evaluate.text.replies import average, distinct, extrema, f1, greedy, scores, sentence_bleu, similarity


class Axes:
    """a and b are axes, c lies opposite to a; other words have no vector."""

    def of(self, words: Sequence[str]) -> NDArray[np.float32]:
        known = {"a": [1, 0], "b": [0, 1], "c": [-2, 0]}
        return np.array([known[word] for word in words if word in known], np.float32).reshape(-1, 2)


def test_bleu_of_one_sentence_by_hand() -> None:
    # two words, one right: p_1 = 1/2; smoothing 5: (p_1 + 1 + p_1 + p_5) / 3 = (1.5 + 0.5 + 0) / 3
    assert sentence_bleu(["a", "x"], ["a", "b"], 1) == pytest.approx(2 / 3)
    # order 2: p_2 = log 2 / 10 of one bigram (smoothing 4), then the two means
    p2 = math.log(2) / 10
    first = (1.5 + 0.5 + p2) / 3
    second = (first + p2 + 0) / 3
    assert sentence_bleu(["a", "x"], ["a", "b"], 2) == pytest.approx(math.sqrt(first * second))
    assert sentence_bleu(["x"], ["a", "b"]) == 0
    short = sentence_bleu(["a"], ["a", "b", "c"], 1)
    assert short == pytest.approx(math.exp(1 - 3) * (2 + 1 + 0) / 3)
    same = sentence_bleu(list("abcdef"), list("abcdef"))
    assert same > sentence_bleu(list("abcdxf"), list("abcdef"))


def test_similarities_by_hand() -> None:
    a, b = Axes().of(["a", "b"]), Axes().of(["c"])
    assert average(a, b) == pytest.approx(-math.sqrt(0.5))
    assert extrema(Axes().of(["a", "c", "b"]), Axes().of(["c", "b"])) == pytest.approx(1), "-2 is larger than 1"
    assert greedy(a, Axes().of(["a"])) == pytest.approx((0.5 + 1) / 2)
    assert similarity("average", ["a", "?"], ["a"], Axes()) == pytest.approx(1), "a word without a vector is left out"
    assert similarity("extrema", ["?"], ["a"], Axes()) == 0


def test_precision_is_the_mean_and_recall_the_best() -> None:
    found = scores(["a b", "c", ""], "a b", Axes())
    alone = scores(["a b"], "a b", Axes())
    assert found["bleu_1_recall"] == alone["bleu_1_recall"] == alone["bleu_1_precision"]
    assert found["bleu_1_precision"] == pytest.approx(alone["bleu_1_precision"] / 3)
    assert found["bow_average_recall"] == pytest.approx(1)
    assert found["bow_average_precision"] == pytest.approx((1 - math.sqrt(0.5)) / 3)


def test_distinct_within_and_over_replies() -> None:
    assert distinct([["a", "a"], ["a", "b"]], 1) == 0.5
    found = scores(["a a", "a b"], "x", Axes())
    assert (found["intra_distinct_1"], found["inter_distinct_1"]) == (0.75, 0.5)
    assert (found["intra_distinct_2"], found["inter_distinct_2"]) == (1, 1)


def test_f1_is_of_the_means_and_its_spread_is_its_error() -> None:
    precision, recall = np.array([0.2, 0.4, 0.9]), np.array([0.5, 0.9, 1.0])
    each = f1(precision, recall)
    assert each.mean() == pytest.approx(2 * 0.5 * 0.8 / (0.5 + 0.8))
    rng = np.random.default_rng(0)
    p = rng.random(400)
    r = np.minimum(1, p + 0.5 * rng.random(400))
    drawn = [f1(p[rows], r[rows]).mean() for rows in rng.integers(0, 400, (2000, 400))]
    assert f1(p, r).std() / 20 == pytest.approx(np.std(drawn), rel=0.1), "as of a bootstrap"
    assert not f1(np.zeros(3), np.zeros(3)).any()
    assert not f1(np.array([-0.2, 0.1]), np.array([0.4, 0.4])).any()
