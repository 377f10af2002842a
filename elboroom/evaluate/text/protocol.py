"""The protocol by which the text of a model is measured: which texts, how many sentences, which orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from elboroom.evaluate.registry import Quantity, named
from elboroom.evaluate.result import Result
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
GIVES = {
    "bleu": Quantity("BLEU of reconstructions", "high"),
    **{f"self_bleu_{n}": Quantity(f"Self-BLEU-{n} of samples", "low") for n in (2, 3)},
    **{f"dis_{n}": Quantity(f"Distinct {n}-grams of samples", "high") for n in (1, 2)},
    **{f"distinct_{n}": Quantity(f"Distinct {n}-grams, as a share", "high") for n in (1, 2)},
    "unigram_kl": Quantity("KL of words to real text", "low"),
    "unigram_entropy": Quantity("Entropy of words", "neither"),
    "average_length": Quantity("Average length", "neither"),
    "forward_ppl": Quantity("Forward perplexity", "low"),
    "reverse_ppl": Quantity("Reverse perplexity", "low"),
}


def measure(
    samples: Sequence[str],
    reconstructions: Sequence[str] | None,
    inputs: Sequence[str] | None,
    train: Sequence[str],
    test: Sequence[str],
    seed: int = 0,
) -> dict[str, Result]:
    """All measures of generated text: samples from the prior, reconstructions of inputs, real train and test text.

    self-BLEU looks at 1,000 samples, the rest at all. Real text beside the samples is the training text; reverse PPL is
    on the test text. reconstructions: None where the model makes none.
    """
    check(train, "training sentences", empty=False)
    check(test, "test sentences", empty=False)
    if reconstructions is None or inputs is None:
        found = {"bleu": Result(None, "bleu-4", "of 100", reason="there are no reconstructions")}
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
    said = {key: replace(result, settings={"protocol": NAME, **result.settings}) for key, result in found.items()}
    return named(said)
