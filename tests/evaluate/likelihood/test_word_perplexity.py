"""Perplexity is by word, whatever the tokens, and its error is that of a ratio."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elboroom
from elboroom.evaluate import likelihood
from elboroom.evaluate.result import Result
from elboroom.runs.run import Run

LINES = [
    f"the {a} {b} {c} here" for a in ("red", "old", "unusual") for b in ("dog", "catamaran") for c in ("runs", "is")
]
LINES += [line.removesuffix(" here") for line in LINES]
SMALL: dict[str, Any] = {
    "steps": 4,
    "batch_size": 6,
    "embed": 4,
    "hidden": 4,
    "latent": 2,
    "threads": 1,
    "holdout": 0.5,
}


def trained(folder: Path, tokens: str) -> Run:
    more: dict[str, Any] = {"vocabulary": 280} if tokens == "bpe" else {}
    return elboroom.train("vae", LINES, folder, tokens=tokens, **more, **SMALL)


@pytest.mark.parametrize("tokens", ["words", "bpe", "bytes"])
def test_it_is_by_word_whatever_the_tokens(tokens: str, tmp_path: Path) -> None:
    run = trained(tmp_path / "run", tokens)
    found = likelihood.evaluate(run.split("test"), samples=5)
    held = run.data.sentences(run.data.splits["test"])
    words = sum(len(line.split()) + 1 for line in held)  # and the end of each
    nats = -found["log_likelihood"].value * len(held)  # type: ignore[operator]
    assert found["perplexity"].value == pytest.approx(math.exp(nats / words), rel=1e-6)
    assert found["perplexity"].settings["words"] == words
    if tokens != "words":
        assert found["perplexity"].settings["tokens"] > words + len(held)


def test_its_error_is_what_other_sentences_would_change(tmp_path: Path) -> None:
    split = trained(tmp_path / "run", "words").split("test")
    words = split.data.words[split.rows]

    def of(nats: Any) -> Result:
        return likelihood.perplexity(
            split, Result(-nats.mean(), "iw-1", "nats", {"K": 1}, {"sampling": 1.0}, each=-nats)
        )

    uniform = of(words * math.log(7.0))  # every word is one of seven, however long the sentence
    assert uniform.value == pytest.approx(7.0)
    assert uniform.errors["sampling"] == pytest.approx(0.0, abs=1e-9)
    rng = np.random.default_rng(0)
    nats = words * 2.0 + rng.normal(0, 1.0, len(words))
    picked = rng.integers(0, len(words), (4000, len(words)))
    others = np.exp(nats[picked].sum(1) / words[picked].sum(1))
    assert of(nats).errors["sampling"] == pytest.approx(others.std(), rel=0.15)


def test_a_number_does_not_keep_its_rows() -> None:
    number = Result(1.0, "iw-1", "nats", each=np.ones(3))
    assert "each" not in number.to_json()
    assert "each" not in Result(None, "iw-1", "nats", reason="no").to_json()
