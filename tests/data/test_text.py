from __future__ import annotations

import json
import pickle
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from elboroom.core.problem import Problem
from elboroom.data import registry, text
from elboroom.data.dataset import About, DataSet, Ragged, runs
from elboroom.data.lines import LINE
from elboroom.data.text import Reading, gather
from elboroom.data.tokens import END, PAD, START, UNK, Words


def write(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


def few(*sentences: str) -> DataSet:
    return gather("few", {"train": [(sentence, ()) for sentence in sentences]})


# ---- rows


def test_runs_by_hand() -> None:
    assert runs(np.array([5, 0, 7]), np.array([2, 0, 3])).tolist() == [5, 6, 7, 8, 9]
    assert runs(np.array([], np.int64), np.array([], np.int64)).tolist() == []


def test_rows_have_markers_and_padding() -> None:
    data = few("a b c", "a", "b a")
    a, b, c = (data.tokeniser.encode(word)[0] for word in "abc")  # type: ignore[union-attr]
    x = data.x([0, 1, 2])
    assert x.dtype == torch.int64
    assert x.tolist() == [[START, a, b, c, END], [START, a, END, PAD, PAD], [START, b, a, END, PAD]]
    assert data.x([1]).tolist() == [[START, a, END]], "no longer than the longest of the batch"
    assert data.x(np.array([], np.int64)).shape == (0, 2)
    assert data.x([-1]).tolist() == [[START, b, a, END]]
    assert data.lengths([0, 1, 2]).tolist() == [4, 2, 3]
    assert torch.equal(data.lengths([2, 0]), (data.x([2, 0]) != PAD).sum(1) - 1)
    assert data.words.tolist() == [4, 2, 3]
    assert data.about == About("few", "tokens", (4,), 3, {}, 7)
    assert data.sentences([2, 0]) == ["b a", "a b c"]


def test_a_store_by_hand() -> None:
    store = Ragged(np.array([4, 5, 4], np.int32), np.array([0, 2, 3]))
    data = DataSet(About("own", "tokens", (3,), 2, {}, 6), store, tokeniser=Words(["a", "b"]))
    assert data.x([0, 1]).tolist() == [[1, 4, 5, 2], [1, 4, 2, 0]]
    assert (data.words.tolist(), data.sentences([1, 0])) == ([3, 2], ["a", "a b"])
    held = DataSet(data.about, Ragged(np.full(20, 4), np.arange(21)), tokeniser=data.tokeniser).hold_out(0.1)
    assert (held.tokeniser, len(held.splits["test"])) == (data.tokeniser, 2)
    bare = DataSet(data.about, store)
    with pytest.raises(Problem, match="has no tokeniser"):
        bare.sentences([0])
    images = registry.load(np.zeros((4, 3)))
    for ask in (lambda: images.words, lambda: images.lengths([0]), lambda: images.sentences([0])):
        with pytest.raises(Problem, match=r"is vectors, not text|has no tokeniser"):
            ask()


@pytest.mark.parametrize("tokens", ["words", "bpe", "bytes"])
def test_rows_are_what_the_tokeniser_says(tmp_path: Path, tokens: str) -> None:
    lines = ["the cat sat on the <unk> mat", "é", "<unk> first", "a  cat\tsat , he said", "the </s> mat <s> cat <pad>"]
    data = text.load(write(tmp_path / "a.txt", *lines), Reading(tokens=tokens, label_column="none"))
    assert data.tokeniser is not None
    for row, line in enumerate(lines):
        assert data.x([row])[0].tolist() == [START, *data.tokeniser.encode(line), END]
        assert data.sentences([row]) == [" ".join(line.split())] == [data.tokeniser.decode(data.x([row])[0])]
        assert data.words[row] == len(line.split()) + 1, "words and the end, whatever the tokens are"
    assert data.about.shape == (int(data.lengths(np.arange(5)).max()),)
    assert data.about.levels == data.tokeniser.size
    assert pickle.loads(pickle.dumps(data)).x([0]).tolist() == data.x([0]).tolist()


def test_spelling_in_parts_is_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.txt", *("a bc def g" for _ in range(9)), "x")
    whole = text.load(path, Reading(tokens="bytes"))
    monkeypatch.setattr(text, "WORDS", 5)
    parts = text.load(path, Reading(tokens="bytes"))
    assert torch.equal(whole.x(np.arange(10)), parts.x(np.arange(10)))


# ---- the vocabulary is that of the training split


def test_words_of_the_test_split_are_unknown(tmp_path: Path) -> None:
    write(tmp_path / "train.txt", "a b a", "b a")
    write(tmp_path / "test.txt", "a zebra <unk>", "zebra zebra b")
    data = registry.load(tmp_path)
    assert data.about.levels == 6
    assert data.x(data.splits["test"]).tolist() == [[1, 4, UNK, UNK, 2], [1, UNK, UNK, 5, 2]]
    assert data.sentences(data.splits["test"]) == ["a zebra <unk>", "zebra zebra b"], "as they were read"
    assert data.holdout == 0


@pytest.mark.parametrize("tokens", ["words", "bpe"])
def test_holding_out_learns_the_vocabulary_anew(tmp_path: Path, tokens: str) -> None:
    """Every sentence has a word of its own: those that are held out may not be in the vocabulary."""
    names = [chr(0x4E00 + k) * 3 for k in range(40)]  # nine bytes each
    path = write(tmp_path / "a.txt", *(f"we met {name} and {name} today" for name in names))
    data = registry.load(path, reading=Reading(tokens=tokens, vocabulary=1000 if tokens == "bpe" else 0, min_count=2))
    held = data.hold_out(data.holdout)
    assert (data.holdout, len(held.splits["test"])) == (0.1, 4)
    assert held.hash == data.hash
    assert held.tokeniser is not None
    for split, one in (("train", True), ("test", False)):
        for row in held.splits[split]:
            ids = held.tokeniser.encode(names[row])
            assert (len(ids) == 1 and ids != [UNK]) is one, names[row]
            assert held.x([row])[0].tolist() == [START, *held.tokeniser.encode(held.sentences([row])[0]), END]
    if tokens == "words":
        assert (data.about.levels, held.about.levels) == (4 + 44, 4 + 40)
    assert held.about.n == 36
    assert held.hold_out(0.25, "valid").about.levels < held.about.levels or tokens == "bpe"


def test_options_of_tokens(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "a a a b b c", "c b a d")
    assert registry.load(path, reading=Reading(min_count=2)).about.levels == 7
    assert registry.load(path, reading=Reading(vocabulary=6)).about.levels == 6
    assert registry.load(path, reading=Reading(tokens="bytes", vocabulary=260)).about.levels == 260
    with pytest.raises(Problem, match="bytes always has 260 ids, not 100"):
        registry.load(path, reading=Reading(tokens="bytes", vocabulary=100))
    with pytest.raises(Problem, match="--min-count has no effect"):
        registry.load(path, reading=Reading(tokens="bytes", min_count=2))


def test_hash_is_of_sentences_labels_splits_and_reading(tmp_path: Path) -> None:
    def hash_of(*lines: str, reading: Reading | None = None, test: int = 0) -> str:
        folder = tmp_path / "x"
        for old in folder.glob("*") if folder.exists() else ():
            old.unlink()
        write(folder / "train.txt", *lines[: len(lines) - test])
        if test:
            write(folder / "test.txt", *lines[len(lines) - test :])
        return registry.load(folder, reading=reading).hash

    lines = ("0\ta b", "1\tb a c", "0\tc", "1\tb")
    assert hash_of(*lines) == hash_of(*lines)
    hashes = [
        hash_of(*lines),
        hash_of("1\ta b", "0\tb a c", "1\tc", "0\tb"),
        hash_of("0\ta b", "1\tb a d", "0\td", "1\tb"),
        hash_of("0\ta b b", "1\ta c", "0\tc", "1\tb"),
        hash_of(*lines, reading=Reading(tokens="bytes")),
        hash_of(*lines, reading=Reading(min_count=2)),
        hash_of(*lines, test=1),
        hash_of(*lines, test=2),
    ]
    assert len(set(hashes)) == len(hashes)


# ---- labels


def test_label_tab_text_is_detected(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "pos\tgood food", "neg\tbad  food ", "", "pos\tgood", "neg\t bad")
    data = registry.load(path)
    assert (data.about.labels, data.classes) == ({"label": 2}, {"label": ("neg", "pos")})
    assert data.labels[:, 0].tolist() == [1, 0, 1, 0]
    assert data.sentences([0, 1]) == ["good food", "bad food"]
    assert data.u([0, 1], ["label"]).tolist() == [[0, 1], [1, 0]]
    named = registry.load(path, reading=Reading(label_column="mood"))
    assert named.about.labels == {"mood": 2}
    ignored = registry.load(path, reading=Reading(label_column="none"))
    assert (ignored.about.labels, ignored.sentences([0])) == ({}, ["pos good food"])
    held = data.hold_out(0.25)
    assert (held.classes, held.labels.tolist()) == (data.classes, data.labels.tolist())


def test_numbers_sort_as_numbers(tmp_path: Path) -> None:
    data = registry.load(write(tmp_path / "a.tsv", *(f"{k % 12}\tword{k}" for k in range(24))))
    assert data.classes["label"] == tuple(map(str, range(12)))
    assert data.labels[:, 0].tolist() == [k % 12 for k in range(24)]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["0\ta b", "c d", "1\te"], "line 2 of .* has no TAB, unlike line 1 of"),
        (["a b", "c d", "1\te"], "line 1 of .* has no TAB, unlike line 3 of"),
        (["0\ta\tb", "0\ta\tb"], "line 1 of .* has 2 TABs"),
        ([f"source {k}\ttarget" for k in range(9)], "too many distinct texts before it"),
        (["0\t", "1\tb"], "line 1 of .* has nothing after its TAB"),
        (["0\ta", "\tb"], "line 2 of .* has nothing before its TAB"),
    ],
)
def test_labels_that_are_none(tmp_path: Path, lines: list[str], said: str) -> None:
    with pytest.raises(Problem, match=said):
        registry.load(write(tmp_path / "a.txt", *lines))


