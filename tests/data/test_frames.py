"""Tables of pandas, polars and Arrow are one data set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest
from pyarrow import feather, ipc, parquet

from elboroom.core.problem import Problem
from elboroom.data import registry
from elboroom.data.text import Reading

COLUMNS = {
    "a": [float(i) for i in range(20)],
    "b": [i % 3 for i in range(20)],
    "label": ["xy"[i % 2] for i in range(20)],
}
WORDS = {"text": [f"w{i % 4} w{i % 3}" for i in range(20)], "label": ["xy"[i % 2] for i in range(20)]}


def written(folder: Path, columns: dict[str, list[object]]) -> dict[str, Path]:
    """The same table in every format."""
    table = pa.table(columns)
    paths = {name: folder / f"t-{name}" for name in ("a.parquet", "b.feather", "c.arrow", "d.arrow")}
    parquet.write_table(table, paths["a.parquet"])
    feather.write_feather(table, str(paths["b.feather"]))
    with ipc.new_file(str(paths["c.arrow"]), table.schema) as file:
        file.write_table(table)
    with ipc.new_stream(str(paths["d.arrow"]), table.schema) as file:
        file.write_table(table)
    return paths


def test_all_of_them_hold_the_same_numbers_and_labels(tmp_path: Path) -> None:
    sources = [pandas.DataFrame(COLUMNS), polars.DataFrame(COLUMNS), *written(tmp_path, COLUMNS).values()]
    for source in sources:
        data = registry.load(source)
        assert (data.about.kind, data.about.shape, data.classes) == ("vectors", (2,), {"label": ("x", "y")}), source
        assert data.x(np.array([4])).tolist() == [[4, 1]]
        assert data.labels[:3, 0].tolist() == [0, 1, 0]


def test_all_of_them_hold_the_same_sentences(tmp_path: Path) -> None:
    for source in [pandas.DataFrame(WORDS), polars.DataFrame(WORDS), *written(tmp_path, WORDS).values()]:
        data = registry.load(source)
        assert data.sentences(np.array([3])) == ["w3 w0"], source
        assert data.classes == {"label": ("x", "y")}


def test_what_is_wrong_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(Problem, match=r"bad\.parquet cannot be read as a table"):
        registry.load(tmp_path / "bad.parquet")
    path = written(tmp_path, COLUMNS)["a.parquet"]
    with pytest.raises(Problem, match="has no column 'lable'; did you mean 'label'"):
        registry.load(path, reading=Reading(label_column="lable"))
    with pytest.raises(Problem, match="has no column of text"):
        registry.load(path, reading=Reading(min_count=3))
