"""What can be asked of a model of sentences, from Python and at the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import elboroom
from elboroom.cli import app
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.runs import measure
from elboroom.runs.run import Run

SMALL: dict[str, Any] = {"steps": 6, "batch_size": 16, "latent": 3, "embed": 4, "hidden": 4, "threads": 1}
A, B, C = ["w1 w2 w3"], ["w4 w5"], ["w6 w7 w8 w9"]


@pytest.fixture(scope="module")
def run(sentences: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return elboroom.train("vae", sentences, tmp_path_factory.mktemp("plain") / "run", **SMALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a file, conditional on its label."""
    home = tmp_path_factory.mktemp("file")
    lines = [f"{y}\tthe {a} {b}" for y, a in (("good", "fine"), ("bad", "poor")) for b in ("dog", "cat", "man", "day")]
    (home / "notes.txt").write_text("\n".join(lines * 4), encoding="utf-8")
    elboroom.train("vae", home / "notes.txt", home / "run", given="label", **SMALL)
    return home / "run"


def said(*words: str) -> Any:
    found = CliRunner().invoke(app, [*words, "--json"])
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


def refused(*words: str) -> str:
    found = CliRunner().invoke(app, list(words))
    return str(found.exception) if found.exception else found.output


def test_an_analogy_adds_the_difference_of_two_codes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, three = (run.encode(x) for x in (A, B, C))
    asked: list[Any] = []
    monkeypatch.setattr(run, "decode", lambda z, *_: asked.append(z))
    run.analogy(A, B, C, strength=1.5)
    run.analogy(A, A, C)
    run.analogy(A, B, C, strength=0.0)
    np.testing.assert_allclose(asked[0], three + 1.5 * (one - two), rtol=1e-6)
    assert not np.allclose(asked[0], three, rtol=0.05, atol=0)
    np.testing.assert_array_equal(asked[1], three)
    np.testing.assert_array_equal(asked[2], three)


def test_an_analogy_of_nothing_is_a_reconstruction(run: Run) -> None:
    assert run.analogy(A, A, C) == run.analogy(A, B, C, strength=0.0) == run.reconstruct(C)
    with pytest.raises(Problem, match="finite"):
        run.analogy(A, B, C, strength=float("nan"))
    with pytest.raises(Problem, match="finite"):
        run.traverse(A, reach=float("inf"))


def test_a_language_model_encodes_nothing(sentences: DataSet, tmp_path: Path) -> None:
    lm = elboroom.train("lm", sentences, tmp_path / "lm", **{k: v for k, v in SMALL.items() if k != "latent"})
    assert len(lm.sample(3)) == 3
    for ask in (
        lambda: lm.encode(A),
        lambda: lm.reconstruct(A),
        lambda: lm.interpolate(A, B),
        lambda: lm.analogy(A, B, C),
        lambda: lm.traverse(A),
    ):
        with pytest.raises(Problem, match="lm has no z"):
            ask()


def test_an_empty_sentence_is_refused(run: Run) -> None:
    for nothing in ([""], [" "], ["w1", ""]):
        with pytest.raises(Problem, match="empty"):
            run.encode(nothing)


def test_labels_are_said_by_name(folder: Path) -> None:
    run = elboroom.load(folder)
    names = run.spec.data["classes"]["label"]
    for number, name in enumerate(names):
        assert run.labelled(2, label=name).tolist() == [[float(i == number) for i in range(2)]] * 2
    with pytest.raises(Problem, match=r"label has no value .ugly.; it has"):
        run.labelled(label="ugly")
    with pytest.raises(Problem, match="not conditional on tense"):
        run.labelled(label="good", tense="past")
    with pytest.raises(Problem, match="set label too"):
        run.labelled()
    batch = run.examples(3)
    assert run.reconstruct(batch, run.labelled(3, label="bad")) == run.decode(
        run.encode(batch, run.labelled(3, label="bad")), run.labelled(3, label="bad")
    )


def test_a_conditional_model_takes_sentences_at_the_command_line(folder: Path) -> None:
    run, words = elboroom.load(folder), "the fine dog"
    for name in ("good", "bad"):
        u = run.labelled(label=name)
        found = said("reconstruct", str(folder), words, "--as", f"label={name}")
        assert found == [[words, run.reconstruct([words], u)[0]]]
        way = said("interpolate", str(folder), words, "the poor cat", "--points", "3", "--as", f"label={name}")
        assert way == run.interpolate([words], ["the poor cat"], 3, u=u)
        made = said("analogy", str(folder), words, "the poor dog", "the poor cat", "--as", f"label={name}")
        assert made == [run.analogy([words], ["the poor dog"], ["the poor cat"], u=u)]
        assert said("sample", str(folder), "--n", "2", "--as", f"label={name}") == [
            [line] for line in run.sample(2, u=run.labelled(2, label=name))
        ]
    assert "--as label=..." in refused("reconstruct", str(folder), words)
    assert "LABEL=VALUE" in refused("reconstruct", str(folder), words, "--as", "good")
    assert "ugly" in refused("reconstruct", str(folder), words, "--as", "label=ugly")


