"""Examples that come one by one, as records: of a torch Dataset or DataLoader, or of the Hugging Face Hub by `hf:org/name`.

Pictures are streamed into the memory-mapped cache, sentences into ids; columns of numbers are vectors.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from elboroom.core.problem import Problem, unknown
from elboroom.data import arrays, places, text
from elboroom.data.arrays import HOLDOUT
from elboroom.data.dataset import DataSet
from elboroom.data.lines import LABEL, NONE, TEXT_COLUMNS
from elboroom.data.photos import Photos
from elboroom.data.text import Reading

Row = Mapping[str, Any]
SCHEME = "hf:"
SPLITS = {"train": "train", "validation": "valid", "valid": "valid", "dev": "valid", "test": "test"}
X = "x"  # the column of what an example of a torch Dataset has first


# -- objects of torch --------------------------------------------------------------------------------------------------


def is_handed(source: object) -> bool:
    """Whether this gives examples one by one: by number, as a torch Dataset, or in turn."""
    by_number = hasattr(source, "__getitem__") and hasattr(source, "__len__")
    return not isinstance(source, str | bytes | Path | Mapping | DataSet) and (by_number or hasattr(source, "__iter__"))


def handed(source: Any, size: int | None, reading: Reading | None, photos: Photos | None) -> DataSet:
    """The data set of a torch Dataset, of what a DataLoader reads, or of any iterable of examples."""
    examples: Any = source.dataset if isinstance(source, DataLoader) else source
    by_number = hasattr(examples, "__getitem__") and hasattr(examples, "__len__")
    found: Iterable[Any] = (examples[i] for i in range(len(examples))) if by_number else iter(examples)
    if not (by_number and isinstance(examples, Dataset)):  # whose examples are single by what it is
        found = itertools.chain.from_iterable(_parted(example) for example in found)
    name = type(examples).__name__
    return load(name, {"train": (_record(example) for example in found)}, size, reading, photos)


def _parted(example: Any) -> Iterable[Any]:
    """The examples of a batch (x, labels) as loaders give it, which has as many of both; else the example itself."""
    if not isinstance(example, tuple | list) or len(example) < 2 or not all(map(_are_many, example)):
        return [example]
    counts = {len(part) for part in example}
    labels = [np.ndim(_plain(part)) for part in example[1:]]
    return zip(*example, strict=True) if len(counts) == 1 and {*labels} == {1} else [example]


def _are_many(part: Any) -> bool:
    """Whether this may be the x of a batch, rows of arrays or a list of texts and pictures, or its labels."""
    return isinstance(part, list | tuple) or (isinstance(part, Tensor | np.ndarray) and part.ndim > 0)


def _record(example: Any) -> Row:
    """An example as a record: x alone, (x, label), (x, label, label, ...), or a record already."""
    if isinstance(example, Mapping):
        return cast(Row, example)
    if not isinstance(example, tuple | list):
        return {X: example}
    x, *labels = example
    return {X: x, **dict(zip(arrays.numbered(len(labels)), labels, strict=True))}


# -- the Hub -----------------------------------------------------------------------------------------------------------


def is_named(source: object) -> bool:
    """Whether this is `hf:org/name`, `hf:org/name:configuration`, or `hf:./folder`."""
    return isinstance(source, str) and source.startswith(SCHEME)


def named(source: str, size: int | None, reading: Reading | None, photos: Photos | None) -> DataSet:
    """A data set of the Hub by its name, streamed: nothing of it is executed, and nothing is kept twice."""
    try:
        import datasets
    except ImportError:
        raise Problem(f"{source} needs datasets: pip install 'elboroom[datasets]'") from None
    name, _, configuration = source.removeprefix(SCHEME).partition(":")
    try:
        builder = datasets.load_dataset_builder(name, configuration or None)
        whole = builder.as_streaming_dataset()
    except Exception as error:  # of files, of the network, of names: the library has one for each
        raise Problem(f"{source} cannot be read: {' '.join(str(error).split())[:300]}") from None
    classes = {
        column: list(feature.names)
        for column, feature in (builder.info.features or {}).items()
        if isinstance(feature, datasets.ClassLabel)
    }
    splits = {SPLITS[str(split)]: rows for split, rows in whole.items() if str(split) in SPLITS}
    if "train" not in splits:
        raise Problem(f"{source} has no split called train; it has {', '.join(map(str, whole))}")
    return load(source, splits, size, reading, photos, classes, key=str(builder.cache_dir))


# -- records -----------------------------------------------------------------------------------------------------------


def load(
    name: str,
    splits: Mapping[str, Iterable[Row]],
    size: int | None = None,
    reading: Reading | None = None,
    photos: Photos | None = None,
    classes: Mapping[str, Sequence[str]] | None = None,
    key: str = "",
) -> DataSet:
    """The data set of records by split. `classes` are what the numbers of labels stand for; what has a key is kept."""
    asked, classes = reading or Reading(), classes or {}
    peeked = {split: _peeked(rows, split, name) for split, rows in splits.items()}
    first = peeked["train"][0]
    labels = _labels(first, asked, classes)
    for column in (*labels, *([asked.text_column] if asked.text_column else [])):
        if column not in first:
            raise unknown("column", column, first, f"'{name}'")
    rows = {split: found for split, (_, found) in peeked.items()}
    values = {column: value for column, value in first.items() if column not in labels}
    words = asked.text_column or _text(values)
    if words:
        _refuse_size(size, name)
        holdout = 0.0 if "test" in rows else HOLDOUT
        read = {split: _sentences(found, words, labels, classes) for split, found in rows.items()}
        known = {label: list(classes[label]) if label in classes else None for label in labels}
        return text.gather(name, read, known or None, asked, holdout)
    if asked.model_copy(update={"label_column": ""}) != Reading():
        raise Problem(f"'{name}' has no column of text; of the options for text it takes --label-column alone")
    picture = next((column for column, value in values.items() if _picture(value) is not None), None)
    if picture is not None:
        kept, columns, parts = _pictures(name, rows, picture, labels, size, photos or Photos(), key)
    else:
        _refuse_size(size, name)
        kept, columns, parts = _numbers(name, rows, labels)
    named = {label: _named(np.asarray(column), classes.get(label)) for label, column in columns.items()}
    marks = None if [*parts] == ["train"] else {split: np.arange(*ends) for split, ends in parts.items()}
    pixels = 256 if picture is not None and kept.max() not in (0, 1, 255) else None
    return arrays.dataset(kept, name, named or None, pixels, marks)


def _peeked(rows: Iterable[Row], split: str, name: str) -> tuple[Row, Iterator[Row]]:
    """The first record, and all of them."""
    found = iter(rows)
    try:
        first = next(found)
    except StopIteration:
        raise Problem(f"the {split} split of '{name}' has no examples") from None
    return first, itertools.chain([first], found)


def _labels(first: Row, asked: Reading, classes: Mapping[str, Sequence[str]]) -> list[str]:
    """The columns that are labels: those that were said, or else classes and those that are called label."""
    said = [name.strip() for name in asked.label_column.split(",") if name.strip()]
    usual = [name for name in first if name in classes or name.lower().rstrip("0123456789") in (LABEL, "fine_label")]
    return [] if said == [NONE] else said or usual


def _text(values: Row) -> str:
    """The column of sentences, where there is one: by its name, or the only one that holds text."""
    strings = [name for name, value in values.items() if isinstance(value, str)]
    return next((name for name in strings if name.lower() in TEXT_COLUMNS), strings[0] if len(strings) == 1 else "")


def _refuse_size(size: int | None, name: str) -> None:
    if size is not None:
        raise Problem(f"--size is for images, which '{name}' has none of; remove it")


def _named(column: NDArray[Any], known: Sequence[str] | None) -> NDArray[Any]:
    """A label by the names of its classes, where these are known."""
    return column if known is None or column.dtype.kind not in "bui" else np.asarray(known)[column]


def _sentences(
    rows: Iterable[Row], words: str, labels: Sequence[str], classes: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    for row in rows:
        yield str(row[words]), tuple(str(_named(_plain(row[label]), classes.get(label))) for label in labels)


def _plain(value: Any) -> NDArray[Any]:
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)


def _numbers(
    name: str, rows: Mapping[str, Iterable[Row]], labels: Sequence[str]
) -> tuple[Any, dict[str, list[Any]], Any]:
    """Arrays of one shape stacked; of several columns the numbers of each side by side."""
    found, columns, parts = list[NDArray[Any]](), {label: list[Any]() for label in labels}, dict[str, tuple[int, int]]()
    for split, records in rows.items():
        start = len(found)
        for record in records:
            values = [_plain(value) for column, value in record.items() if column not in columns]
            if not values or any(value.dtype.kind not in "buif" for value in values):
                raise Problem(
                    f"row {len(found)} of '{name}' has something else than numbers, pictures, text and labels"
                )
            one = values[0] if len(values) == 1 else np.concatenate([np.ravel(value) for value in values])
            one = one[None] if one.ndim == 0 else one
            if found and one.shape != found[0].shape:
                raise Problem(
                    f"row {len(found)} of '{name}' has shape {one.shape}, and those before it {found[0].shape}"
                )
            found.append(one)
            _noted(columns, record)
        parts[split] = (start, len(found))
    return np.stack(found), columns, parts


def _noted(columns: dict[str, list[Any]], record: Row) -> None:
    for label, column in columns.items():
        value = _plain(record[label])
        if value.size != 1:
            raise Problem(
                f"row {len(column)} has a {label} of shape {value.shape}, where a label is one value; hand in examples, or "
                "batches (x, labels) with as many of both"
            )
        column.append(value.item())


# -- pictures ----------------------------------------------------------------------------------------------------------


def _picture(value: Any) -> Image.Image | None:
    """The picture that a value is: one of Pillow, or a file in bytes; None of anything else."""
    if isinstance(value, Image.Image):
        return value
    if isinstance(value, Mapping) and isinstance(value.get("bytes"), bytes):
        return Image.open(io.BytesIO(value["bytes"]))
    return None


def _pictures(
    name: str,
    rows: Mapping[str, Iterable[Row]],
    column: str,
    labels: Sequence[str],
    size: int | None,
    photos: Photos,
    key: str,
) -> tuple[NDArray[np.uint8], dict[str, list[Any]], dict[str, tuple[int, int]]]:
    """Pictures as bytes (N, C, H, W), mapped from a file of the cache that grows as they come."""
    said = repr((name, key, size, photos.background, photos.crop, column, list(labels)))
    kept = places.cache() / "rows" / f"{hashlib.sha256(said.encode()).hexdigest()[:16]}.npy"
    if not key or not kept.is_file() or not kept.with_suffix(".json").is_file():
        with places.writing(kept) as part:
            columns, parts = _streamed(part, name, rows, column, labels, size, photos)
        told = json.dumps({"columns": columns, "parts": parts})
        with places.writing(kept.with_suffix(".json")) as part:
            part.write_text(told, encoding="utf-8")
    told = json.loads(kept.with_suffix(".json").read_text(encoding="utf-8"))
    mapped: NDArray[np.uint8] = np.load(kept, mmap_mode="r", allow_pickle=False)
    if not key:  # an object of this process: nobody will ask for its copy again
        mapped = np.array(mapped)
        kept.unlink()
        kept.with_suffix(".json").unlink()
    return mapped, told["columns"], {split: tuple(ends) for split, ends in told["parts"].items()}


def _streamed(
    path: Path,
    name: str,
    rows: Mapping[str, Iterable[Row]],
    column: str,
    labels: Sequence[str],
    size: int | None,
    photos: Photos,
) -> tuple[dict[str, list[Any]], dict[str, tuple[int, int]]]:
    """Writes pictures one behind the other; the header of the file is written again when their number is known."""
    columns, parts, count = {label: list[Any]() for label in labels}, dict[str, tuple[int, int]](), 0
    shape: tuple[int, ...] = ()
    with path.open("wb") as file:
        for split, records in rows.items():
            start = count
            for record in records:
                picture = _picture(record[column])
                if picture is None:
                    raise Problem(f"row {count} of '{name}' has no picture in its column {column}")
                sides = (size, size) if size else photos.size(picture)
                mine = (1 if photos.is_grey(picture) else 3, *sides[::-1])
                if not shape:
                    shape = mine
                    _header(file, (0, *shape))
                if mine[1:] != shape[1:]:
                    raise Problem(
                        f"the images of '{name}' differ in size (row {count} is {mine[2]} x {mine[1]}, those before it "
                        f"{shape[2]} x {shape[1]}); resize them with --size 64, and --crop centre to keep their proportions"
                    )
                if mine[0] > shape[0]:
                    raise Problem(f"row {count} of '{name}' is in colour, and those before it are grey; make all alike")
                pixels = photos.pixels(picture, "L" if shape[0] == 1 else "RGB", sides).reshape(*sides[::-1], -1)
                file.write(np.ascontiguousarray(np.moveaxis(pixels, -1, 0)).tobytes())
                _noted(columns, record)
                count += 1
            parts[split] = (start, count)
        file.seek(0)
        _header(file, (count, *shape))
    return columns, parts


def _header(file: Any, shape: tuple[int, ...]) -> None:
    """The header of an .npy of bytes, which numpy pads so that its first axis may grow."""
    np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
