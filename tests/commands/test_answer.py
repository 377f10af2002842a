"""elbo generate and elbo chat, with what is typed, read from a file and piped in."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elboroom
from elboroom.cli import app
from elboroom.commands import train
from elboroom.core.problem import Problem

Said = Callable[..., str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place, rng = tmp_path_factory.mktemp("talk"), np.random.default_rng(0)
    said = [[" ".join(rng.choice(list("abcdef"), 3)) for _ in range(3)] for _ in range(40)]
    lines = (json.dumps({"text": t[0], "context": t[1 : 2 + i % 2]}) + "\n" for i, t in enumerate(said))
    (place / "talk.jsonl").write_text("".join(lines))
    options: dict[str, Any] = {"steps": 2, "batch_size": 8, "latent": 3, "embed": 6, "hidden": 8, "threads": 1}
    elboroom.train("cvae", str(place / "talk.jsonl"), place / "run", **options, context_column="context")
    return place / "run"


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Said:
    def run(*words: str, typed: str = "") -> str:
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        app(list(words), standalone_mode=False)
        return capsys.readouterr().out

    return run


def test_ten_replies_to_a_text(folder: Path, said: Said) -> None:
    made = said("generate", str(folder), "a b")
    assert len(made.splitlines()) == 10
    assert made == said("generate", str(folder), "a b") != said("generate", str(folder), "a b", "--seed", "1")
    assert len(json.loads(said("generate", str(folder), "a\tb", "--n", "2", "--json"))[0]) == 2
    assert said("generate", str(folder), "a b", "--n", "1", "--beam", "2").count("\n") == 1


def test_contexts_of_a_file_and_of_standard_input(folder: Path, said: Said, tmp_path: Path) -> None:
    lines = "a b\nc\td e\n"
    (tmp_path / "some.txt").write_text(lines)
    made = json.loads(said("generate", str(folder), "--file", str(tmp_path / "some.txt"), "--n", "3", "--json"))
    assert [len(row) for row in made] == [3, 3]
    assert json.loads(said("generate", str(folder), "-", "--n", "3", "--json", typed=lines)) == made


def test_a_chat_keeps_its_turns(folder: Path, said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    plain = elboroom.Run.generate

    def noted(self: elboroom.Run, context: Any, *more: Any) -> Any:
        seen.append(list(context))
        return plain(self, context, *more)

    monkeypatch.setattr(elboroom.Run, "generate", noted)
    answers = said("chat", str(folder), "--top-p", "0.9", typed="a b\nc\n\nd\n").split("\n")
    assert seen == [["a b"], [answers[0], "c"], ["d"]], (
        "two turns are what this model has seen; a blank line begins anew"
    )
    assert len(answers) == 4


def test_what_cannot_be_answered(folder: Path, said: Said, tmp_path: Path, sentences: Any) -> None:
    with pytest.raises(Problem, match="say what is to be answered"):
        said("generate", str(folder))
    with pytest.raises(Problem, match="standard input is empty"):
        said("generate", str(folder), "-")
    with pytest.warns(UserWarning, match="a context is empty"):
        said("generate", str(folder), "")
    with pytest.warns(UserWarning, match="knows no word"):
        said("generate", str(folder), "Hello")
    options: dict[str, Any] = {"steps": 1, "batch_size": 8, "embed": 6, "hidden": 8, "threads": 1}
    elboroom.train("lm", sentences, tmp_path / "lm", **options)
    run = elboroom.load(tmp_path / "lm", data=sentences)
    with pytest.raises(Problem, match="reads no context, so it cannot answer"):
        run.generate("a")


def test_the_end_of_a_training_names_generate(folder: Path) -> None:
    assert train._own(elboroom.load(folder)) == [f'elbo generate {folder} "YOUR TEXT"']
