"""Tables of numbers as vectors: a row is an example, a column a coordinate, and some columns may be labels."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np

from elboroom.core.problem import Problem, unknown
from elboroom.data.arrays import dataset
from elboroom.data.dataset import DataSet
from elboroom.data.labels import columns_of
from elboroom.data.lines import LABEL, NONE, TABLES, TEXT_COLUMNS, is_number, table
from elboroom.data.text import Reading

FIRST = 20  # rows that decide whether a table has numbers


def is_numeric(path: Path, reading: Reading | None = None) -> bool:
    """Whether a file is a .csv or .tsv whose columns are all numbers, but for those that were said to be labels.

    One with a column that is called text or sentence is left to text, and so is one whose column of text was said.
    """
    asked = reading or Reading()
    if path.suffix.lower() not in TABLES or not path.is_file() or asked.text_column:
        return False
    try:
        header, *rows = [cells for _, cells in islice(table(path, asked.encoding), 1 + FIRST)] or [[]]
    except Problem:  # no table; as text it may be read, or refused for its own reasons
        return False
    if not rows or any(name.strip().lower() in TEXT_COLUMNS for name in header):
        return False
    labels = _labels(header, asked)
    return all(
        is_number(cell) for cells in rows for name, cell in zip(header, cells, strict=True) if name not in labels
    )


def load(path: Path, reading: Reading | None = None) -> DataSet:
    """The vectors of a table; its first line names the columns, unless it has numbers too."""
    asked = reading or Reading()
    if asked.model_copy(update={"label_column": "", "encoding": "utf-8"}) != Reading():
        raise Problem(f"{path} is a table of numbers; of the options for text it takes --label-column and --encoding")
    rows = list(table(path, asked.encoding))
    header = rows[0][1]
    named = not all(is_number(cell) for cell in header)
    names = [name or f"column {place + 1}" for place, name in enumerate(header)] if named else []
    labels = _labels(names, asked)
    for label in labels:
        if label not in names:
            raise (
                unknown("column", label, names, path.name)
                if names
                else Problem(
                    f"{path} has no header, so --label-column {label} names nothing; add a first line with the names"
                )
            )
    body = rows[named:]
    places = [place for place in range(len(header)) if not named or names[place] not in labels]
    if not places:
        raise Problem(f"{path} has labels and no other column")
    values = np.array([[_number(cells[place], number, path) for place in places] for number, cells in body])
    if not labels:
        return dataset(values, str(path))
    cells = {label: [(number, row[names.index(label)]) for number, row in body] for label in labels}
    return dataset(values, str(path)).with_labels(*columns_of(path, cells))


def _labels(header: list[str], asked: Reading) -> list[str]:
    """The columns that are labels: those that were said, or else one that is called label."""
    said = [name.strip() for name in asked.label_column.split(",") if name.strip()]
    return [] if said == [NONE] else said or [name for name in header if name.strip().lower() == LABEL]


def _number(cell: str, line: int, path: Path) -> float:
    try:
        return float(cell)
    except ValueError:
        what = f"'{cell.strip()}'" if cell.strip() else "an empty cell"
        raise Problem(
            f"line {line} of {path} has {what} where the other rows have a number; fill it, leave the row out, or "
            "make the column a label with --label-column"
        ) from None
