"""Words of samples, counted by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from elboroom.core.problem import Problem
from elboroom.evaluate.result import Result
from elboroom.evaluate.text import average_length, distinct_count, distinct_ratio, unigram_entropy, unigram_kl
from elboroom.evaluate.text.ngrams import per_word

SAMPLES = ["a b a b", "a b c", "c"]  # a 3, b 3, c 2


def value(number: Result) -> float:
    assert number.value is not None
    return number.value


def test_distinct_ngrams_by_hand() -> None:
    """Pairs ab ba ab | ab bc |: 3 kinds of 5; none reaches from one sentence into the next."""
    assert (value(distinct_count(SAMPLES, 1)), value(distinct_count(SAMPLES, 2))) == (3, 3)
    assert value(distinct_ratio(SAMPLES, 1)) == 3 / 8
    assert value(distinct_ratio(SAMPLES, 2)) == 3 / 5
    assert value(distinct_count(SAMPLES, 3)) == 3
    assert value(distinct_ratio(SAMPLES, 3)) == 3 / 3
    for number in (distinct_count(SAMPLES, 2), distinct_ratio(SAMPLES, 2)):
        assert number.parts == {"distinct": 3, "ngrams": 5, "words": 8}
        assert number.settings == {"samples": 3}
    assert distinct_count(SAMPLES, 2).estimator == "dis-2"
    assert distinct_ratio(SAMPLES, 2).estimator == "distinct-2"


def test_no_ngram_has_no_ratio() -> None:
    assert distinct_count(["a", ""], 2).value == 0
    ratio = distinct_ratio(["a", ""], 2)
    assert ratio.value is None
    assert ratio.reason == "no sample has 2 words or more"


def test_entropy_by_hand() -> None:
    found = unigram_entropy(["a b", "c d"], ["a a", "a a b b b b"])
    assert value(found) == pytest.approx(math.log(4))
    assert found.errors["sampling"] == pytest.approx(0)  # every word tells the same
    assert found.parts["reference"] == pytest.approx(math.log(2))
    wanted = -2 * 3 / 8 * math.log(3 / 8) - 2 / 8 * math.log(2 / 8)
    assert value(unigram_entropy(SAMPLES)) == pytest.approx(wanted)
    assert unigram_entropy(SAMPLES).parts == {}
    assert unigram_entropy([""]).reason == "the samples have no words"


def test_length_by_hand() -> None:
    found = average_length(SAMPLES, ["a", "a b"])
    assert value(found) == 8 / 3
    assert found.unit == "words"
    assert found.parts == {"reference": 1.5}
    assert found.errors["sampling"] == pytest.approx(np.std([4, 3, 1], ddof=1) / math.sqrt(3))
    assert value(average_length([""])) == 0
    assert average_length(["a"]).errors["sampling"] == 0


def test_kl_by_hand() -> None:
    """Reference: a 4, b 2 of 6, one more for each of the three words: a 5/9, b 3/9, c 1/9."""
    found = unigram_kl(SAMPLES, ["a a b", "a a b"])
    wanted = 3 / 8 * math.log(3 / 8 * 9 / 5) + 3 / 8 * math.log(3 / 8 * 9 / 3) + 2 / 8 * math.log(2 / 8 * 9 / 1)
    assert value(found) == pytest.approx(wanted)
    assert found.parts["unseen"] == 2 / 8
    skipping = 3 / 8 * math.log(3 / 8 * 6 / 4) + 3 / 8 * math.log(3 / 8 * 6 / 2)
    assert found.parts["skipping"] == pytest.approx(skipping)
    assert skipping < 0 < wanted  # what skips unseen words can even be negative
    assert found.settings["smoothing"] == "add 1"
    assert (found.settings["types"], found.settings["words"], found.settings["reference_words"]) == (3, 8, 6)
    less = (
        3 / 8 * math.log(3 / 8 * 7.5 / 4.5) + 3 / 8 * math.log(3 / 8 * 7.5 / 2.5) + 2 / 8 * math.log(2 / 8 * 7.5 / 0.5)
    )
    assert value(unigram_kl(SAMPLES, ["a a b", "a a b"], smoothing=0.5)) == pytest.approx(less)


def test_kl_spreads_over_words_of_the_reference_too() -> None:
    """Reference: a 2, b 1, d 1 of 4: a 3/7 with the 3 words of the reference, and every one of them takes mass."""
    assert value(unigram_kl(["a"], ["a a b d"])) == pytest.approx(math.log(7 / 3))


def test_a_text_is_near_itself_and_far_from_others() -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(20))
    q = rng.dirichlet(np.ones(20))

    def text(law: list[float], n: int) -> list[str]:
        return [" ".join(map(str, rng.choice(20, 10, p=law))) for _ in range(n)]

    assert value(unigram_kl(text(list(p), 2_000), text(list(p), 2_000))) == pytest.approx(0, abs=0.01)
    truth = float(np.sum(p * np.log(p / q)))
    found = unigram_kl(text(list(p), 2_000), text(list(q), 2_000))
    assert abs(value(found) - truth) < 5 * found.errors["sampling"]
    assert unigram_kl([""], ["a"]).reason == "the samples have no words"


@pytest.mark.parametrize("measure", [unigram_entropy, lambda s: unigram_kl(s, ["1 2 3 3 3 4", "0 0 0"])])
def test_errors_are_those_of_other_sentences(measure: object) -> None:
    """Words of one sentence are alike, so fewer words are seen than there are."""
    rng = np.random.default_rng(0)
    texts = np.array([" ".join([str(rng.integers(0, 2 + i % 4))] * rng.integers(1, 6)) for i in range(400)])
    found = measure(list(texts)).errors["sampling"]  # type: ignore[operator]
    again = [measure(list(texts[rng.integers(0, 400, 400)])).value for _ in range(300)]  # type: ignore[operator]
    assert found == pytest.approx(np.std(again), rel=0.15)


def test_the_error_of_two_sentences_by_hand() -> None:
    """(3 + 1) / (2 + 2) words is 1; apart by 1 and -1, squared and summed 2, times n / (n - 1) = 2: sqrt(4) / 4."""
    assert per_word(np.array([3.0, 1.0]), np.array([2, 2])) == (1, 0.5)
    assert per_word(np.array([3.0]), np.array([2])) == (1.5, 0)


def test_mistakes_are_said() -> None:
    for measure in (distinct_count, distinct_ratio, unigram_entropy, average_length):
        with pytest.raises(Problem, match="there are no samples"):
            measure([])
    for count in (distinct_count, distinct_ratio):
        with pytest.raises(Problem, match="order of n-grams must be at least 1, not 0"):
            count(["a"], 0)
    with pytest.raises(Problem, match="there are no samples"):
        unigram_kl([], ["a"])
    with pytest.raises(Problem, match="there are no reference sentences"):
        unigram_kl(["a"], [])
    with pytest.raises(Problem, match="reference sentences have no words"):
        unigram_kl(["a"], [" "])
    with pytest.raises(Problem, match="reference sentences have no words"):
        unigram_entropy(["a"], [""])
    for smoothing in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(Problem, match="smoothing must be greater than 0"):
            unigram_kl(["a"], ["a"], smoothing)
