"""The metric `transfer` on runs, and the two ends of its scale."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract import talk
from shell import elbo

from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.data.text import gather
from elboroom.evaluate.subject import Subject, reads_pivot
from elboroom.evaluate.transfer import classifier, measure
from elboroom.evaluate.transfer.measure import COPY, RIGHT, Bench, Task
from elboroom.plots.figures import gallery
from elboroom.report.numbers import table
from elboroom.runs import transfer
from elboroom.runs.lifecycle import train
from elboroom.runs.run import Run

SMALL: dict[str, Any] = {"steps": 6, "batch_size": 8, "embed": 8, "hidden": 8, "threads": 1, "device": "cpu"}
NOUNS = ("soup", "cake", "room", "staff", "view", "door", "lamp", "chair", "table", "bread")
TOLD = (("awful", "bad"), ("cold", "bad"), ("great", "good"), ("warm", "good"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ELBOROOM_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield Path()


@pytest.fixture(scope="module")
def reviews(cache: Path) -> DataSet:
    said = [
        (f"the {noun} was {word} {end}", (label,)) for noun in NOUNS for word, label in TOLD for end in (".", "today .")
    ]
    return gather("reviews", {"train": said * 3, "valid": said, "test": said}, {"mood": None})


@pytest.fixture(scope="module")
def run(reviews: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train("style-vae", reviews, tmp_path_factory.mktemp("run") / "style", style_size=2, content_size=3, **SMALL)


def test_the_ends_of_the_scale(reviews: DataSet) -> None:
    """A copy keeps all and flips nothing; a perfect answer keeps all but the style, and flips it."""
    bench = Bench(reviews, "mood")
    assert bench.own == 1.0
    assert bench.style == {"awful", "cold", "great", "warm"}
    other = {"awful": "great", "cold": "warm", "great": "awful", "warm": "cold"}
    rows = reviews.splits["test"]
    inputs, truth = reviews.sentences(rows), reviews.labels[rows, 0]
    task = Task(inputs, truth, 1 - truth, {})
    copy, right = (
        {key: result.value for key, result in bench.scores(task, outputs).items()}
        for outputs in (inputs, [" ".join(other.get(word, word) for word in text.split()) for text in inputs])
    )
    assert copy["transfer_accuracy"] == pytest.approx(1 - bench.own)
    assert copy["transfer_self_bleu"] == pytest.approx(100)
    assert copy["transfer_overlap"] == copy["transfer_copies"] == 1
    assert copy["transfer_cosine"] == pytest.approx(1)
    assert copy["transfer_mean"] == 0
    assert right["transfer_accuracy"] == right["transfer_overlap"] == right["transfer_mean"] == 1
    assert right["transfer_copies"] == 0
    assert right["transfer_self_bleu"] < 100  # type: ignore[operator]
    assert copy["transfer_ppl"] == pytest.approx(right["transfer_ppl"], rel=0.1)
    nonsense = bench.scores(task, ["today the the ."] * len(inputs))
    assert nonsense["transfer_ppl"].value > 3 * copy["transfer_ppl"]  # type: ignore[operator]
    assert nonsense["transfer_overlap"].value == pytest.approx(np.mean([t.endswith("today .") / 2 for t in inputs]))


def test_a_run_is_measured_with_the_ends_beside_it(run: Run) -> None:
    found = measure.of_run(Subject(run), most=20)
    assert {"transfer_accuracy", "transfer_ppl", "transfer_overlap", "transfer_copies"} <= found.keys()
    accuracy = found["transfer_accuracy"]
    assert accuracy.parts["beside"][COPY] == 0
    assert "1.000 accurate on real text" in accuracy.estimator
    assert accuracy.settings["sentences"] == 20
    assert accuracy.title == "Accuracy of transfer"
    assert "transfer_exact" not in found
    with pytest.raises(Problem, match="unknown label that this run changes 'colour'"):
        measure.of_run(Subject(run), label="colour")


def test_a_transfer_of_any_strength_is_measured(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    real = transfer.restyled

    def spied(run: Run, z: Any, to: Any = None, strength: float = 1.0) -> Any:
        asked.append(strength)
        return real(run, z, to, strength)

    monkeypatch.setattr(transfer, "restyled", spied)
    found = measure.of_run(Subject(run), most=20, strength=1.5)
    assert set(asked) == {1.5}
    assert found["transfer_accuracy"].settings["strength"] == 1.5
    with pytest.raises(Problem, match="finite number"):
        measure.of_run(Subject(run), most=20, strength=float("inf"))


def test_fluency_is_told_of_short_and_of_long_outputs(reviews: DataSet) -> None:
    bench, rows = Bench(reviews, "mood"), reviews.splits["test"]
    inputs = reviews.sentences(rows)
    task = Task(inputs, reviews.labels[rows, 0], 1 - reviews.labels[rows, 0], {})
    found = bench.scores(task, inputs)["transfer_ppl"]
    said = f"short outputs {found.parts['short']:.1f}; long outputs {found.parts['long']:.1f}"
    assert found.estimator.endswith(f"real text {bench.real_ppl:.1f}; {said}")


def test_real_text_that_is_no_test_split_is_called_what_it_is(cache: Path) -> None:
    said = [(f"the {noun} was {word} .", (label,)) for noun in NOUNS for word, label in TOLD]
    splits = {"train": said * 3, "valid": said}
    for names, called in ((["train"], "real text of train"), (["train", "valid"], "real text of valid")):
        data = gather("reviews", {name: splits[name] for name in names}, {"mood": None})
        rows = data.splits["train"][:8]
        task = Task(data.sentences(rows), data.labels[rows, 0], 1 - data.labels[rows, 0], {})
        found = Bench(data, "mood").scores(task, task.inputs)
        assert found["transfer_accuracy"].estimator.endswith(f"accurate on {called}")
        assert called in found["transfer_ppl"].estimator


def test_a_split_of_one_style_has_nothing_to_change_to_it(cache: Path, tmp_path: Path) -> None:
    said = [(f"the {noun} was {word} .", (label,)) for noun in NOUNS for word, label in TOLD]
    good = [example for example in said if example[1] == ("good",)]
    data = gather("mixed", {"train": said * 3, "valid": said, "test": good}, {"mood": None})
    run = train("style-vae", data, tmp_path / "style", style_size=2, content_size=3, **SMALL)
    with pytest.raises(Problem, match="all sentences of 'test' are good already"):
        measure.of_run(Subject(run), to="good")


def test_a_run_with_codes_that_reads_a_context_has_no_pivot(cache: Path, tmp_path: Path) -> None:
    """A context stands for x where there is no z alone; both rooms say the same of that."""
    data = talk()
    run = train("cvae", data, tmp_path / "cvae", given="context,act", latent=3, **SMALL)
    plain = train("seq2seq", data, tmp_path / "plain", **SMALL)
    assert [reads_pivot(one) for one in (run, plain)] == [False, True]
    assert transfer.reads_pivot is reads_pivot, "one predicate"
    with pytest.raises(Problem, match="reads a context, which these sentences have not"):
        measure.of_run(Subject(run))


def test_on_the_grammar_the_right_answer_is_known(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classifier, "EPOCHS", 0)
    monkeypatch.setattr(measure, "judge", lambda data, label: Always())
    run = train("style-ae", "sentences", tmp_path / "run", label="tense", style_size=1, content_size=3, **SMALL)
    future = lambda x, *said, **more: [measure.exact.answer(s, "tense", 2) or "" for s in x]  # noqa: E731
    monkeypatch.setattr(run, "transfer", future)
    monkeypatch.setattr(run, "reconstruct", lambda batch: run.data.sentences(batch.index))
    monkeypatch.setattr(measure.vectors, "trained", lambda texts: measure.vectors.Vectors("none", {}, np.zeros((0, 2))))
    monkeypatch.setattr(measure, "KneserNey", lambda texts, order: Fluent())
    monkeypatch.setattr(measure, "style_words", lambda *said: [])
    found = measure.of_run(Subject(run), most=60)
    present = np.mean(run.data.labels[run.split("test", 60).rows, 2] == 1)  # to whom the future is the next tense
    assert found["transfer_exact"].value == found["transfer_flipped"].value == pytest.approx(present)
    assert found["transfer_parses"].value == found["transfer_kept"].value == 1
    assert found["transfer_exact_reconstructed"].value == found["transfer_exact"].value
    assert found["transfer_exact"].parts["beside"] == {COPY: 0.0, RIGHT: 1.0}


class Always:
    """A judge of one mind."""

    about: dict[str, Any] = {}  # noqa: RUF012

    def predict(self, sentences: list[str]) -> Any:
        return np.zeros(len(sentences), np.int64)


class Fluent:
    """A language model to which all is the same."""

    ids: dict[str, int] = {}  # noqa: RUF012
    order = 5

    def score(self, sentences: list[str]) -> Any:
        n = len(sentences)
        return type(
            "S", (), {"nats": np.ones(n), "tokens": np.ones(n, np.int64), "perplexity": lambda self: (2.0, 0.1)}
        )()


def test_the_report_shows_pairs_and_blocks(run: Run) -> None:
    shown = {exhibit.name: exhibit for exhibit in gallery(run, 40)}
    pairs = shown["transfer"].sentences
    assert {(a.split(":")[0], b.split(":")[0]) for a, b in pairs} == {("bad", "good"), ("good", "bad")}
    assert shown["blocks"].figure is not None, shown["blocks"].reason
    titles = [ax.get_title(loc="left") for ax in shown["blocks"].figure.axes]
    assert [title.split(":")[0] for title in titles] == ["style", "content"]


def test_of_several_styles_the_report_shows_each(tmp_path: Path) -> None:
    lines = [
        f"{mood}\t{tense}\tthe soup {verb} {mood}"
        for mood in ("bad", "good")
        for tense, verb in (("now", "is"), ("then", "was"))
    ]
    (tmp_path / "notes.tsv").write_text("mood\ttense\ttext\n" + "".join(f"{line}\n" for line in lines * 15))
    sizes = {"style_size": 2, "content_size": 3, "embed": 6, "hidden": 6, "mul_content": 0.0, "adv_content": 0.0}
    run = train(
        "style-vae",
        tmp_path / "notes.tsv",
        tmp_path / "run",
        label="mood,tense",
        label_column="mood,tense",
        text_column="text",
        steps=3,
        threads=1,
        **sizes,
    )
    shown = {exhibit.name: exhibit for exhibit in gallery(run, 40)}
    said = [a.split(": ") for a, _ in shown["transfer"].sentences]
    assert {value for value, _ in said} == {"bad", "good", "now", "then"}
    telling = {"bad": " bad", "good": " good", "now": " is ", "then": " was "}
    assert all(telling[value] in text for value, text in said), "each stands under the value that it has"
    assert shown["blocks"].figure is not None, shown["blocks"].reason
    titles = [ax.get_title(loc="left") for ax in shown["blocks"].figure.axes]
    assert [title.split()[-2] for title in titles] == ["mood"] * 3 + ["tense"] * 3


def test_of_images_the_report_shows_each_in_every_style(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "spots.npz", x=rng.integers(0, 256, (60, 8, 8), np.uint8), y=np.arange(60) % 3)
    run = train("style-vae", tmp_path / "spots.npz", tmp_path / "run", steps=3, threads=1)
    shown = {exhibit.name: exhibit for exhibit in gallery(run, 40)}
    assert shown["transfer"].figure is not None, shown["transfer"].reason
    words = {text.get_text() for ax in shown["transfer"].figure.axes for text in ax.texts} | {
        text.get_text() for text in shown["transfer"].figure.texts
    }
    assert {"input", "0", "2"} <= words, words


def test_a_report_has_both_ends_of_the_scale_beside_a_measure() -> None:
    entry = {"value": 0.75, "estimator": "a judge", "parts": {"beside": {"copy of the input": 0.25, "human": None}}}
    (row,) = table({"run": {"method": "x"}, "transfer_accuracy": entry})
    assert row.notes == ("copy of the input 0.25",)


def test_a_sheet_is_written_of_runs(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from elboroom.runs import sheet

    key = sheet.write(tmp_path / "sheet.csv", {"one": run, "two": run}, n=5)
    assert len(json.loads(key.read_text())) == 10
    done = elbo("eval", "--score", tmp_path / "sheet.csv")
    assert done.returncode == 2
    assert "has no judgement yet" in done.stderr
    assert "which run?" in elbo("eval").stderr
