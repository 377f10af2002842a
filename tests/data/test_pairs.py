"""Corpora with a context: on the real files, and by hand."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from elboroom.core.problem import Problem
from elboroom.data import pairs, registry
from elboroom.data.corpora import TURN
from elboroom.data.dataset import DataSet
from elboroom.data.text import Reading


def rows(data: DataSet, split: str) -> list[tuple[list[str], str]]:
    index = data.splits[split]
    return list(zip(data.turns("context", index), data.sentences(index), strict=True))


def dialogues(folder: Path, split: str, *said: list[str]) -> None:
    with zipfile.ZipFile(folder / f"{split}.zip", "w") as archive:
        for what, line in (("", None), ("act_", "1"), ("emotion_", "0")):
            texts = (
                " ".join(f"{turn} {TURN}" for turn in turns) if line is None else " ".join([line] * len(turns))
                for turns in said
            )
            archive.writestr(f"{split}/dialogues_{what}{split}.txt", "".join(f"{text}\n" for text in texts))


def test_replies_have_the_turns_before_them(tmp_path: Path) -> None:
    long = " ".join(["Very"] * 50)
    dialogues(tmp_path, "train", [long, "A", "B", "C", "D", "E", "F", "G"], ["Hi .", "Hello !"])
    dialogues(tmp_path, "validation", ["hi .", "HELLO !"], ["New .", "Indeed ."])
    dialogues(tmp_path, "test", ["Bye .", "So long ."])
    data = pairs.dailydialog_replies(tmp_path)
    train = rows(data, "train")
    assert train[0] == ([" ".join(["very"] * 40)], "a")
    assert train[4] == ([" ".join(["very"] * 40), "a", "b", "c", "d"], "e")
    assert train[6] == (["b", "c", "d", "e", "f"], "g")
    assert train[7] == (["hi ."], "hello !")
    assert rows(data, "valid") == [(["new ."], "indeed .")], "a dialogue of train is left out, whatever its case"
    assert data.about.sequences["context"].turns == 5
    assert data.about.labels == {"act": 4, "emotion": 7}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*left out sentences:UserWarning")
def test_turns_of_dailydialog(real: Path) -> None:
    data = registry.load("dailydialog-replies")
    found = rows(data, "valid")
    assert max(len(turn.split()) for turns, _ in found for turn in turns) == 40
    assert max(len(turns) for turns, _ in found) == 5
    assert all(turns for turns, _ in found)


@pytest.mark.unhurried
def test_translations_have_two_vocabularies(real: Path) -> None:
    there, back = registry.load("multi30k-en-fr"), registry.load("multi30k-fr-en")
    assert (there.about.levels, there.about.sequences["context"].size) == (11_223, 10_214)
    assert not there.about.sequences["context"].shared
    (english,), french = rows(there, "test")[0]
    assert rows(back, "test")[0] == ([french], english)


@pytest.mark.unhurried
def test_simplifications_are_split_by_source(real: Path) -> None:
    for name, references in (("turkcorpus", 8), ("asset", 10)):
        data = registry.load(name)
        sources = {split: {turns[0] for turns, _ in rows(data, split)} for split in data.splits}
        assert not sources["train"] & sources["valid"]
        assert not sources["train"] & sources["test"]
        assert len(data.splits["test"]) == 359 * references


def test_a_folder_of_paired_lines(tmp_path: Path) -> None:
    (tmp_path / "train.src").write_text("a b\nc\n\nd\n")
    (tmp_path / "train.tgt").write_text("A\nB C\n\nD\n")
    (tmp_path / "dev.src").write_text("a\n")
    (tmp_path / "dev.tgt").write_text("A")
    data = registry.load(tmp_path)
    assert rows(data, "train") == [(["a b"], "A"), (["c"], "B C"), (["d"], "D")]
    assert rows(data, "valid") == [(["a"], "A")]
    assert data.holdout > 0
    assert registry.load(tmp_path, reading=Reading(own_vocabulary="context")).about.sequences["context"].size == 8
    (tmp_path / "train.tgt").write_text("A\nB C\n")
    with pytest.raises(Problem, match=r"train\.src has 4 lines and .*train\.tgt has 2; they must be pairs"):
        registry.load(tmp_path)
    (tmp_path / "train.tgt").write_text("A\n\n\nD\n")
    with pytest.raises(Problem, match=r"line 2 of .*train\.tgt is blank"):
        registry.load(tmp_path)
    (tmp_path / "train.tgt").unlink()
    with pytest.raises(Problem, match=r"train\.tgt is missing"):
        registry.load(tmp_path)


def test_turns_of_a_table_by_a_separator(tmp_path: Path) -> None:
    path = tmp_path / "talk.tsv"
    path.write_text("context\ttext\nhi ||| how are you ?\tfine\nbye\tso long\n")
    data = registry.load(path, reading=Reading(context_column="context", turn_separator="|||"))
    assert data.turns("context", np.arange(2)) == [["hi", "how are you ?"], ["bye"]]
    with pytest.raises(Problem, match="--turn-separator is for contexts"):
        registry.load(path, reading=Reading(text_column="text", turn_separator="|||"))
