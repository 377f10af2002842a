from __future__ import annotations

import numpy as np
import pytest
import torch

from elboroom.core.problem import Problem
from elboroom.data import registry, sentences
from elboroom.data.dataset import DataSet
from elboroom.data.sentences import COUNT, FACTORS, SIZES, VALUES, parse, render
from elboroom.data.text import Reading


@pytest.fixture(scope="module")
def data() -> DataSet:
    return registry.load("sentences")


def said(**named: str) -> str:
    """The sentence of factors by name; those that are not said are the first."""
    assert set(named) <= set(FACTORS)
    return render(VALUES[f].index(named.get(f, VALUES[f][0])) for f in FACTORS)


def test_every_combination_once_in_order(data: DataSet) -> None:
    assert COUNT == np.prod(SIZES) == len(data) >= 100_000
    assert data.about.labels == dict(zip(FACTORS, SIZES, strict=True))
    grid = np.stack(np.meshgrid(*map(np.arange, SIZES), indexing="ij"), axis=-1).reshape(-1, len(SIZES))
    assert np.array_equal(data.labels, grid), "rows in order, the last factor fastest"
    assert data.classes == VALUES


@pytest.mark.unhurried
def test_all_are_distinct_and_parse_inverts_render(data: DataSet) -> None:
    every = data.sentences(np.arange(COUNT))
    assert len(set(every)) == COUNT
    assert all(parse(sentence) == tuple(f) for sentence, f in zip(every, data.labels.tolist(), strict=True))


def test_the_data_are_what_render_says(data: DataSet) -> None:
    rows = np.random.default_rng(0).choice(COUNT, 300, replace=False)
    assert data.sentences(rows) == [render(f) for f in sentences.factors(rows)]
    assert np.array_equal(sentences.index(sentences.factors(rows)), rows)
    assert data.tokeniser is not None
    assert not (data.x(np.arange(COUNT)) == 3).any(), "no word is unknown"
    for row in rows[:20]:
        assert data.x([row])[0].tolist() == [1, *data.tokeniser.encode(render(data.labels[row])), 2]


@pytest.mark.parametrize(
    ("factors", "expected"),
    [
        ({}, "the teacher praised the old book again ."),
        ({"tense": "present"}, "the teacher praises the old book again ."),
        ({"tense": "present", "number": "plural"}, "the teachers praise the old book again ."),
        ({"tense": "present", "negation": "negative"}, "the teacher does not praise the old book again ."),
        (
            {"tense": "present", "negation": "negative", "number": "plural"},
            "the teachers do not praise the old book again .",
        ),
        ({"negation": "negative", "number": "plural"}, "the teachers did not praise the old book again ."),
        ({"tense": "future"}, "the teacher will praise the old book again ."),
        ({"tense": "future", "negation": "negative"}, "the teacher will not praise the old book again ."),
        (
            {"subject": "child", "number": "plural", "polarity": "negative", "verb": "care", "object": "map"},
            "the children lost the old map again .",
        ),
        (
            {"subject": "lady", "number": "plural", "tense": "present", "verb": "force", "adjective": "red"},
            "the ladies carry the red book again .",
        ),
        (
            {"subject": "lady", "tense": "present", "verb": "force", "adverbial": "in the morning"},
            "the lady carries the old book in the morning .",
        ),
        ({"subject": "woman", "number": "plural", "verb": "choice"}, "the women chose the old book again ."),
        ({"subject": "thief", "number": "plural", "verb": "care"}, "the thieves kept the old book again ."),
        (
            {"subject": "witness", "tense": "present", "verb": "force", "polarity": "negative"},
            "the witness destroys the old book again .",
        ),
    ],
)
def test_agreement_tense_and_negation(factors: dict[str, str], expected: str) -> None:
    assert said(**factors) == expected
    found = parse(expected)
    assert found is not None
    assert {f: VALUES[f][v] for f, v in zip(FACTORS, found, strict=True) if v} == {
        f: v for f, v in factors.items() if v != VALUES[f][0]
    }


def test_a_change_of_one_factor_is_the_answer_to_style_transfer() -> None:
    found = parse("the women did not keep the beautiful lamp at home .")
    assert found is not None
    other = [*found]
    other[FACTORS.index("polarity")] = 1
    assert render(other) == "the women did not lose the beautiful lamp at home ."


@pytest.mark.parametrize(
    "sentence",
    [
        "",
        "the",
        "the teacher the old book again .",
        "the teacher praise the old book again .",
        "the teachers praises the old book again .",
        "the teacher do not praise the old book again .",
        "the teacher does not praised the old book again .",
        "the teacher not praise the old book again .",
        "the teacher will praises the old book again .",
        "the teacher did praise the old book again .",
        "the teacher praised the old old again .",
        "the teacher praised the book old again .",
        "the teacher praised the old book .",
        "the teacher praised the old book again",
        "the teacher praised the old book again . .",
        "a teacher praised the old book again .",
        "the teacher praised the old book every again day .",
        "the dog praised the old book again .",
        "the teacher ate the old book again .",
    ],
)
def test_what_is_none_of_them(sentence: str) -> None:
    assert parse(sentence) is None


@pytest.mark.parametrize("factors", [(0,) * 8, (8, *(0,) * 8), (-1, *(0,) * 8)])
def test_factors_out_of_range(factors: tuple[int, ...]) -> None:
    with pytest.raises(Problem, match="sentence factors are subject, number"):
        render(factors)
    with pytest.raises(Problem, match="sentence factors are subject, number"):
        sentences.index(np.array([factors]))


def test_splits_and_tokens(data: DataSet) -> None:
    assert list(data.splits) == ["train"]
    held = data.hold_out(data.holdout)
    assert len(held.splits["test"]) == round(0.1 * COUNT)
    assert (held.hash, held.about.levels) == (data.hash, data.about.levels)
    assert data.about.shape == (13,)
    assert int(data.lengths(np.arange(COUNT)).max()) == 13
    spelled = sentences.load(Reading(tokens="bytes"))
    assert spelled.sentences([7]) == data.sentences([7])
    assert torch.equal(torch.from_numpy(spelled.words), data.lengths(np.arange(COUNT)))
    assert spelled.hash != data.hash
    with pytest.raises(Problem, match="up to 12 words"):
        sentences.load(Reading(longest=11))


def test_without_files() -> None:
    assert registry.get("sentences") == {"name": "sentences", "folder": "no files", "state": "built in", "files": []}
    row = next(row for row in registry.listing() if row["name"] == "sentences")
    assert (row["kind"], row["where"], row["how"], row["counts"]) == ("tokens", "here", "built in", {"train": COUNT})
    with pytest.raises(Problem, match="built in, so there is nothing to check"):
        registry.check("sentences")
    with pytest.raises(Problem, match="columns of sentences are fixed"):
        registry.load("sentences", reading=Reading(label_column="tense"))