def test_labels_that_do_not_match(tmp_path: Path) -> None:
    write(tmp_path / "train.txt", "0\ta b", "1\tc d", "0\te")
    write(tmp_path / "test.txt", "0\ta b", "2\tc d")
    with pytest.raises(Problem, match=r"the test split of .* has label '2', which no training example has"):
        registry.load(tmp_path)
    write(tmp_path / "test.txt", "a b")
    with pytest.raises(Problem, match=r"line 1 of .*test\.txt has no TAB, unlike line 1 of .*train\.txt"):
        registry.load(tmp_path)
    with pytest.raises(Problem, match=r"has no label 'mood'; labelled lines are label TAB text"):
        registry.load(tmp_path / "test.txt", reading=Reading(label_column="mood"))


# ---- tables and records

ROWS = [("good food", "pos", 1), ('she said "no" , twice', "neg", 0), ("good", "pos", 0)]


def table(path: Path) -> Path:
    if path.suffix == ".jsonl":
        return write(path, *(json.dumps({"id": 7, "review": t, "label": s, "star": n}) for t, s, n in ROWS), "")
    mark = "," if path.suffix == ".csv" else "\t"
    quoted = [t if mark == "\t" else '"' + t.replace('"', '""') + '"' for t, _, _ in ROWS]
    return write(
        path,
        mark.join(["id", "review", "label", "star"]),
        *(mark.join(["7", t, s, str(n)]) for t, (_, s, n) in zip(quoted, ROWS, strict=True)),
        "",
    )


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
def test_columns(tmp_path: Path, suffix: str) -> None:
    path = table(tmp_path / f"a.{suffix}")
    data = registry.load(path, reading=Reading(text_column="review"))
    assert data.sentences([0, 1, 2]) == [t for t, _, _ in ROWS]
    assert (data.classes, data.labels[:, 0].tolist()) == ({"label": ("neg", "pos")}, [1, 0, 1])
    data = registry.load(path, reading=Reading(text_column="review", label_column="star, label"))
    assert (data.about.labels, data.labels.tolist()) == ({"star": 2, "label": 2}, [[1, 1], [0, 0], [0, 1]])
    assert registry.load(path, reading=Reading(text_column="review", label_column="none")).about.labels == {}
    with pytest.raises(Problem, match="has no text column 'reviews'; did you mean 'review'"):
        registry.load(path, reading=Reading(text_column="reviews"))
    with pytest.raises(Problem, match="has no label column 'mood'; it has: id, review, label, star"):
        registry.load(path, reading=Reading(text_column="review", label_column="mood"))
    if suffix != "tsv":
        which = r"which column of .* is the text\?.* id, review, label, star|column review holds words.* --text-column"
        with pytest.raises(Problem, match=which):
            registry.load(path)


