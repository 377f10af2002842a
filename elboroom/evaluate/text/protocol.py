"""The protocol by which the text of a model is measured: which texts, how many sentences, which orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from elboroom.evaluate.result import Number
from elboroom.evaluate.text.bleu import bleu, self_bleu
from elboroom.evaluate.text.diversity import (
    average_length,
    distinct_count,
    distinct_ratio,
    unigram_entropy,
    unigram_kl,
)
from elboroom.evaluate.text.ngrams import check
from elboroom.evaluate.text.perplexity import forward_perplexity, reverse_perplexity

NAME = "text-1"  # changes whenever a number would
SELF_BLEU_SAMPLES = 1_000
ORDER = 5  # of the n-gram models


def measure(
    samples: Sequence[str],
    reconstructions: Sequence[str] | None,
    inputs: Sequence[str] | None,
    train: Sequence[str],
    test: Sequence[str],
    seed: int = 0,
) -> dict[str, Number]:
    """All measures of generated text: samples from the prior, reconstructions of inputs, real train and test text.

    self-BLEU looks at 1,000 samples, the rest at all. Real text beside the samples is the training text; reverse PPL is
    on the test text. reconstructions: None where the model makes none.
    """
    check(train, "training sentences", empty=False)
    check(test, "test sentences", empty=False)
    if reconstructions is None or inputs is None:
        found = {"bleu": Number(None, "of 100", "bleu-4", reason="there are no reconstructions")}
    else:
        found = {"bleu": bleu(reconstructions, inputs)}
    for n in (2, 3):
        found[f"self_bleu_{n}"] = self_bleu(samples, n, SELF_BLEU_SAMPLES, seed)
    for n in (1, 2):
        found[f"dis_{n}"] = distinct_count(samples, n)
        found[f"distinct_{n}"] = distinct_ratio(samples, n)
    found["unigram_kl"] = unigram_kl(samples, train)
    found["unigram_entropy"] = unigram_entropy(samples, train)
    found["average_length"] = average_length(samples, train)
    found["forward_ppl"] = forward_perplexity(samples, train, test, ORDER)
    found["reverse_ppl"] = reverse_perplexity(samples, train, test, ORDER, seed)
    return {name: replace(number, settings={"protocol": NAME, **number.settings}) for name, number in found.items()}
