"""Forward and reverse perplexity of samples, by n-gram models: are they fluent, and do they cover real text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from elboroom.evaluate.result import Result
from elboroom.evaluate.text.kneser_ney import UNKNOWN, KneserNey, Scored
from elboroom.evaluate.text.ngrams import check, split

SMOOTHING = "interpolated modified Kneser-Ney"


def forward_perplexity(
    samples: Sequence[str], train: Sequence[str], test: Sequence[str] | None = None, order: int = 5
) -> Result:
    """PPL of samples under a model of real training text: low where they are fluent, also where all are one sentence.

    test: real text whose PPL under the same model stands beside it, as `test` in the parts.
    """
    check(samples, "samples")
    check(train, "training sentences", empty=False)
    model = KneserNey(train, order)
    yardstick = {} if test is None else {"test": model.score(test).perplexity()[0]}
    return _number(f"forward ppl, {order}-gram", model, len(train), model.score(samples), len(samples), yardstick)


def reverse_perplexity(
    samples: Sequence[str], train: Sequence[str], test: Sequence[str], order: int = 5, seed: int = 0
) -> Result:
    """PPL of real test text under a model of the samples: low where they cover what real text says.

    The vocabulary is that of the training text for every set of samples, so that no model gains by knowing few words.
    `train` in the parts is the PPL with as many sentences of real training text, drawn by the seed, for the samples.
    """
    check(samples, "samples")
    vocabulary = list(dict.fromkeys(chain.from_iterable(split(train, "training sentences", empty=False))))
    check(test, "test sentences", empty=False)
    model = KneserNey(samples, order, vocabulary)
    drawn = np.random.default_rng(seed).permutation(len(train))[: len(samples)]
    real = KneserNey([train[place] for place in drawn], order, vocabulary)
    yardstick = {"train": real.score(test).perplexity()[0], "train_sentences": len(drawn)}
    return _number(f"reverse ppl, {order}-gram", model, len(samples), model.score(test), len(samples), yardstick)


def _number(
    name: str, model: KneserNey, trained_on: int, scored: Scored, samples: int, yardstick: dict[str, Any]
) -> Result:
    value, error = scored.perplexity()
    settings = {
        "order": model.order,  # reached, lower than asked for where no sentence is long enough
        "smoothing": SMOOTHING,
        "vocabulary": len(model.ids),
        "unknown": f"read as {UNKNOWN}",
        "end": "counted",
        "samples": samples,
        "trained_on": trained_on,
        "scored": len(scored.tokens),
    }
    parts = {
        "tokens": int(scored.tokens.sum()),
        "unknown": scored.unknown,
        "discounts": [list(d) for d in model.discounts],
        "set_discounts": model.fallback,  # orders with the discounts 0.5, 1, 1.5
        **yardstick,
    }
    return Result(value, name, "per word", settings, {"sampling": error}, parts=parts)