def test_columns_that_name_themselves(tmp_path: Path) -> None:
    assert registry.load(write(tmp_path / "a.csv", "only", "a b", "c d")).sentences([1]) == ["c d"]
    assert registry.load(write(tmp_path / "b.tsv", "sentence\tlabel", "a b\t1", "c\t0")).labels[:, 0].tolist() == [1, 0]
    quotes = registry.load(write(tmp_path / "d.tsv", "text\tlabel", '"a b\t1', "'c d\t0", 'e"\t1'))
    assert quotes.sentences([0, 1, 2]) == ['"a b', "'c d", 'e"'], "quotes are text in a .tsv file"
    assert registry.load(write(tmp_path / "c.csv", "id,text", '1,"a\nb"', "2,c")).sentences([0]) == ["a b"]


@pytest.mark.parametrize(
    ("name", "lines", "said"),
    [
        ("a.csv", ["text,label", "a b,1", "c d"], "line 3 of .* has 1 cells, but its header has 2"),
        ("a.csv", ["text,label", "a b,1", "c d,"], "line 3 of .* has no value for 'label'"),
        ("a.csv", ["text", '"a b', "c"], "cannot be read as a table"),
        ("a.csv", ["text,label"], "is empty; write a header and rows"),
        ("a.jsonl", ['{"text": "a"}', "{"], "line 2 of .* is not valid JSON"),
        ("a.json", ["[", '{"text": "a"}', "]"], "line 1 of .* is not valid JSON"),
        ("a.jsonl", ["[1, 2]"], "line 1 of .* is not an object"),
        ("a.jsonl", ['{"text": "a"}', '{"txt": "a"}'], "line 2 of .* has no value for 'text'"),
        ("a.jsonl", ['{"text": "a"}', '{"text": 3}'], "line 2 of .* has int in 'text', not text"),
    ],
)
def test_tables_that_are_wrong(tmp_path: Path, name: str, lines: list[str], said: str) -> None:
    with pytest.raises(Problem, match=said):
        registry.load(write(tmp_path / name, *lines))


