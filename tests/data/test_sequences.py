"""Contexts and paired targets: read from tables, kept as tokens beside x, gathered by index."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from shell import elbo

from elboroom.core.problem import Problem
from elboroom.core.vocabulary import END, PAD, START
from elboroom.data.arrays import dataset
from elboroom.data.dataset import About, DataSet, Reals
from elboroom.data.registry import load
from elboroom.data.sequences import Beside, turns_of
from elboroom.data.stores import Ragged
from elboroom.data.text import Reading
from elboroom.data.tokens import Words
from elboroom.training.batches import batch_of

TALK: list[dict[str, Any]] = [
    {"text": "fine and you", "context": ["hello there", "how are you"], "reply": "good"},
    {"text": "hello there", "context": [], "reply": "how do you do"},
    {"text": "no way", "context": "is it so", "reply": "yes it is so indeed"},
    {"text": "well then", "context": ["one", "two words", "three words now"], "reply": "then well"},
]
COLUMNS = {"context_column": "context", "target_column": "reply"}


def written(folder: Path, entries: list[dict[str, Any]] = TALK, name: str = "talk.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


@pytest.mark.parametrize("tokens", ["words", "bytes", "bpe"])
@pytest.mark.parametrize("own", ["", "context", "context,target"])
def test_turns_are_told_apart_and_come_back(tmp_path: Path, tokens: str, own: str) -> None:
    data = load(written(tmp_path), reading=Reading(tokens=tokens, own_vocabulary=own, **COLUMNS))  # type: ignore[arg-type]
    rows = np.array([3, 1, 0, 2])
    assert data.beside["context"].turns(rows) == [
        ["one", "two words", "three words now"],
        [],
        ["hello there", "how are you"],
        ["is it so"],
    ]
    assert data.beside["target"].turns(rows) == [[TALK[row]["reply"]] for row in rows]
    assert [data.beside[name].shared for name in ("context", "target")] == [
        "context" not in own,
        "target" not in own,
    ]
    assert (data.beside["context"].tokeniser is data.tokeniser) == ("context" not in own)


def test_a_batch_has_what_is_beside_its_rows(tmp_path: Path) -> None:
    data = load(written(tmp_path), reading=Reading(**COLUMNS))  # type: ignore[arg-type]
    assert [(f.name, f.kind) for f in data.fields.values()] == [("context", "sequence"), ("target", "sequence")]
    batch = batch_of(data, np.array([1, 0]), ())
    assert batch.context is not None
    assert batch.context_lengths is not None
    assert batch.context[0].tolist() == [START, END, *[PAD] * 6]  # nothing was said before
    assert (batch.context[1] == END).nonzero().flatten().tolist() == [3, 7]
    assert batch.context_lengths.tolist() == [1, 7]
    assert [len(turn) for turn in turns_of(batch.context[1])] == [2, 3]
    paired = batch.paired()
    assert paired.x is batch.target
    assert paired.lengths is batch.target_lengths
    assert data.tokeniser is not None
    assert data.tokeniser.decode(paired.x[0].tolist()) == "how do you do"
    with pytest.raises(Problem, match="--target-column"):
        paired.paired()


def test_a_shared_vocabulary_is_learnt_from_both_and_an_own_one_from_its_side(tmp_path: Path) -> None:
    shared = load(written(tmp_path), reading=Reading(**COLUMNS))  # type: ignore[arg-type]
    own = load(written(tmp_path), reading=Reading(own_vocabulary="context", **COLUMNS))  # type: ignore[arg-type]
    assert isinstance(shared.tokeniser, Words)
    assert {"fine", "indeed", "hello", "three"} <= set(shared.tokeniser.words)
    words = own.beside["context"].tokeniser
    assert isinstance(words, Words)
    assert isinstance(own.tokeniser, Words)
    assert "three" in words.words
    assert "fine" not in words.words
    assert "three" not in own.tokeniser.words
    assert own.about.sequences["context"].size == words.size
    assert About.from_json(json.loads(json.dumps(own.about.to_json()))) == own.about


def test_what_is_held_out_has_no_say_in_the_vocabulary(tmp_path: Path) -> None:
    entries = [{"text": f"a b w{i}", "context": [f"c d v{i}"], "reply": "a"} for i in range(20)]
    data = load(written(tmp_path, entries), reading=Reading(**COLUMNS)).hold_out(0.5)  # type: ignore[arg-type]
    assert isinstance(data.tokeniser, Words)
    for row in data.splits["test"]:
        assert f"v{row}" not in data.tokeniser.words
    for row in data.splits["train"]:
        assert f"v{row}" in data.tokeniser.words


def test_what_is_beside_is_in_the_hash(tmp_path: Path) -> None:
    plain = load(written(tmp_path), reading=Reading(text_column="text"))
    both = load(written(tmp_path), reading=Reading(text_column="text", **COLUMNS))  # type: ignore[arg-type]
    turned = [entry | {"context": ["hello", "there how are you"]} if i == 0 else entry for i, entry in enumerate(TALK)]
    other = load(written(tmp_path, turned), reading=Reading(text_column="text", **COLUMNS))  # type: ignore[arg-type]
    assert len({plain.hash, both.hash, other.hash}) == 3


def test_tables_too(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("from\tto\nein haus\ta house\nein hund\ta dog\nzwei\ttwo\n")
    data = load(path, reading=Reading(target_column="to"))
    assert data.sentences([1]) == ["ein hund"]
    assert data.beside["target"].turns(np.array([1])) == [["a dog"]]


@pytest.mark.parametrize(
    ("entries", "reading", "said"),
    [
        (TALK, {"target_column": "answer"}, "has no target column 'answer'"),
        (TALK, {"context_column": "contxt"}, "did you mean 'context'"),
        ([*TALK, {"text": "a", "context": ["b"]}], COLUMNS, "line 5 of .* has no value for 'reply'"),
        (
            [*TALK, {"text": "a", "context": ["b", 3], "reply": "c"}],
            COLUMNS,
            "has int in 'context', not a text or a list",
        ),
        ([*TALK, {"text": "a", "context": ["b", " "], "reply": "c"}], COLUMNS, "has a blank turn in 'context'"),
        ([*TALK, {"text": "a", "context": ["b"], "reply": ["c"]}], COLUMNS, "has list in 'reply', not text"),
        (TALK, {"own_vocabulary": "context", "text_column": "text"}, "has no context"),
        (TALK, {"own_vocabulary": "x", "text_column": "text"}, "unknown field of --own-vocabulary"),
        (TALK, {"label_column": "context", "context_column": "context"}, "both called 'context'"),
    ],
)
def test_what_is_missing_is_one_sentence(
    tmp_path: Path, entries: list[dict[str, Any]], reading: dict[str, str], said: str
) -> None:
    with pytest.raises(Problem, match=said):
        load(written(tmp_path, entries), reading=Reading(**reading)).about  # type: ignore[arg-type]  # noqa: B018


def test_data_show_tells_what_is_beside(tmp_path: Path) -> None:
    code, out, _ = elbo("data", "show", written(tmp_path), "--context-column", "context", "--target-column", "reply")
    assert code == 0
    table = out[out.index("vocabulary", out.index("sequence")) :]  # after what is told of the text
    assert "context" in table
    assert "target" in table


def test_plain_text_has_no_columns(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    with pytest.raises(Problem, match="--target-column is for"):
        load(tmp_path / "a.txt", reading=Reading(target_column="to"))


def test_long_turns_leave_their_row_out(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="left out sentences of more than 4 words"):
        data = load(written(tmp_path), reading=Reading(longest=4, **COLUMNS))  # type: ignore[arg-type]
    assert len(data) == 3


def test_any_data_can_have_a_sequence_beside_it() -> None:
    values = np.random.default_rng(0).normal(size=(3, 2)).astype(np.float32)
    words = Words(["a", "b"])
    store = Ragged(np.array([4, 5, 5], np.int32), np.array([0, 1, 1, 3]))
    plain = dataset(values)
    data = DataSet(plain.about, Reals(values), beside={"context": Beside(store, words, shared=False)})
    assert data.hash != plain.hash
    batch = batch_of(data.hold_out(0.34), np.array([2, 1]), ())
    assert batch.context is not None
    assert torch.equal(batch.context, torch.tensor([[START, 5, 5, END], [START, END, PAD, PAD]]))
    assert data.about.sequences["context"].longest == 3
    with pytest.raises(Problem, match="but 2 of context"):
        DataSet(plain.about, Reals(values), beside={"context": Beside(Ragged(store.ids, store.offsets[:-1]), words)})