def test_moves_are_labelled_at_the_command_line(folder: Path) -> None:
    told = (
        CliRunner().invoke(app, ["traverse", str(folder), "the fine dog", "--as", "label=good", "--points", "3"]).output
    )
    assert sorted(line for line in told.splitlines() if line.startswith("z")) == ["z0", "z1", "z2"]
    assert [line.split("  ")[0] for line in told.splitlines()[1:4]] == ["-3.00", "+0.00", "+3.00"]
    way = ["interpolate", str(folder), "the fine dog", "the poor cat", "--as", "label=good", "--points", "2"]
    told = CliRunner().invoke(app, way).output
    assert told.splitlines()[:2] == ["from: the fine dog", "to:   the poor cat"]
    assert [line.split("  ")[0] for line in told.splitlines()[2:]] == ["0.00", "1.00"]
    assert "--spherical has no effect" not in told
    assert "above 0" in refused("traverse", str(folder), "--reach", "-1")


def test_words_that_it_does_not_know_are_shown_as_it_reads_them(folder: Path) -> None:
    found = said("reconstruct", str(folder), "the zebra dog", "--as", "label=good")
    assert found[0][0] == "the <unk> dog"


def test_a_run_on_a_file_is_used_from_anywhere(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    made = elboroom.train("vae", "notes.txt", "beside", **SMALL)
    monkeypatch.chdir(tmp_path)
    again = elboroom.load(folder.parent / "beside")
    assert again.data.hash == made.data.hash
    assert again.data.about.name == again.spec.about.name == str(folder.parent / "notes.txt")
    assert again.elbo("test").value == pytest.approx(made.elbo("test").value)


def test_measures_of_text_say_what_they_were_made_of(run: Run) -> None:
    found = measure.metrics(run, "text", sentences=40, most=10)
    wanted = {"data", "split", "n", "seed", "rows", "hash", "tokeniser", "tokens", "decoding", "protocol"}
    for name in ("bleu", "dis_1", "self_bleu_2", "unigram_kl", "forward_ppl"):
        assert wanted <= set(found[name]["settings"]), name
    assert found["dis_1"]["settings"]["samples"] == 40


def test_rows_that_differ_have_another_digest(sentences: DataSet, tmp_path: Path) -> None:
    options = {k: v for k, v in SMALL.items() if k != "steps"}
    digests = []
    for share in (0.1, 0.3):
        made = elboroom.train("vae", sentences, tmp_path / str(share), steps=1, holdout=share, **options)
        digests.append(made.split("test").settings["rows"])
        assert made.split("test").settings["rows"] == digests[-1]
        assert made.split("train").settings["rows"] != digests[-1]
    assert digests[0] != digests[1]


@pytest.fixture(scope="module")
def hesitant(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on text of which nearly every word is unknown."""
    home = tmp_path_factory.mktemp("unknown")
    (home / "rare.txt").write_text("\n".join(["a\t<unk> <unk> the <unk> dog", "b\t<unk> <unk> the <unk> dog"] * 20), encoding="utf-8")
    elboroom.train("vae", home / "rare.txt", home / "run", **SMALL | {"steps": 60, "lr": 0.1})
    return home / "run"


@pytest.mark.parametrize(
    "words",
    [
        ("sample",),
        ("reconstruct", "the dog"),
        ("traverse", "dog"),
        ("interpolate", "the", "dog"),
        ("analogy", "the", "the", "dog"),
        ("edit", "the dog", "--to", "b"),
        ("transfer", "the dog", "--to", "b", "--by", "offset"),
    ],
)
def test_unknown_words_are_written_only_if_asked(hesitant: Path, words: tuple[str, ...]) -> None:
    verb, *more = words
    assert "<unk>" not in str(said(verb, str(hesitant), *more)), "nor is it in what is given"
    assert "<unk>" in str(said(verb, str(hesitant), *more, "--allow-unk"))


def test_a_measure_of_text_may_write_unknown_words(hesitant: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real text has them, and it is compared with real text."""
    run, asked = elboroom.load(hesitant), []
    for verb in ("sample", "reconstruct"):
        own = getattr(run, verb)
        monkeypatch.setattr(
            run, verb, lambda *given, own=own, **how: asked.append(how["decoding"]) or own(*given, **how)
        )
    measure.metrics(run, "text", sentences=20)
    assert [decoding.unknown for decoding in asked] == [True, True]
