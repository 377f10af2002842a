"""Forward and reverse perplexity, and all measures of text together."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from elboroom.core.problem import Problem
from elboroom.evaluate.result import Result
from elboroom.evaluate.text import KneserNey, bleu, forward_perplexity, measure, reverse_perplexity, self_bleu

VERBS, NOUNS = ("sees", "likes", "wants", "has"), ("dog", "cat", "house", "tree", "book", "ball", "sun", "moon")


def prose(n: int, seed: int, nouns: int = len(NOUNS)) -> list[str]:
    """the N V the N, now and then with an adverb."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        subject, thing = rng.choice(NOUNS[:nouns], 2)
        found.append(f"the {subject} {rng.choice(VERBS)} the {thing}" + " now" * int(rng.integers(0, 2)))
    return found


TRAIN, TEST = prose(300, 0), prose(100, 1)


def value(number: Result) -> float:
    assert number.value is not None
    return number.value


def test_forward_is_samples_under_real_text() -> None:
    samples = prose(50, 2)
    found = forward_perplexity(samples, TRAIN, TEST, order=3)
    scored = KneserNey(TRAIN, 3).score(samples)
    assert value(found) == pytest.approx(math.exp(scored.nats.sum() / sum(len(s.split()) + 1 for s in samples)))
    assert found.parts["test"] == pytest.approx(KneserNey(TRAIN, 3).score(TEST).perplexity()[0])
    assert found.parts["tokens"] == sum(len(s.split()) + 1 for s in samples)
    assert found.settings["samples"] == 50
    assert found.settings["trained_on"] == 300
    assert found.settings["scored"] == 50
    assert found.settings["vocabulary"] == len({w for s in TRAIN for w in s.split()}) + 1
    assert found.estimator == "forward ppl, 3-gram"
    assert found.parts["unknown"] == 0
    assert len(found.parts["discounts"]) == 3
    assert "test" not in forward_perplexity(samples, TRAIN).parts


def test_reverse_is_real_test_text_under_samples() -> None:
    samples = prose(50, 2, nouns=3)
    found = reverse_perplexity(samples, TRAIN, TEST, order=3)
    words = {w for s in TRAIN for w in s.split()}
    scored = KneserNey(samples, 3, words).score(TEST)
    assert value(found) == pytest.approx(math.exp(scored.nats.sum() / sum(len(s.split()) + 1 for s in TEST)))
    assert found.settings["samples"] == found.settings["trained_on"] == 50
    assert found.settings["scored"] == 100
    assert found.settings["vocabulary"] == len(words) + 1
    assert found.parts["unknown"] == 0
    assert found.parts["train_sentences"] == 50
    assert reverse_perplexity(TRAIN * 2, TRAIN, TEST).parts["train_sentences"] == 300


def test_real_text_is_its_own_yardstick() -> None:
    again = reverse_perplexity(TRAIN, TRAIN, TEST)
    assert value(again) == pytest.approx(again.parts["train"])
    test = forward_perplexity(TEST, TRAIN, TEST)
    assert value(test) == pytest.approx(test.parts["test"])


def test_collapsed_samples_are_fluent_and_cover_nothing() -> None:
    good, one = prose(200, 3), [TRAIN[0]] * 200
    assert value(forward_perplexity(one, TRAIN)) < value(forward_perplexity(good, TRAIN))
    assert value(reverse_perplexity(one, TRAIN, TEST)) > 3 * value(reverse_perplexity(good, TRAIN, TEST))
    assert value(reverse_perplexity([""] * 200, TRAIN, TEST)) > value(reverse_perplexity(good, TRAIN, TEST))


def test_no_model_gains_by_knowing_few_words() -> None:
    """Words that samples lack are each as unlikely as any unseen word, and are not one <unk>."""
    few = ["the dog sees the dog"] * 100
    found = reverse_perplexity(few, TRAIN, TEST)
    assert found.parts["unknown"] == 0
    own = KneserNey(few).score(TEST)
    assert own.unknown > 0
    assert value(found) > own.perplexity()[0]


def test_noise_is_not_fluent() -> None:
    rng = np.random.default_rng(0)
    shuffled = [" ".join(rng.permutation(s.split())) for s in prose(100, 4)]
    assert value(forward_perplexity(shuffled, TRAIN)) > 3 * value(forward_perplexity(prose(100, 4), TRAIN))
    strange = forward_perplexity(["the gnu sees the yak"], TRAIN)
    assert strange.parts["unknown"] == 2
    assert value(strange) > value(forward_perplexity(["the dog sees the cat"], TRAIN))


def test_the_measures_of_a_run() -> None:
    samples, made = prose(150, 5), [" ".join(s.split()[:-1]) for s in TEST]
    found = measure(samples, made, TEST, TRAIN, TEST)
    assert list(found) == [
        "bleu",
        "self_bleu_2",
        "self_bleu_3",
        "dis_1",
        "distinct_1",
        "dis_2",
        "distinct_2",
        "unigram_kl",
        "unigram_entropy",
        "average_length",
        "forward_ppl",
        "reverse_ppl",
    ]
    assert {number.settings["protocol"] for number in found.values()} == {"text-1"}
    assert found["bleu"].value == bleu(made, TEST).value
    assert found["self_bleu_3"].value == self_bleu(samples, 3).value
    assert found["forward_ppl"].value == forward_perplexity(samples, TRAIN).value
    assert found["reverse_ppl"].value == reverse_perplexity(samples, TRAIN, TEST).value
    assert found["reverse_ppl"].estimator == "reverse ppl, 5-gram"
    assert found["unigram_kl"].settings["reference_words"] == sum(len(s.split()) for s in TRAIN)
    assert found["average_length"].parts["reference"] == pytest.approx(np.mean([len(s.split()) for s in TRAIN]))
    json.dumps({name: number.to_json() for name, number in found.items()}, allow_nan=False)
    assert measure(samples, made, TEST, TRAIN, TEST) == found


def test_a_model_without_reconstructions() -> None:
    found = measure(prose(20, 5), None, None, TRAIN, TEST)
    assert found["bleu"].reason == "there are no reconstructions"
    assert value(found["dis_1"]) > 0


def test_empty_samples_are_measured_too() -> None:
    """What a decoder gives that ends at once: no crash in the last minute of a run."""
    found = measure([""] * 5, [""] * len(TEST), TEST, TRAIN, TEST)
    assert found["self_bleu_2"].value == 1
    assert found["bleu"].value == 0
    assert found["average_length"].value == 0
    assert found["unigram_kl"].value is None
    json.dumps({name: number.to_json() for name, number in found.items()}, allow_nan=False)


def test_mistakes_are_said() -> None:
    with pytest.raises(Problem, match="there are no samples"):
        measure([], TEST, TEST, TRAIN, TEST)
    with pytest.raises(Problem, match="there are no training sentences"):
        measure(TEST, TEST, TEST, [], TEST)
    with pytest.raises(Problem, match="test sentences have no words"):
        measure(TEST, TEST, TEST, TRAIN, [" "])
    for ppl in (forward_perplexity, reverse_perplexity):
        with pytest.raises(Problem, match="there are no samples"):
            ppl([], TRAIN, TEST)
        with pytest.raises(Problem, match="training sentences have no words"):
            ppl(TEST, [""], TEST)
        with pytest.raises(Problem, match="order of n-grams must be at least 1, not 0"):
            ppl(TEST, TRAIN, TEST, order=0)
    with pytest.raises(Problem, match="there are no test sentences"):
        reverse_perplexity(TEST, TRAIN, [])