def test_a_label_column_in_one_file_only(tmp_path: Path) -> None:
    write(tmp_path / "train.csv", "text,label", "a,1", "b,0")
    write(tmp_path / "test.csv", "text,other", "a,1")
    with pytest.raises(Problem, match=r"train\.csv has a column 'label' and .*test\.csv has none"):
        registry.load(tmp_path)
    assert registry.load(tmp_path, reading=Reading(label_column="none")).about.labels == {}


# ---- folders


@pytest.mark.parametrize("valid", ["valid", "val", "dev", "validation"])
def test_files_named_as_splits(tmp_path: Path, valid: str) -> None:
    write(tmp_path / "news.train.1.txt", "a b", "b c")
    write(tmp_path / "news.train.2.txt", "c d")
    write(tmp_path / f"news.{valid}.txt", "a")
    write(tmp_path / "test" / "news.txt", "b", "c")
    write(tmp_path / "README.txt", "not read")
    write(tmp_path / ".hidden" / "train.txt", "nor this")
    data = registry.load(tmp_path)
    assert {name: data.sentences(rows) for name, rows in data.splits.items()} == {
        "train": ["a b", "b c", "c d"],
        "valid": ["a"],
        "test": ["b", "c"],
    }
    assert data.about.name == str(tmp_path)


def test_other_files_together(tmp_path: Path) -> None:
    write(tmp_path / "b.txt", "c d")
    write(tmp_path / "a.txt", "a b", "b latest")
    data = registry.load(tmp_path)
    assert data.sentences([0, 1, 2]) == ["a b", "b latest", "c d"]
    assert (list(data.splits), data.holdout) == (["train"], 0.1)
    write(tmp_path / "test.txt", "a c")
    assert registry.load(tmp_path).sentences(registry.load(tmp_path).splits["test"]) == ["a c"]


