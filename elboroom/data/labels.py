"""Labels of one's own in a table: a row for each file of a folder, or a row for each example of an array."""

from __future__ import annotations

import warnings
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elboroom.core.problem import Problem
from elboroom.data.fields import numbers
from elboroom.data.lines import MOST_LABELS, TABLES, UTF8, lines, table

# Looked for in a folder of images, in any case of letters.
NAMES = ("labels.csv", "labels.tsv", "attributes.csv", "list_attr_celeba.csv", "list_attr_celeba.txt")
NONE = "none"  # the table that says: do not look for one
FILE_COLUMNS = ("file", "filename", "image", "image_id", "name")  # whatever their case
OF_CELEBA = "list_attr_celeba"  # the stem of its file
CELEBA = ("-1", "1")  # the values of an attribute of CelebA
PROSE = ("readme", "license", "licence", "copying", "notice", "changelog")  # how texts begin that are no tables

Rows = Iterator[tuple[int, list[str]]]  # the number of a line, its cells


class Labels(NamedTuple):
    """Labels by name with what their values are called, and a column of their numbers for each, (N, K)."""

    classes: dict[str, tuple[str, ...]]
    columns: NDArray[np.int64]


def lasting(labels: str | Path | None) -> str | None:
    """What was said of a table, as it holds from anywhere."""
    return None if labels is None else NONE if str(labels) == NONE else str(Path(labels).expanduser().resolve())


def chosen(labels: str | Path | None, folder: Path | None = None) -> Path | None:
    """The table that was said, or else the one that lies in a folder of images."""
    if labels is not None and str(labels) != NONE:
        return Path(labels).expanduser()
    found = [path for path in _beside(folder) if path.name.lower() in NAMES] if folder and labels is None else []
    found.sort(key=lambda path: NAMES.index(path.name.lower()))
    if len(found) > 1:
        both = " and ".join(path.name for path in found)
        raise Problem(f"{folder} has {both}; choose one with --labels FILE, or --labels {NONE} for neither")
    return found[0] if found else None


def warn_of_others(folder: Path) -> None:
    """Tells of tables in a folder of images that are not read, since they have none of the names that are looked for."""
    others = [path.name for path in _beside(folder) if not path.name.lower().startswith(PROSE)]
    if others:
        some = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        warnings.warn(
            f"{folder} has {some}, read for no labels: say which has them with --labels FILE, or --labels {NONE}",
            stacklevel=3,
        )


def _beside(folder: Path) -> list[Path]:
    """The tables in a folder."""
    return sorted(p for p in folder.iterdir() if p.suffix.lower() in (*TABLES, ".txt") and p.is_file())


def of_files(path: Path, folder: Path, files: Sequence[Path], encoding: str = UTF8) -> Labels:
    """The labels of the images of a folder: each has a row, and each row an image."""
    header, rows = _opened(path, encoding)
    place = _file_column(header)
    place = 0 if place is None else place
    known = _Files(folder, files)
    if known.found(header[place]):
        raise Problem(f"{path} has no header; its first line is for the image {header[place]}")
    columns = _columns(path, header)
    del columns[place]
    where, strangers, first = np.full(len(files), -1, np.int64), 0, ""
    for count, (number, cells) in enumerate(rows):
        name = cells[place].strip()
        matches = known.found(name)
        if len(matches) > 1:
            both = " or ".join(str(files[i].relative_to(folder)) for i in matches[:2])
            raise Problem(f"line {number} of {path}: '{name}' is ambiguous: {both}")
        if matches and where[matches[0]] >= 0:
            raise Problem(f"line {number} of {path} repeats {name}")
        if matches:
            where[matches[0]] = count
        else:
            strangers, first = strangers + 1, first or f"'{name}' in line {number}"
        _add(columns, [cell for k, cell in enumerate(cells) if k != place], path, number)
    if strangers:
        raise Problem(
            f"{path} names {_many(strangers, 'file')} that {_are(strangers)} not in {folder}: {first}; remove such rows, "
            f"or say --labels {NONE}"
        )
    missing = np.flatnonzero(where < 0)
    if len(missing):
        first_missing = files[missing[0]].relative_to(folder)
        raise Problem(
            f"{path} has no row for {_many(len(missing), 'image')} of {folder}: {first_missing}; add what is missing, or say "
            f"--labels {NONE}"
        )
    return _labels(columns, path, where)


def of_rows(path: Path, n: int, name: str, encoding: str = UTF8) -> Labels:
    """The labels of n examples, a row for each in their order; a column that only names files is no label."""
    header, rows = _opened(path, encoding)
    columns = _columns(path, header)
    for number, cells in rows:
        _add(columns, cells, path, number)
    if len(columns[0].codes) != n:
        raise Problem(
            f"{path} has {_many(len(columns[0].codes), 'row')} under its header, but '{name}' has {n} examples"
        )
    place = _file_column(header)
    if place is not None and len(columns[place].known) == n:
        del columns[place]
    return _labels(columns, path, np.arange(n))


