"""Data frames as data sets: columns of numbers are vectors, a column of text is sentences, and some may be labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elboroom.core.problem import Problem, unknown
from elboroom.data.arrays import dataset
from elboroom.data.dataset import DataSet
from elboroom.data.lines import LABEL, NONE, TEXT_COLUMNS
from elboroom.data.text import Reading, gather

SUFFIXES = (".parquet", ".arrow", ".feather")
MAGIC = b"ARROW1"  # how a file of Arrow begins, and a stream does not


def is_frame(source: object) -> bool:
    """Whether something has named columns that numpy can read, as the frames of pandas and polars have."""
    return hasattr(source, "columns") and hasattr(source, "to_numpy") and hasattr(source, "__getitem__")


def load(frame: Any, reading: Reading | None = None) -> DataSet:
    """The data set of a frame; a column called text or sentence, or said, is sentences, and one called label a label."""
    return of_columns({str(name): np.asarray(frame[name]) for name in frame.columns}, "data frame", reading)


def is_file(path: Path) -> bool:
    """Whether a file is a table in one of the formats of Arrow."""
    return path.suffix.lower() in SUFFIXES and path.is_file()


def read(path: Path, reading: Reading | None = None) -> DataSet:
    """The data set of a .parquet, .arrow or .feather file."""
    try:
        from pyarrow import ArrowInvalid, feather, ipc, parquet
    except ImportError:
        raise Problem(f"{path} needs pyarrow: pip install 'elboroom[parquet]'") from None
    try:
        if path.suffix.lower() == ".parquet":
            table = parquet.read_table(path)
        elif path.suffix.lower() == ".arrow":
            with path.open("rb") as file:
                table = _stream(ipc, file)
        else:
            table = feather.read_table(path)
    except (ArrowInvalid, OSError) as error:
        raise Problem(f"{path} cannot be read as a table ({' '.join(str(error).split())[:200]})") from None
    columns = {name: np.asarray(table[name].to_numpy()) for name in table.column_names}
    return of_columns(columns, str(path), reading)


def _stream(ipc: Any, file: Any) -> Any:
    """The table of an Arrow file, which has its records as a file has them or as a stream does."""
    if file.read(len(MAGIC)) == MAGIC:
        return ipc.open_file(file).read_all()
    file.seek(0)
    return ipc.open_stream(file).read_all()


def of_columns(columns: dict[str, NDArray[Any]], source: str, reading: Reading | None = None) -> DataSet:
    """The data set of columns by name."""
    asked = reading or Reading()
    said = [name.strip() for name in asked.label_column.split(",") if name.strip()]
    labels = [] if said == [NONE] else said or [name for name in columns if name.lower() == LABEL]
    for name in (*labels, *([asked.text_column] if asked.text_column else [])):
        if name not in columns:
            raise unknown("column", name, columns, source)
    text = asked.text_column or next((name for name in columns if name.lower() in TEXT_COLUMNS), "")
    if text:
        rows = zip(
            map(str, columns[text]), zip(*(map(str, columns[name]) for name in labels), strict=True), strict=True
        )
        read = rows if labels else ((str(sentence), ()) for sentence in columns[text])
        return gather(source, {"train": read}, dict.fromkeys(labels), asked, 0.1)
    if asked.model_copy(update={"label_column": ""}) != Reading():
        raise Problem(f"{source} has no column of text; of the options for text it takes --label-column alone")
    words = [name for name, values in columns.items() if name not in labels and values.dtype.kind not in "buif"]
    if words:
        raise Problem(
            f"the columns {', '.join(words)} hold no numbers; make them labels with --label-column, or leave them out"
        )
    numbers = [values for name, values in columns.items() if name not in labels]
    if not numbers:
        raise Problem(f"{source} has labels and no other column")
    beside = {name: _values(columns[name]) for name in labels}
    return dataset(np.column_stack(numbers).astype(np.float64), source, beside or None)


def _values(column: NDArray[Any]) -> NDArray[Any]:
    """The values of a label: numbers as they are, all else as text."""
    return column if column.dtype.kind in "bui" else column.astype(str)
