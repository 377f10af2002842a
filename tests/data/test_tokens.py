from __future__ import annotations

import json
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

from elboroom.core.problem import Problem
from elboroom.data.tokens import END, PAD, START, UNK, Subwords, Words, as_bytes, byte_pairs, most_frequent, tokeniser

CORPUS = ["the cat <unk> on the mat", "the dog 's 12 bones , hé", "the cat and the dog"] * 3
ODD = ["<unk>", "<unk> <unk> .", "a<unk>b <unk>.", "</s> <s> <pad>", "日本 語", "tab\tand  space", "x"]


def counted(sentences: list[str]) -> tuple[list[str], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    words = [word for sentence in sentences for word in sentence.split()]
    types = list(dict.fromkeys(words))
    return types, np.array([words.count(word) for word in types])


def test_markers() -> None:
    assert (PAD, START, END, UNK) == (0, 1, 2, 3)


def test_words_are_numbered_by_frequency_then_by_first_sight() -> None:
    types, counts = counted(["b a <unk> a c", "d <unk> a c <unk>"])  # a 3, <unk> 3, c 2, b 1, d 1
    words, table = most_frequent(types, counts)
    assert words.words == ("a", "c", "b", "d")
    assert dict(zip(types, table.tolist(), strict=True)) == {"b": 6, "a": 4, "<unk>": UNK, "c": 5, "d": 7}
    assert (words.size, words.name) == (8, "words")
    assert words.encode(" a  z <unk>\td ") == [4, UNK, UNK, 7]
    assert words.encode("") == []


@pytest.mark.parametrize(
    ("min_count", "vocabulary", "kept", "name"),
    [
        (1, 0, "acbd", "words"),
        (2, 0, "ac", "words seen 2 times or more"),
        (1, 6, "ac", "words, the most frequent 2"),
        (2, 100, "ac", "words seen 2 times or more"),
    ],
)
def test_frequency_cuts(min_count: int, vocabulary: int, kept: str, name: str) -> None:
    words, _ = most_frequent(*counted(["b a <unk> a c", "d <unk> a c <unk>"]), min_count, vocabulary)
    assert ("".join(words.words), words.name) == (kept, name)


def test_a_type_that_training_never_saw_is_unknown() -> None:
    words, table = most_frequent(["a", "b", "c"], np.array([2, 0, 1]))
    assert words.words == ("a", "c")
    assert table.tolist() == [4, UNK, 5]


def test_too_small_a_vocabulary() -> None:
    for corpus in (["a a", "a"], ["<unk> <unk>", "<unk> a"]):
        with pytest.raises(Problem, match=r"too small: 1 of . words"):
            most_frequent(*counted(corpus))
    with pytest.raises(Problem, match="too small: 0 of 2 words are seen at least 9 times"):
        most_frequent(*counted(["a b"]), min_count=9)
    with pytest.raises(Problem, match="at least 6, of which"):
        most_frequent(*counted(["a b c"]), vocabulary=5)


def test_decode_skips_markers_and_stops_at_the_end() -> None:
    words = Words(["a", "b"])
    assert words.decode([START, 4, UNK, PAD, 5, END, 4, 4]) == "a <unk> b"
    assert words.decode(torch.tensor([4, 5])) == "a b"
    assert words.decode(np.array([END, 5])) == ""
    pieces = as_bytes()
    assert pieces.decode([START, *pieces.encode("a b"), END, *pieces.encode("c")]) == "a b"


@pytest.mark.parametrize("words", [["a", "a"], ["a", "<unk>"], ["a", "b c"], ["a", ""]])
def test_vocabularies_that_are_none(words: list[str]) -> None:
    with pytest.raises(Problem, match="distinct words"):
        Words(words)


def test_bytes_are_bytes() -> None:
    pieces = as_bytes()
    assert (pieces.size, pieces.name) == (260, "bytes")
    assert len(pieces.encode("ab é")) == 5
    assert len(set(pieces.encode("abba"))) == 2
    assert pieces.encode("a <unk>")[-1] == UNK
    assert pieces.encode("<unk>") == [UNK]
    assert min(pieces.encode("</s>")) > UNK, "a marker that is written out is text"
    assert min(pieces.encode("a<unk>b")) > UNK, "<unk> within a word is text too"


def test_byte_pairs_learn_frequent_pieces() -> None:
    pieces = byte_pairs(CORPUS, 280)
    assert (pieces.size, pieces.name) == (280, "bpe 280")
    assert len(pieces.encode("the")) == 1, "the most frequent word, its space before it, is one piece"
    assert pieces.encode("the the") == 2 * pieces.encode("the")
    assert len(pieces.encode("zqx")) > 3
    assert byte_pairs(CORPUS, 280, min_count=4).size < 280
    assert byte_pairs(CORPUS, 280, min_count=4).name.endswith("of pairs seen 4 times or more")
    with pytest.raises(Problem, match="at least 260 ids"):
        byte_pairs(CORPUS, 259)
    assert byte_pairs(CORPUS, 260).encode("hé the") == as_bytes().encode("x hé the")[1:]


@pytest.mark.parametrize("make", [as_bytes, lambda: byte_pairs(CORPUS, 300)])
def test_pieces_give_back_the_sentence(make: object) -> None:
    pieces: Subwords = make()  # type: ignore[operator]
    for sentence in [*CORPUS, *ODD]:
        ids = pieces.encode(sentence)
        assert min(ids) >= UNK
        assert max(ids) < pieces.size
        assert pieces.decode(ids) == " ".join(sentence.split())
    assert pieces.encode(" ") == []


@pytest.mark.parametrize("make", [as_bytes, lambda: byte_pairs(CORPUS, 300)])
def test_a_sentence_is_the_spelling_of_its_words(make: object) -> None:
    pieces: Subwords = make()  # type: ignore[operator]
    for sentence in [*CORPUS, *ODD]:
        flat, places = pieces.spelled(sentence.split())
        assert flat[0 if pieces.lead else 1 :].tolist() == pieces.encode(sentence)
        assert (places[0], places[-1], len(places)) == (0, len(flat), len(sentence.split()) + 1)


@pytest.mark.parametrize("make", [lambda: Words(["a", "é"], "words, two"), as_bytes, lambda: byte_pairs(CORPUS, 300)])
def test_json_and_pickle_give_back_the_tokeniser(make: object) -> None:
    one: Words | Subwords = make()  # type: ignore[operator]
    for two in (tokeniser(json.loads(json.dumps(one.to_json()))), pickle.loads(pickle.dumps(one))):
        assert type(two) is type(one)
        assert (two.size, two.name) == (one.size, one.name)
        assert two.encode("the a é <unk>") == one.encode("the a é <unk>")


@pytest.mark.parametrize("entry", [{}, {"kind": "runes"}, {"kind": "words", "name": "x"}, {"kind": []}])
def test_no_tokeniser(entry: dict[str, object]) -> None:
    with pytest.raises(Problem, match="not a valid description of a tokeniser"):
        tokeniser(entry)


def test_broken_content() -> None:
    with pytest.raises(Problem, match="not a tokeniser that elboroom wrote"):
        tokeniser({"kind": "subwords", "name": "x", "lead": "", "content": "{}"})


@pytest.mark.slow
def test_byte_pairs_are_the_same_in_every_process() -> None:
    code = (
        "from elboroom.data.tokens import byte_pairs; "
        "words = [chr(97 + i % 26) + chr(97 + i % 17) + chr(97 + i % 7) for i in range(2000)]; "
        "print(byte_pairs([' '.join(words[i : i + 9]) for i in range(0, 2000, 9)], 900).content)"
    )
    one, two = (subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout for _ in "ab")
    assert one == two
    assert len(one) > 1000


def test_a_strange_tokeniser_is_refused_before_the_library_reads_it() -> None:
    made = byte_pairs(["a b ab abc"] * 30, 264)
    entry = json.loads(made.content)
    assert Subwords(json.dumps(entry), "x").size == made.size
    changes: list[dict[str, Any]] = [
        {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Removed", "invert": False}},
        {"pre_tokenizer": None},
        {"normalizer": {"type": "Replace", "pattern": {"Regex": "(x+x+)+y"}, "content": ""}},
        {"post_processor": {"type": "ByteLevel"}},
        {"truncation": {"max_length": 0}},
        {"added_tokens": []},
        {"added_tokens": 5},
        {"model": entry["model"] | {"vocab": entry["model"]["vocab"] | {"far": 4_000_000_000}}},
        {"model": entry["model"] | {"merges": [["no", "such"]]}},
        {"model": entry["model"] | {"merges": ["a"]}},
        {"model": entry["model"] | {"merges": [5]}},
        {"model": entry["model"] | {"dropout": 0.5}},
        {"model": {"type": "Unigram", "vocab": []}},
        {"model": None},
    ]
    for change in changes:
        with pytest.raises(Problem, match="not a tokeniser that elboroom wrote"):
            Subwords(json.dumps(entry | change), "x")
    for text in ("", "5", "[]", "[" * 10**5, " " * ((1 << 26) + 1)):
        with pytest.raises(Problem, match="not a tokeniser"):
            Subwords(text, "x")