def columns_of(path: Path, cells: Mapping[str, Sequence[tuple[int, str]]]) -> Labels:
    """Columns of a table by name, each cell with the number of its line, as labels."""
    columns = [_Column(name, ()) for name in cells]
    for column in columns:
        for number, cell in cells[column.name]:
            _add([column], [cell], path, number)
    return _labels(columns, path, np.arange(len(columns[0].codes)))


def _opened(path: Path, encoding: str) -> tuple[list[str], Rows]:
    """The header of a table and its rows."""
    if not path.is_file():
        raise Problem(f"the label file {path} does not exist")
    if path.suffix.lower() in TABLES:
        rows = table(path, encoding)
        header = next(rows)[1]
    elif path.suffix.lower() == ".txt":
        rows = _celeba(path, encoding)
        header = next(rows)[1]
    else:
        raise Problem(f"labels must be a .csv or .tsv file or {NAMES[-1]}, not {path}")
    if len(header) < 1 or not all(header):
        raise Problem(f"the first line of {path} must name every column; it is '{', '.join(header)}'")
    if twice := next((name for name in header if header.count(name) > 1), None):
        raise Problem(f"{path} has two columns '{twice}'")
    return header, rows


def _celeba(path: Path, encoding: str) -> Rows:
    """The rows of a file laid out as CelebA's: the count, the names, then `file v v v` where v is -1 or 1."""
    read = ((number, line.split()) for number, line in lines(path, encoding))
    number, first = next(read, (1, []))
    _, names = next(read, (2, []))
    if len(first) != 1 or not first[0].isdigit() or not names:
        raise Problem(
            f"{path} is not in the format of {NAMES[-1]}: the number of files, the names, then `file -1 1 ...`"
        )
    yield 2, ["file", *names]
    count = 0
    for number, cells in read:
        if not cells:
            continue
        if len(cells) != 1 + len(names):
            raise Problem(f"line {number} of {path} has {len(cells) - 1} values, but there are {len(names)} attributes")
        if wrong := next((cell for cell in cells[1:] if cell not in CELEBA), None):
            raise Problem(f"line {number} of {path} has the value '{wrong}'; attributes must be -1 or 1")
        count += 1
        yield number, cells
    if count != int(first[0]):
        raise Problem(f"the first line of {path} says {int(first[0]):,} files, but it has {count:,}")


def _file_column(header: Sequence[str]) -> int | None:
    """The column of file names: the first if it is called so, else another that is."""
    named = [name.lower() for name in header]
    if named[0] in FILE_COLUMNS:
        return 0
    return next((named.index(name) for name in FILE_COLUMNS if name in named), None)


class _Files:
    """The images of a folder by what a table may call them: their path in it or their name, with or without suffix."""

    def __init__(self, folder: Path, files: Sequence[Path]) -> None:
        self.by: list[dict[str, list[int]]] = [defaultdict(list) for _ in range(4)]
        for i, path in enumerate(files):
            inside = PurePosixPath(path.relative_to(folder).as_posix())
            for known, name in zip(self.by, (inside, inside.with_suffix(""), inside.name, inside.stem), strict=True):
                known[str(name)].append(i)

    def found(self, name: str) -> list[int]:
        """The images that are called so, in the strictest sense that fits any."""
        asked = str(PurePosixPath(name.replace("\\", "/")))
        return next((known[asked] for known in self.by if asked in known), [])


class _Column:
    """The values of one label as they come, numbered."""

    def __init__(self, name: str, listed: Sequence[str]) -> None:
        self.name, self.codes = name, array("i")
        self.known = {value: i for i, value in enumerate(listed)}


def _columns(path: Path, header: Sequence[str]) -> list[_Column]:
    """The columns of a table, still empty; an attribute of CelebA has two values also where one is never seen."""
    celeba = path.suffix.lower() not in TABLES or path.stem.lower() == OF_CELEBA
    return [_Column(name, CELEBA if celeba and place else ()) for place, name in enumerate(header)]


def _add(columns: Sequence[_Column], cells: Sequence[str], path: Path, number: int) -> None:
    for column, cell in zip(columns, cells, strict=True):
        value = cell.strip()
        if not value:
            raise Problem(f"line {number} of {path} has no value for '{column.name}'")
        column.codes.append(column.known.setdefault(value, len(column.known)))


def _labels(columns: Sequence[_Column], path: Path, rows: NDArray[np.int64]) -> Labels:
    """The columns at `rows`, their values in order: numbers by size, all else by the alphabet."""
    if not columns:
        raise Problem(f"{path} has no label column")
    classes, coded = dict[str, tuple[str, ...]](), []
    for column in columns:
        values = list(column.known)
        if len(values) > max(MOST_LABELS, len(rows) // 2):
            raise Problem(
                f"column '{column.name}' of {path} has {len(values):,} distinct values, too many for a label: leave that "
                f"column out, or say --labels {NONE}"
            )
        sizes = numbers(values)
        order = sorted(range(len(values)), key=values.__getitem__ if sizes is None else sizes.__getitem__)
        classes[column.name] = tuple(values[i] for i in order)
        coded.append(np.argsort(order)[np.frombuffer(column.codes, np.int32)][rows])
    return Labels(classes, np.stack(coded, 1).astype(np.int64))


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _are(count: int) -> str:
    return "are" if count != 1 else "is"
