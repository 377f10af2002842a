"""BLEU by hand, and self-BLEU against one call of sacrebleu for each sample."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from elboroom.core.problem import Problem
from elboroom.evaluate.text import bleu, self_bleu
from elboroom.evaluate.text.bleu import against_others

CAT, MAT = "the cat is on the mat", "the cat sat on the mat"


def sentences(n: int, words: int = 12, longest: int = 9, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return [
        " ".join(f"w{w}" for w in np.minimum(rng.geometric(0.2, size), words)) for size in rng.integers(0, longest, n)
    ]


def test_bleu_counted_by_hand() -> None:
    """5 of 6 words, 3 of 5 pairs, 1 of 4 triples, none of 3 quadruples, for which `exp` puts 1/2."""
    found = bleu([CAT], [MAT])
    assert found.value == pytest.approx(100 * (5 / 6 * 3 / 5 * 1 / 4 * 1 / 6) ** 0.25)
    assert found.parts["precisions"] == pytest.approx([500 / 6, 60, 25, 100 / 6])
    assert found.settings["smoothing"] == "exp"
    assert "tok:none|smooth:exp" in found.settings["signature"]
    assert found.settings["sentences"] == 1
    assert bleu([CAT], [MAT], smoothing="none").value == 0
    assert bleu([CAT], [MAT], order=2).value == pytest.approx(100 * (5 / 6 * 3 / 5) ** 0.5)
    assert bleu([CAT], [MAT], order=2).estimator == "bleu-2"


def test_bleu_is_of_the_corpus_and_pays_for_brevity() -> None:
    """8 of 8 words, 6 of 6 pairs, for 10 words: exp(1 - 10 / 8)."""
    found = bleu(["a b c d", "e f g h"], ["a b c d", "e f g h i j"], order=2)
    assert found.value == pytest.approx(100 * np.exp(1 - 10 / 8))
    assert found.parts["brevity_penalty"] == pytest.approx(np.exp(1 - 10 / 8))
    assert (found.parts["words"], found.parts["input_words"], found.parts["exact"]) == (8, 10, 0.5)


def test_words_are_those_between_white_space(caplog: pytest.LogCaptureFixture) -> None:
    same = ["It 's a dog-eared book , no ?", "one two three four ."] * 120
    assert bleu(same, same).value == pytest.approx(100)
    assert bleu(["a b c dog-eared"], ["a b c dog - eared"]).parts["precisions"][0] == 75
    assert bleu(["A b c d"], ["a b c d"]).parts["precisions"][0] == 75
    assert not caplog.records  # sacrebleu warns of text that is split already


def test_what_is_not_there_gives_nothing() -> None:
    assert bleu(["x y z u", ""], ["a b c d", "a b c d"]).value == 0
    assert bleu(["", ""], ["a b c d", ""]).value == 0
    short = bleu(["a b c"], ["a b c"])
    assert short.value is None
    assert short.reason == "no input has 4 words or more"


def test_the_error_of_bleu_is_that_of_other_sentences() -> None:
    rng = np.random.default_rng(0)
    inputs = sentences(150, longest=15)
    made = [" ".join(w for w in s.split() if rng.random() > 0.1) for s in inputs]
    found = bleu(made, inputs)
    assert found.parts["brevity_penalty"] < 1
    metric, again = BLEU(tokenize="none", force=True), []
    for which in rng.integers(0, 150, (150, 150)):
        again.append(metric.corpus_score([made[i] for i in which], [[inputs[i] for i in which]]).score)
    assert found.errors["sampling"] == pytest.approx(np.std(again), rel=0.15)


def test_sentences_that_are_as_good_have_no_error() -> None:
    """Half of the words of each are right, the second a of the first being one too many."""
    found = bleu(["a a", "b c"], ["a b", "b d"], order=1)
    assert found.value == pytest.approx(50)
    assert found.errors["sampling"] == pytest.approx(0)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_self_bleu_is_sacrebleu_against_all_others(order: int, seed: int) -> None:
    texts = sentences(25, words=[12, 12, 40, 2][seed], seed=seed)
    texts = [s for s in texts if s] + [
        texts[3],
        "w1",
        "w1 w1 w1 w1 w1 w1 w1 w1 w1 w1 w1 w1 w1",
        "other",
        "out w1 w2 of",
    ]
    metric = BLEU(tokenize="none", smooth_method="floor", smooth_value=0.1, max_ngram_order=order, effective_order=True)
    wanted = [metric.sentence_score(s, texts[:i] + texts[i + 1 :]).score / 100 for i, s in enumerate(texts)]
    assert against_others([s.split() for s in texts], order) == pytest.approx(wanted)
    found = self_bleu(texts, order)
    assert found.value == pytest.approx(np.mean(wanted))
    assert found.errors["sampling"] == pytest.approx(np.std(wanted, ddof=1) / np.sqrt(len(texts)))
    assert found.estimator == f"self-bleu-{order}"


@pytest.mark.parametrize("sentence", [MAT, "one", "two words", ""])
@pytest.mark.parametrize("order", [2, 3])
def test_identical_samples_are_one(sentence: str, order: int) -> None:
    assert self_bleu([sentence] * 7, order).value == pytest.approx(1)


def test_samples_with_nothing_in_common_are_nought() -> None:
    assert self_bleu(["a b c", "d e f", "g h", ""], 2).value == 0


def test_the_best_of_two_references_for_the_one_that_has_most() -> None:
    """a a a finds a twice in another, a a finds it twice in a a a, a finds all of it."""
    assert against_others([["a"] * 3, ["a"] * 2, ["a"]], 1) == pytest.approx([2 / 3, 1, np.exp(1 - 2)])


def test_a_thousand_samples_take_a_moment_and_more_are_drawn_from() -> None:
    texts = sentences(1_500, words=3_000, longest=40)
    start = time.perf_counter()
    found = self_bleu(texts, 3)
    assert time.perf_counter() - start < 20
    assert found.settings["samples"] == 1_000
    assert found.settings["of"] == 1_500
    assert self_bleu(texts, 3) == found
    assert self_bleu(texts, 3, seed=1).value != found.value
    assert self_bleu(sorted(texts), 3).value == pytest.approx(found.value, abs=0.05)  # not the first thousand


def test_mistakes_are_said() -> None:
    with pytest.raises(Problem, match="there are no reconstructions"):
        bleu([], [])
    with pytest.raises(Problem, match="inputs have no words"):
        bleu(["a"], [" "])
    with pytest.raises(Problem, match="there are 1 reconstructions but 2 inputs"):
        bleu(["a"], ["a", "b"])
    with pytest.raises(Problem, match="unknown smoothing 'some'; choose from: add-k, exp, floor, none"):
        bleu(["a"], ["a"], smoothing="some")
    with pytest.raises(Problem, match="order of n-grams must be at least 1"):
        bleu(["a"], ["a"], order=0)
    with pytest.raises(Problem, match="order of n-grams must be at least 1"):
        self_bleu(["a", "b"], 0)
    with pytest.raises(Problem, match="there are no samples"):
        self_bleu([])
    with pytest.raises(Problem, match="needs at least two samples"):
        self_bleu(["a b"])
    with pytest.raises(Problem, match="needs at least two samples"):
        self_bleu(["a b", "c d"], most=1)
