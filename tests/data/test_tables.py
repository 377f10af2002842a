"""Tables of numbers are vectors."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from elboroom.core.problem import Problem
from elboroom.data import registry
from elboroom.data.text import Reading

ROWS = "1,2.5,300\n4,-5,6e2\n7,8,900\n"


def table(folder: Path, text: str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("header", ["", "a,b,c\n"])
def test_a_header_may_be_there_or_not(tmp_path: Path, header: str) -> None:
    data = registry.load(table(tmp_path, header + ROWS))
    assert (data.about.kind, data.about.shape, len(data)) == ("vectors", (3,), 3)
    assert torch.equal(data.x([0, 1]), torch.tensor([[1, 2.5, 300], [4, -5, 600]]))


def test_tabs_separate_too(tmp_path: Path) -> None:
    data = registry.load(table(tmp_path, "a,b,c\n".replace(",", "\t") + ROWS.replace(",", "\t"), "t.tsv"))
    assert data.about.shape == (3,)


def test_a_column_may_be_a_label(tmp_path: Path) -> None:
    path = table(tmp_path, "a,kind,c\n1,x,2\n3,y,4\n5,x,6\n")
    data = registry.load(path, reading=Reading(label_column="kind"))
    assert (data.about.shape, data.about.labels, data.classes) == ((2,), {"kind": 2}, {"kind": ("x", "y")})
    assert data.labels.tolist() == [[0], [1], [0]]
    called = registry.load(table(tmp_path, "a,Label\n1,3\n2,4\n3,3\n"))
    assert (called.about.shape, called.about.labels) == ((1,), {"Label": 2})
    assert registry.load(table(tmp_path, "a,label\n1,3\n2,4\n"), reading=Reading(label_column="none")).about.shape == (
        2,
    )


def test_a_column_of_text_stays_text(tmp_path: Path) -> None:
    assert registry.load(table(tmp_path, "text,label\n12,a\n34,b\n56,a\n")).about.kind == "tokens"
    uneven = table(tmp_path, "so it is\tand\twas\nno tabs\n", "t.tsv")
    assert registry.load(uneven, reading=Reading(label_column="none")).about.kind == "tokens"
    said = Reading(text_column="words")
    assert registry.load(table(tmp_path, "n,words\n1,so it is\n2,and was\n"), reading=said).about.kind == "tokens"


@pytest.mark.parametrize(
    ("text", "reading", "said"),
    [
        ("a,b\n1,2\n" * 1 + "1,2\n" * 30 + "3,\n", Reading(), "line 33 of .* an empty cell"),
        ("a,b\n" + "1,2\n" * 30 + "3,x\n", Reading(), "line 32 of .* has 'x' where the other rows have a number"),
        ("a,b\n1,2\n3,nan\n", Reading(), "NaN or infinite"),
        ("1,2\n3,4\n", Reading(label_column="a"), "has no header"),
        ("a,b\n1,2\n3,4\n", Reading(label_column="c"), "no column 'c'|unknown column 'c'"),
        ("a,b\n1,2\n3,4\n", Reading(tokens="bpe"), "takes --label-column and --encoding"),
        ("a,b\n1,u\n3,v\n", Reading(), "column b holds words: pass --label-column b; for text, --text-column"),
    ],
)
def test_what_is_no_number_is_told(tmp_path: Path, text: str, reading: Reading, said: str) -> None:
    with pytest.raises(Problem, match=said):
        registry.load(table(tmp_path, text), reading=reading).x([0])


def test_a_column_of_words_among_numbers_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,kind\n" + "1,2,red\n3,4,blue\n" * 5)
    with pytest.raises(Problem, match="column kind holds words: pass --label-column kind"):
        registry.load(path)
    assert registry.load(path, reading=Reading(label_column="kind")).classes["kind"] == ("blue", "red")


MIXED = "age,city,income\n31,Oslo,10\n45,New York,\n28,Rome,n/a\n52,Oslo,7\n33,Rome,8\n"
GAPS = (
    "column income has 1 empty cell .first in line 3. and 1 cell without a number .'n/a' in line 4.; fill them or drop"
)


def test_empty_cells_and_words_are_told_together(tmp_path: Path) -> None:
    path = table(tmp_path, MIXED)
    said = rf"t.csv: {GAPS} those rows. Column city holds words: pass --label-column city; for text, --text-column$"
    with pytest.raises(Problem, match=said):
        registry.load(path)
    with pytest.raises(Problem, match=f"t.csv: {GAPS} those rows$"):
        registry.load(path, reading=Reading(label_column="city"))
    with pytest.raises(Problem, match="no label column 'citty'; did you mean 'city'"):
        registry.load(path, reading=Reading(label_column="citty"))
    with pytest.raises(Problem, match=GAPS):
        registry.load(table(tmp_path, MIXED.replace(",", "\t"), "t.tsv"))


def test_a_column_of_sentences_among_numbers_is_advised_as_the_text(tmp_path: Path) -> None:
    rows = "".join(f"{i},the food was {'good' if i % 2 else 'bad'} today,{i % 5}\n" for i in range(40))
    with pytest.raises(
        Problem, match="column review holds words: for text try --text-column review --label-column stars"
    ):
        registry.load(table(tmp_path, "id,review,stars\n" + rows))
    said = Reading(text_column="review", label_column="stars")
    assert registry.load(table(tmp_path, "id,review,stars\n" + rows), reading=said).about.labels == {"stars": 5}
