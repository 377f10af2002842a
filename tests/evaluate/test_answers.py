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
from elboroom.data.sequences import CONTEXT
from elboroom.data.text import gather
from elboroom.evaluate.answers import GIVES_REPLIES, GIVES_SARI, replies, simplification
from elboroom.evaluate.registry import metrics
from elboroom.evaluate.subject import Subject
from elboroom.evaluate.text.sari import sari
from elboroom.runs import measure
from elboroom.runs.run import Run

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


SOURCES = [f"the {noun} was very {word} today" for noun in ("soup", "cake") for word in ("cold", "warm", "small")]


@pytest.fixture
def simple(tmp_path: Path) -> Run:
    """A run on sources with three references each, the first of which is the longest."""
    told = [(text, (), ((source,),)) for source in SOURCES for text in (source[:-6] + " .", source[4:12], source[4:8])]
    data = gather("simple", {"train": told * 2, "test": told}, beside=[CONTEXT])
    return elboroom.train("seq2seq", data, tmp_path / "run", **SMALL)


def test_the_first_reference_is_that_of_the_data_and_not_the_shortest(simple: Run) -> None:
    found = simplification(Subject(simple))["sari_of_reference"]
    assert found.settings["references"] == [3, 3]
    first = [sari(s, s[:-6] + " .", [s[4:12], s[4:8]]).value for s in SOURCES]
    assert found.value == pytest.approx(100 * np.mean(first))


def test_few_sources_keep_all_their_references(simple: Run) -> None:
    found = simplification(Subject(simple), most=2)
    settings = found["sari"].settings
    assert (settings["sources"], settings["references"], settings["n"]) == (2, [3, 3], 6)
    assert found["sari_of_reference"].value is not None
    with pytest.raises(Problem, match="at least one example is needed, not 0"):
        simplification(Subject(simple), most=0)


def test_answers_of_a_run_that_is_given_labels_have_those_of_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = elboroom.train("cvae", talk(), tmp_path / "run", latent=3, given="context,act", **SMALL)
    told, generate = [], Run.generate

    def watched(self: Run, context: Any, n: int, decoding: Any, seed: int, u: Any = None) -> Any:
        told.append(u)
        return generate(self, context, n, decoding, seed, u)

    monkeypatch.setattr(Run, "generate", watched)
    found = measure.metrics(run, ["replies", "translation", "simplification"])
    assert found.keys() >= {"bleu_1_precision", "translation_bleu", "sari"}
    rows = run.rows("test")[1]
    acts = run.data.u(rows, ("act",))
    assert sum(u.shape == acts.shape and bool((u == acts).all()) for u in told) >= 2
    assert len(told) == 3


def test_f1_is_of_the_means_over_contexts_and_vectors_may_be_of_a_file(tmp_path: Path) -> None:
    run = elboroom.train("cvae", talk(), tmp_path / "run", latent=3, **SMALL)
    (tmp_path / "glove.txt").write_text("\n".join(f"{word} {i} {(i - 2) ** 2} 1" for i, word in enumerate("abcdef")))
    own, found = replies(Subject(run)), replies(Subject(run), vectors=tmp_path / "glove.txt")
    assert found["bow_average_f1"].settings["vectors"] == "glove.txt"
    assert found["bow_average_precision"].value != own["bow_average_precision"].value
    assert found["bleu_1_recall"].value == own["bleu_1_recall"].value
    for what in ("bleu_1", "bleu_4", "bow_average", "bow_extrema", "bow_greedy"):
        precision, recall, both = (found[f"{what}_{which}"] for which in ("precision", "recall", "f1"))
        assert precision.value is not None
        assert recall.value is not None
        assert both.value == pytest.approx(2 / (1 / precision.value + 1 / recall.value))
        assert 0 < both.errors["sampling"] <= 2 * (precision.errors["sampling"] + recall.errors["sampling"])
    assert found["bleu_2_f1"].title == "BLEU-2, F1 of 10 replies"
