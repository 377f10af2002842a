"""Dialogues of one's own: rows that belong together are held out together; a TAB stands between two turns."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from shell import elbo

from elboroom.core.problem import Problem
from elboroom.data.dataset import SEED, DataSet
from elboroom.data.registry import load
from elboroom.data.sequences import alternating
from elboroom.data.text import Reading

TALK = Reading(context_column="context")


def table(path: Path, *rows: tuple[str, ...], names: tuple[str, ...] = ("text", "context")) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    return path


def dialogues(path: Path, number: int = 20, turns: int = 4) -> Path:
    """Every turn of some dialogues, with all before it."""
    said = [[f"opening {d}", *(f"turn {t} of {d}" for t in range(1, turns))] for d in range(number)]
    entries = [{"text": talk[t], "context": talk[:t], "id": d} for d, talk in enumerate(said) for t in range(turns)]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


def of_splits(data: DataSet) -> dict[str, set[str]]:
    """The dialogue, which every turn of `dialogues` ends in, of the rows of each split."""
    return {split: {text.split()[-1] for text in data.sentences(rows)} for split, rows in data.splits.items()}


@pytest.mark.filterwarnings("ignore:.*empty context:UserWarning")
def test_turns_of_one_dialogue_are_held_out_together(tmp_path: Path) -> None:
    data = load(dialogues(tmp_path / "a.jsonl"), reading=TALK).hold_out(0.1).hold_out(0.1, "valid")
    assert [len(data.splits[name]) for name in ("train", "test", "valid")] == [68, 8, 4]
    train, test, valid = (of_splits(data)[name] for name in ("train", "test", "valid"))
    assert not train & test
    assert not train & valid
    assert not test & valid


def test_the_targets_of_one_source_are_held_out_together(tmp_path: Path) -> None:
    (tmp_path / "train.src").write_text("".join(f"source {n}\n" * 5 for n in range(20)))
    (tmp_path / "train.tgt").write_text("".join(f"target {k} of {n}\n" for n in range(20) for k in range(5)))
    data = load(tmp_path).hold_out(0.1)
    assert len(data.splits["test"]) == 10
    assert not of_splits(data)["train"] & of_splits(data)["test"]
    path = table(tmp_path / "a.csv", *((f"a {n}", f"b {k}") for n in range(20) for k in range(5)), names=("text", "to"))
    data = load(path, reading=Reading(target_column="to")).hold_out(0.1)
    assert not of_splits(data)["train"] & of_splits(data)["test"]


def test_a_column_says_which_rows_belong_together(tmp_path: Path) -> None:
    rows = [(f"turn {t}", f"what was said in turn {t - 1}", f"{d}") for d in range(20) for t in range(1, 5)]
    path = table(tmp_path / "a.csv", *rows, names=("text", "context", "talk"))
    reading = Reading(context_column="context", dialogue_column="talk")
    data = load(path, reading=reading).hold_out(0.1)
    assert sorted(len(split) for split in data.splits.values()) == [8, 72]
    assert not {int(row) // 4 for row in data.splits["train"]} & {int(row) // 4 for row in data.splits["test"]}
    assert data.about.labels == {}
    alone = load(path, reading=Reading(text_column="text", dialogue_column="talk")).hold_out(0.1)
    assert alone.split_hash == data.split_hash
    with pytest.raises(Problem, match="has no dialogue column 'tlak'"):
        load(path, reading=Reading(text_column="text", dialogue_column="tlak"))
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    with pytest.raises(Problem, match="--dialogue-column is for"):
        load(tmp_path / "a.txt", reading=Reading(dialogue_column="talk"))
    with pytest.raises(Problem, match="columns of sentences are fixed"):
        load("sentences", reading=Reading(dialogue_column="talk"))


def test_rows_that_stand_alone_are_held_out_as_they_always_were(tmp_path: Path) -> None:
    rows = [(f"answer {n}", f"question {n}") for n in range(50)]
    wanted = np.sort(np.random.default_rng(SEED).permutation(50)[:5])
    plain = load(table(tmp_path / "a.csv", *rows), reading=Reading(text_column="text")).hold_out(0.1)
    asked = load(tmp_path / "a.csv", reading=TALK).hold_out(0.1)
    assert plain.splits["test"].tolist() == asked.splits["test"].tolist() == wanted.tolist()


def test_one_dialogue_cannot_be_parted(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", *((f"answer {n}", "hello\thow are you") for n in range(50)))
    with pytest.raises(Problem, match=r"has 1 dialogue, .* so none can be held out"):
        load(path, reading=TALK).hold_out(0.1)
    path = table(tmp_path / "b.csv", *((f"answer {n}", f"hello {n < 30}") for n in range(50)))
    assert len(load(path, reading=TALK).hold_out(0.1).splits["test"]) == 20, "the smallest that there is"


def test_an_empty_context_is_read_and_told(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", ("hello there", ""), ("hi", "hello there"), ("yes", " "))
    with pytest.warns(UserWarning, match=r"a\.csv': rows with an empty context.*: 2") as told:
        data = load(path, reading=TALK)
    assert len(told) == 1
    assert data.turns("context", np.arange(3)) == [[], ["hello there"], []]


def test_a_tab_stands_between_two_turns(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", ("fine", "hi\thow are you"), ("so long", "bye"))
    (tmp_path / "a.jsonl").write_text(
        json.dumps({"text": "fine", "context": "hi\thow are you"}) + "\n" + '{"text": "so long", "context": "bye"}\n'
    )
    (tmp_path / "pairs").mkdir()
    (tmp_path / "pairs" / "train.src").write_text("hi\thow are you\nbye\n")
    (tmp_path / "pairs" / "train.tgt").write_text("fine\nso long\n")
    for name in ("a.csv", "a.jsonl", "pairs"):
        data = load(tmp_path / name, reading=Reading() if name == "pairs" else TALK)
        assert data.turns("context", np.arange(2)) == [["hi", "how are you"], ["bye"]]
        assert data.about.sequences["context"].turns == 2


def test_data_show_tells_how_many_turns(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", ("fine", "hi | how are you | and you"), ("so long", "bye"))
    said = ["data", "show", path, "--context-column", "context"]
    code, out, _ = elbo(*said, "--turn-separator", "|", "--json")
    assert code == 0
    assert json.loads(out)["sequences"]["context"]["turns"] == 3
    assert "most turns" in elbo(*said)[1]


@pytest.mark.parametrize(
    ("turns", "left"),
    [
        (["a", "b", "c"], ["a", "b", "c"]),
        (["a", "", "c"], ["a c"]),
        (["a", " ", "", "d"], ["a", "d"]),
        (["", "b"], ["b"]),
        ([], []),
    ],
)
def test_who_speaks_is_kept_where_a_turn_is_blank(turns: list[str], left: list[str]) -> None:
    assert alternating(turns) == left
