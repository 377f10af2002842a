"""Cells of the tables that are handed out: no sentence and no name of a column is a formula."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from elboroom.commands.rows import write_csv
from elboroom.evaluate.transfer import sheet

FORMULAS = ("=1+1", "+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1")


def read(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("text", FORMULAS)
def test_names_of_columns_and_places_are_quoted_and_numbers_are_not(tmp_path: Path, text: str) -> None:
    write_csv(tmp_path / "x.csv", [text, "b"], np.array([[-1.5, 2.0]], np.float32), {text: [text]})
    assert read(tmp_path / "x.csv") == [[f"'{text}", f"'{text}", "b"], [f"'{text}", "-1.5", "2.0"]]


def test_sentences_of_a_sheet_are_quoted_and_it_is_scored_as_before(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    sheet.write(path, FORMULAS, ["=up"] * len(FORMULAS), {"a": FORMULAS, "b": ["well"] * len(FORMULAS)})
    head, *rows = read(path)
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert {row[1] for row in rows} == {f"'{text}" for text in FORMULAS}
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *([*row[:4], "3", "4", "5"] for row in rows)])
    assert {name: found.value for name, found in sheet.score([path]).items()}["fluency a"] == 3


@pytest.mark.parametrize("name", ["codes", "sheet"])
def test_a_table_is_written_whole_and_in_the_place_of_a_link(tmp_path: Path, name: str) -> None:
    (tmp_path / "mine").write_text("mine")
    path = tmp_path / "x.csv"
    path.symlink_to(tmp_path / "mine")
    write_csv(path, ["a"], np.ones((1, 1))) if name == "codes" else sheet.write(path, ["a"], ["b"], {"c": ["d"]})
    assert (tmp_path / "mine").read_text() == "mine"
    assert not path.is_symlink()
