"""The blind sheet: it hides whose an output is, and is read back."""

from __future__ import annotations

import csv
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from elboroom.core.problem import Problem
from elboroom.evaluate.transfer import sheet

INPUTS, WANTED = ["the soup was awful", "the staff was rude"], ["positive", "positive"]
OUTPUTS = {"good-run": ["the soup was great", "the staff was kind"], "bad-run": ["soup soup", "staff"]}


def filled(path: Path, out: Path, more: float = 0.0) -> Path:
    """A rater who likes outputs of four words and says one less for `more`."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["fluency"] = str((5 if len(row["output"].split()) == 4 else 1) + more * (row["output"] == "staff"))
        row["style"] = "3"
    with out.open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0].keys())
        table.writeheader()
        table.writerows(rows)
    return out


def test_a_sheet_does_not_say_whose_and_is_scored_by_its_key(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    key = sheet.write(path, INPUTS, WANTED, OUTPUTS)
    assert key.name == "sheet.key.json"
    assert "run" not in path.read_text()
    assert len(path.read_text().splitlines()) == 5
    found = sheet.score([filled(path, tmp_path / "ann.csv"), filled(path, tmp_path / "bob.csv", 1.0)])
    assert found["fluency good-run"].value == 5
    assert found["fluency bad-run"].value == 1.25
    assert found["style good-run"].value == 3
    assert not [name for name in found if name.startswith("meaning")], "which nobody judged"
    assert found["fluency bad-run"].interval["low"] >= 1  # type: ignore[index]
    assert 0.9 < found["fluency bad-run"].parts["alpha"] < 1


def test_alpha_by_hand() -> None:
    """Two raters, two things: observed (0 + 2) / 2 ... the same answers give 1, opposite ones less than 0."""
    assert sheet.alpha(np.array([[1.0, 5.0], [1.0, 5.0]])) == 1
    opposite = sheet.alpha(np.array([[1.0, 5.0], [5.0, 1.0]]))
    assert opposite is not None
    assert opposite == pytest.approx(1 - 64 / (128 / 3))
    assert sheet.alpha(np.array([[1.0, 2.0]])) is None


def test_alpha_is_that_of_all_pairs_without_a_table_of_them() -> None:
    rng = np.random.default_rng(0)
    said = rng.integers(1, 6, (3, 40)) + rng.normal(size=(3, 40))
    said[rng.random(said.shape) < 0.3] = np.nan
    pool = [column[~np.isnan(column)] for column in said.T if (~np.isnan(column)).sum() >= 2]
    observed = sum(np.square(some[:, None] - some).sum() / (len(some) - 1) for some in pool)
    every = np.concatenate(pool)
    expected = np.square(every[:, None] - every).sum() / (len(every) - 1)
    assert sheet.alpha(said) == pytest.approx(1 - observed / expected)
    assert sheet.alpha(np.full((3, 7), 3.3)) == 1
    many = rng.integers(1, 6, (2, 2000)).astype(float)
    tracemalloc.start()
    sheet.alpha(many)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 20 * many.nbytes


@pytest.mark.parametrize(
    ("cell", "sentence"), [("7", "is no number from 1 to 5"), ("good", "is no number from 1 to 5")]
)
def test_a_wrong_cell_is_one_sentence(cell: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    sheet.write(path, INPUTS, WANTED, OUTPUTS)
    with pytest.raises(Problem, match="has no judgement yet"):
        sheet.score([path])
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], lines[1].removesuffix(",,,") + f",{cell},,", *lines[2:]]) + "\n")
    with pytest.raises(Problem, match=sentence):
        sheet.score([path])
    with pytest.raises(Problem, match=r"must be a \.csv file"):
        sheet.write(tmp_path / "sheet.txt", INPUTS, WANTED, OUTPUTS)
    (tmp_path / "sheet.key.json").unlink()
    path.write_text("\n".join([lines[0], lines[1].removesuffix(",,,") + ",4,,", *lines[2:]]) + "\n")
    with pytest.raises(Problem, match=r"no \.key\.json beside"):
        sheet.score([path])
