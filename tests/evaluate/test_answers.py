"""Measures of answers on a run: what is registered, what they give, and who is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract import talk

import elboroom
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.evaluate.answers import GIVES_REPLIES, GIVES_SARI
from elboroom.evaluate.registry import metrics
from elboroom.evaluate.text.sari import sari
from elboroom.runs import measure

SMALL: dict[str, Any] = {"steps": 2, "batch_size": 8, "embed": 6, "hidden": 8, "threads": 1}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELBOROOM_CACHE", str(tmp_path / "cache"))


def test_replies_translations_and_simplifications_are_measured(tmp_path: Path) -> None:
    run = elboroom.train("cvae", talk(), tmp_path / "run", latent=3, **SMALL)
    found = measure.metrics(run, ["replies", "translation", "simplification"])
    assert found.keys() >= GIVES_REPLIES.keys() | GIVES_SARI.keys() | {"translation_bleu"}
    for n in range(1, 5):
        assert found[f"bleu_{n}_recall"]["value"] >= found[f"bleu_{n}_precision"]["value"]
    assert found["bleu_3_recall"]["settings"]["replies"] == 10
    assert all(metrics()[name].by_name for name in ("replies", "translation", "simplification"))
    rows = run.rows("test")[1]
    sources: dict[str, list[str]] = {}
    for turns, text in zip(run.data.turns("context", rows), run.data.sentences(rows), strict=True):
        sources.setdefault(" ".join(turns), []).append(text)
    copied = np.mean([100 * sari(source, source, texts).value for source, texts in sources.items()])
    assert found["sari_of_source"]["value"] == pytest.approx(copied)


def test_a_model_that_reads_no_context_is_refused(tmp_path: Path, sentences: DataSet) -> None:
    run = elboroom.train("lm", sentences, tmp_path / "run", **SMALL)
    with pytest.raises(Problem, match="for models that read a context"):
        measure.metrics(run, "replies")