def test_folders_that_are_wrong(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(Problem, match=r"has no images and no text"):
        registry.load(tmp_path / "empty")
    with pytest.raises(Problem, match=r"has no text files \(\.txt"):
        text.load(tmp_path / "empty")
    write(tmp_path / "a" / "test.txt", "a b")
    with pytest.raises(Problem, match=r"has test\.txt but no training file"):
        registry.load(tmp_path / "a")
    write(tmp_path / "b" / "train" / "test.txt", "a b")
    with pytest.raises(Problem, match=r"names more than one split \(test and train\)"):
        registry.load(tmp_path / "b")
    write(tmp_path / "c" / "train.txt", "a b")
    write(tmp_path / "c" / "test.csv", "text", "a b")
    with pytest.raises(Problem, match=r"is plain text but .* has columns"):
        registry.load(tmp_path / "c")


# ---- what files can be


def test_ends_of_lines_and_marks(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("\ufeffa b\r\n\r\n c\u2028d \x85 e\n\nlast".encode())
    assert registry.load(tmp_path / "a.txt").sentences([0, 1, 2]) == ["a b", "c d e", "last"]


def test_any_file_is_text_but_known_others(tmp_path: Path) -> None:
    assert len(registry.load(write(tmp_path / "captions.en", "a b", "c"))) == 2
    write(tmp_path / "a.png", "a b", "c")
    with pytest.raises(Problem, match=r"is not a folder of images, a \.npy"):
        registry.load(tmp_path / "a.png")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty; write one sentence per line"),
        (b"\n \n\n", "the train split of .* has no sentence"),
        (b"a lone sentence\n", "has 1 example; at least 2 are needed"),
        (b"word\n", "has 1 example"),
        (b"word\nword word\n", "too small: 1 of 1 words"),
        (b"a b\nc \xe9t\xe9\n", "is not UTF-8 text: byte 0xe9 at offset 6, in line 2"),
        ("a b\nc d\n".encode("utf-16"), "is not UTF-8 text: byte 0xff at offset 0, in line 1"),
        (b"a b\nc\0d\n", "NUL byte at offset 5, in line 2"),
        (b"a b\n" + b"word " * (LINE // 4), "line 2 of .* has more than 1,048,576 bytes; write one sentence per line"),
    ],
)
def test_files_that_are_wrong(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(Problem, match=said):
        assert registry.load(tmp_path / "a.txt").about


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "a b", "c d")
    with pytest.raises(Problem, match="plain text has no column 'x'"):
        registry.load(path, reading=Reading(text_column="x"))
    with pytest.raises(Problem, match="--size is only for"):
        registry.load(path, size=32)
    with pytest.raises(Problem, match="are only for text"):
        registry.load(np.zeros((4, 3)), reading=Reading(min_count=2))
    assert len(registry.load(np.zeros((4, 3)), reading=Reading())) == 4


def test_long_sentences_are_left_out_and_told(tmp_path: Path) -> None:
    write(tmp_path / "train.txt", "a b c", "a b c d", "a b", "a b c d e")
    write(tmp_path / "test.txt", "a b c d", "c")
    with pytest.warns(UserWarning, match="sentences of more than 3 words: 2 of train, 1 of test"):
        data = registry.load(tmp_path, reading=Reading(longest=3))
    assert {name: len(rows) for name, rows in data.splits.items()} == {"train": 2, "test": 1}
    assert data.about.levels == 7, "what is left out is not in the vocabulary"
    with pytest.raises(Problem, match=r"train split of .* has no sentence of at most 1 words"):
        registry.load(tmp_path, reading=Reading(longest=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        registry.load(tmp_path, reading=Reading(longest=5))
        assert len(few("a b", " ", "c")) == 2, "what is blank is left out without a word"


def test_reading_keeps_numbers_not_text(tmp_path: Path) -> None:
    """1.3 MB of text are 320 KB of numbers; lists of words would take ten times that."""
    rng = np.random.default_rng(0)
    words = [f"word-{k}" for k in range(500)]
    path = write(tmp_path / "a.txt", *(" ".join(rng.choice(words, 16)) for _ in range(5000)))
    registry.load(path)
    tracemalloc.start()
    data = registry.load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert data.lengths(np.arange(5000)).sum() == 17 * 5000
    assert peak < 2.5e6


def test_another_encoding_is_said_and_named_where_it_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "french.txt"
    path.write_bytes("un caf\u00e9\nune \u00eele\n".encode("latin-1") * 5)
    with pytest.raises(Problem, match=r"not UTF-8 text: byte 0xe9 .* --encoding \(latin-1, cp1252"):
        registry.load(path)
    data = registry.load(path, reading=Reading(encoding="latin-1"))
    assert data.sentences([0, 1]) == ["un caf\u00e9", "une \u00eele"]
    table = tmp_path / "t.csv"
    table.write_bytes("text,label\ncaf\u00e9,\u00e9\nth\u00e9,\u00e8\nlait,\u00e8\n".encode("cp1252"))
    read = registry.load(table, reading=Reading(encoding="cp1252"))
    assert read.classes["label"] == ("\u00e8", "\u00e9")
    for name, said in (("latin-one", "is no encoding"), ("utf-16", "line ends")):
        with pytest.raises(ValueError, match=said):
            Reading(encoding=name)


@pytest.mark.parametrize("label", ["{}", "__label__{}"])
def test_a_label_and_a_space_is_told_to_be_a_word(tmp_path: Path, label: str) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{label.format(i % 2)} some text {i}\n" for i in range(40)))
    with pytest.warns(
        UserWarning, match="begins with .*0 or .*1 and a space, which is read as its first word.* label TAB"
    ):
        assert registry.load(path).draft.labels == {}


def test_lines_that_begin_with_words_or_many_numbers_are_not_doubted(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    for start in (lambda i: ("a", "the")[i % 2], lambda i: str(i)):
        path.write_text("".join(f"{start(i)} text {i}\n" for i in range(60)))
        with warnings.catch_warnings(action="error"):
            registry.load(path)
