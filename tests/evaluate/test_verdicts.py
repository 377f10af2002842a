"""Verdicts say what numbers mean, and nothing where there is nothing to say."""

from __future__ import annotations

import numpy as np

from elboroom.evaluate.verdicts import (
    against_pca,
    apart,
    beside_training,
    learning,
    of_metrics,
    overfit,
    strange,
    verdicts,
)


def test_a_z_that_is_not_used_is_told_and_nothing_else() -> None:
    for numbers in (([0.001, 0.002], 0.01), ([0.5, 0.5], 0.05), ([0.0, 0.0], None)):
        (told,) = verdicts(*numbers, aggregate_rate=50.0)
        assert "z is not used" in told


def test_a_z_that_costs_nats_and_tells_nothing_is_told_otherwise() -> None:
    (told,) = verdicts([0.0, 0.001], 1.2)
    assert told.startswith("z is not used yet: its mean is the same for every example, though the mean KL is 1.2 nats")


def test_passive_dimensions_are_counted() -> None:
    assert verdicts([1.0, 0.001, 0.5], 3.0)[0].startswith("1 of 3 dimensions is passive")
    assert verdicts([1.0, 0.001, 0.001], 3.0)[0].startswith("2 of 3 dimensions are passive")
    assert verdicts([1.0, 0.5], 3.0) == ["All 2 dimensions are active."]
    assert verdicts([]) == []


def test_a_far_aggregate_is_told_unless_its_estimate_stands_at_its_ceiling() -> None:
    active = [1.0, 1.0]
    assert any("nats from the prior" in told for told in verdicts(active, 8.0, 5.0, information=3.0, ceiling=9.2))
    assert not any("from the prior" in told for told in verdicts(active, 8.0, 1.5, information=3.0, ceiling=9.2))
    assert not any("from the prior" in told for told in verdicts(active, 14.0, 5.0, information=9.1, ceiling=9.2))


def test_metrics_as_they_are_kept() -> None:
    kept = {
        "rate": {"value": 12.0},
        "aggregate_rate": {"value": 7.0},
        "mutual_information": {"value": 5.0, "parts": {"ceiling": 9.2}},
        "active_units": {"value": 2, "parts": {"variances": [1.0, 0.02]}, "settings": {"threshold": 0.01}},
    }
    assert len(of_metrics(kept)) == 2
    assert of_metrics({}) == []


def test_a_text_whose_z_is_not_used_is_a_language_model() -> None:
    kept = {"active_units": {"parts": {"variances": [0.0]}}, "rate": {"value": 0.0}, "perplexity": {"value": 9.0}}
    (told,) = of_metrics(kept)
    assert "this is a language model" in told


def test_unknown_words_are_told_beside_a_perplexity() -> None:
    assert strange(0.001) == ""
    assert strange(0.054).startswith("5.4% of the words are unknown")
    kept = {"perplexity": {"value": 9.0, "parts": {"unknown_words": 0.2}}}
    assert of_metrics(kept)[-1].startswith("20.0% of the words")


def test_a_loss_that_still_falls_is_told_from_one_that_has_settled() -> None:
    rng, steps = np.random.default_rng(0), np.arange(40)
    noise = rng.normal(0, 0.3, 40)
    assert learning((100 - steps + noise).tolist()).startswith("It still learns: the loss fell by 10 nats")
    assert learning((60 + 40 * np.exp(-steps / 2) + noise).tolist()).startswith("It has settled")
    assert learning((60 + steps + noise).tolist()) == "", "of one that rises nothing is said"
    assert "too short" in learning([3.0, 2.0, 1.0])
    assert learning([9.0, 6.0, 4.0, 3.0]).startswith("It still learns"), "of four lines a slope is all there is"


def test_held_out_data_that_costs_more_is_told() -> None:
    assert overfit(100.0, 130.0, 1.0).startswith("Held-out examples cost 30 nats more")
    assert overfit(100.0, 130.0, 13.0) == ""
    assert overfit(100.0, 101.0, 0.01) == ""


def test_pca_stands_beside_reconstructions() -> None:
    assert against_pca(0.91, 0.84, 10).endswith("keep 91% of the variance; PCA of the same size (10) keeps 84%.")
    assert "train longer" in against_pca(0.5, 0.84, 10)


def test_too_few_held_out_examples_do_not_tell() -> None:
    state, told = beside_training(-8131.0, -7292.0, 866.0)
    assert (state, told) == (
        "note",
        "Too few held-out examples to tell whether the model overfits: they cost 839 nats more than training examples, "
        "with an error of 866.",
    )
    assert beside_training(50.0, 50.2, 0.5)[0] == "well"


def test_reconstructions_that_are_other_sentences() -> None:
    assert "BLEU 0.4" in apart(0.4)
    assert apart(20.0) == ""
