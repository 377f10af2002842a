"""Lines: the sentences and labels in files, one at a time: plain text, tables, records, and folders of them."""

from __future__ import annotations

import codecs
import csv
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elboroom.core.problem import Problem, nearest

Turns = tuple[str, ...]  # of a context; a paired target is one
Example = (
    tuple[str, tuple[str, ...]]
    | tuple[str, tuple[str, ...], tuple[Turns, ...]]
    | tuple[str, tuple[str, ...], tuple[Turns, ...], str]
)  # a sentence, labels, what is beside, its dialogue
Parts = Mapping[str, Sequence[Path]]  # the files of each split

PLAIN, TABLES, RECORDS = (".txt", ".text"), (".tsv", ".csv"), (".jsonl", ".ndjson", ".json")
SUFFIXES = PLAIN + TABLES + RECORDS
SPLITS = {"train": "train", "valid": "valid", "validation": "valid", "val": "valid", "dev": "valid", "test": "test"}
TEXT_COLUMNS, LABEL = ("text", "sentence"), "label"  # whatever their case
CONTEXT = "context"  # of what is beside a text, the one that has turns
DIALOGUE = "dialogue"  # the column that says which rows belong together
TAB = "\t"  # between two turns, where nothing else is said
NONE = "none"  # the label column that says: no labels
LINE = 1 << 20  # bytes
MOST_LABELS = 1000
FEW_VALUES, SENTENCE = 20, 3  # values of a column that may well be a label; words of a cell that may well be a sentence
UTF8 = "utf-8"
FEW_WORDS, LABEL_LIKE = (
    20,
    re.compile(r"-?\d{1,3}|__label__\S+"),
)  # what begins lines of labelled text of other programs


class Undecodable(Problem):
    """A file that is in another encoding than was said."""


def files(folder: Path) -> list[Path]:
    """The text files under a folder."""
    found = (path for path in sorted(folder.rglob("*")) if path.suffix.lower() in SUFFIXES and path.is_file())
    return [path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts)]


def named(folder: Path) -> dict[str, list[Path]]:
    """The text files under a folder by the split that their names, or the folders in it, say."""
    parts: dict[str, list[Path]] = {"train": [], "valid": [], "test": []}
    other = []
    for path in files(folder):
        said = {SPLITS[word] for word in re.split(r"[^a-z]+", str(path.relative_to(folder)).lower()) if word in SPLITS}
        if len(said) > 1:
            raise Problem(f"{path} names more than one split ({' and '.join(sorted(said))}); rename it")
        parts[said.pop()].append(path) if said else other.append(path)
    parts["train"] = parts["train"] or other
    if not any(parts.values()):
        raise Problem(f"{folder} has no text files ({', '.join(SUFFIXES)})")
    if not parts["train"]:
        raise Problem(f"{folder} has {(parts['test'] or parts['valid'])[0].name} but no training file")
    return {split: paths for split, paths in parts.items() if paths}


def examples(
    parts: Parts,
    text_column: str = "",
    label_column: str = "",
    beside: Mapping[str, str] | None = None,
    separator: str = "",
    encoding: str = UTF8,
    dialogue_column: str = "",
) -> tuple[tuple[str, ...], dict[str, Iterator[Example]]]:
    """The names of the labels, and the sentences of each split with their labels.

    Plain lines are sentences, or `label TAB text` where all have one TAB and few labels are before it. Tables and records
    name their columns: text is called text or sentence, labels are called label, unless others are said. `beside` are the
    columns of contexts and targets, `separator` what stands between two turns of a context, or else a TAB. The column of
    dialogues says which rows belong together.
    """
    beside = beside or {}
    columns = {**beside, DIALOGUE: dialogue_column} if dialogue_column else beside
    if separator and CONTEXT not in beside:
        raise Problem("--turn-separator is for contexts, and none is read; say which column: --context-column")
    every = [path for paths in parts.values() for path in paths]
    plain = [path for path in every if _is_plain(path, text_column, columns, encoding)]
    if plain and len(plain) < len(every):
        table = next(path for path in every if path not in plain)
        raise Problem(f"{plain[0]} is plain text but {table} has columns; use one kind of file")
    if plain and text_column:
        raise Problem(f"plain text has no column '{text_column}'; --text-column is for .tsv, .csv and .jsonl files")
    if plain and columns:
        which, column = next(iter(columns.items()))
        raise Problem(f"plain text has no column '{column}'; --{which}-column is for .tsv, .csv and .jsonl files")
    if plain:
        tabs = label_column != NONE and _has_labels(parts, label_column, encoding)
        read = {split: _lines_of(paths, tabs, encoding) for split, paths in parts.items()}
        return (label_column or "label",) if tabs else (), read
    labels = _label_columns(every, label_column, encoding)
    return labels, {
        split: _cells_of(paths, text_column, labels, columns, separator or TAB, encoding)
        for split, paths in parts.items()
    }


def lines(path: Path, encoding: str = UTF8) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers; a line ends with a line feed and with nothing else."""
    place = number = 0
    try:
        with open(path, "rb") as file:
            while line := file.readline(LINE + 1):
                number += 1
                if len(line) > LINE:
                    raise Problem(f"line {number} of {path} has more than {LINE:,} bytes; write one sentence per line")
                yield number, _decoded(line, encoding, path, number, place)
                place += len(line)
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror or error}") from error


def _decoded(line: bytes, encoding: str, path: Path, number: int, place: int) -> str:
    try:
        text = line.decode(encoding)
    except UnicodeDecodeError as error:
        at = f"byte 0x{line[error.start]:02x} at offset {place + error.start:,}, in line {number}"
        other = "latin-1, cp1252" if codecs.lookup(encoding).name == UTF8 else "utf-8"
        raise Undecodable(
            f"{path} is not {encoding.upper()} text: {at}; say what it is with --encoding ({other}, ...)"
        ) from error
    if "\0" in text:
        at = f"offset {place + line.index(0):,}, in line {number}"
        raise Problem(f"{path} is not {encoding.upper()} text: it has a NUL byte at {at}")
    return text.removeprefix("\ufeff") if number == 1 else text


def _is_plain(path: Path, text_column: str, beside: Mapping[str, str], encoding: str) -> bool:
    """Whether lines are sentences; so are those of a .tsv file whose first line names no column of text or of labels."""
    if path.suffix.lower() != ".tsv":
        return path.suffix.lower() not in TABLES + RECORDS
    first = next((line for _, line in lines(path, encoding)), "").split("\t")
    said = text_column or any(name.strip() in beside.values() for name in first)
    return not said and not any(name.strip().lower() in (*TEXT_COLUMNS, LABEL) for name in first)


def _has_labels(parts: Parts, label_column: str, encoding: str) -> bool:
    """Whether all plain lines are `label TAB text`."""
    one: tuple[int, Path] | None = None
    other: tuple[int, Path, int] | None = None
    count, before, words = 0, set[str](), set[str]()
    for split, path in ((split, path) for split, paths in parts.items() for path in paths):
        for number, line in lines(path, encoding):
            tabs = line.count("\t")
            if not line.strip():
                continue
            one = one or ((number, path) if tabs else None)
            other = other or ((number, path, tabs) if tabs != 1 else None)
            if split == "train":
                count += 1
                before |= {line.partition("\t")[0].strip()} if len(before) <= MOST_LABELS else set()
                words |= {line.split(maxsplit=1)[0]} if len(words) <= FEW_WORDS else set()
    first = parts["train"][0]
    if one is None:
        if label_column:
            raise Problem(f"{first} has no label '{label_column}'; labelled lines are label TAB text")
        _warn_of_words(first, words, count)
        return False
    mend = f"write every line as label TAB text, or use --label-column {NONE} to read a TAB as a space"
    if other is not None:
        many = f"{other[2]} TABs" if other[2] else f"no TAB, unlike line {one[0]} of {one[1]}"
        raise Problem(f"line {other[0]} of {other[1]} has {many}; {mend}")
    if not label_column and len(before) > min(MOST_LABELS, max(2, count // 2)):
        raise Problem(f"{first} has a TAB in every line, but too many distinct texts before it for labels; {mend}")
    return True


def _warn_of_words(path: Path, words: set[str], count: int) -> None:
    """Says that what looks like a label and a space is read as a word."""
    if count >= FEW_WORDS and 1 < len(words) <= FEW_WORDS and all(map(LABEL_LIKE.fullmatch, words)):
        said = " or ".join(sorted(words)[:3]) + (" ..." if len(words) > 3 else "")
        warnings.warn(
            f"every line of {path} begins with {said} and a space, which is read as its first word; if that is a label, write "
            "label TAB text",
            stacklevel=2,
        )


def _lines_of(paths: Sequence[Path], labelled: bool, encoding: str) -> Iterator[Example]:
    for path in paths:
        number = 0
        for number, line in lines(path, encoding):
            label, _, text = line.partition("\t") if labelled else ("", "", line)
            if labelled and line.strip() and not (label.strip() and text.strip()):
                raise Problem(f"line {number} of {path} has nothing {'after' if label.strip() else 'before'} its TAB")
            if text.strip():
                yield text, (label.strip(),) if labelled else ()
        if not number:
            raise Problem(f"{path} is empty; write one sentence per line")


def _records(path: Path, encoding: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows as name and value, with the numbers of their lines."""
    return _objects(path, encoding) if path.suffix.lower() in RECORDS else _rows(path, encoding)


def _objects(path: Path, encoding: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in lines(path, encoding):
        try:
            entry = json.loads(line) if line.strip() else {}
        except (ValueError, RecursionError) as error:
            raise Problem(f"line {number} of {path} is not valid JSON ({error}); write one object per line") from error
        if not isinstance(entry, dict):
            raise Problem(f"line {number} of {path} is not an object; write one object per line")
        if entry:
            yield number, entry


def table(path: Path, encoding: str = UTF8) -> Iterator[tuple[int, list[str]]]:
    """The rows of a .tsv or .csv file with the numbers of their lines, its header first; all have as many cells."""
    style: dict[str, Any] = {"strict": True}
    if path.suffix.lower() == ".tsv":
        style = {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    reader = csv.reader((line for _, line in lines(path, encoding)), **style)
    try:
        header = [name.strip() for name in next(reader, [])]
        yield reader.line_num, header
        for row in filter(None, reader):
            if len(row) != len(header):
                raise Problem(
                    f"line {reader.line_num} of {path} has {len(row)} cells, but its header has {len(header)}"
                )
            yield reader.line_num, row
    except csv.Error as error:
        raise Problem(f"line {reader.line_num} of {path} cannot be read as a table: {error}") from error


def header(path: Path, encoding: str = UTF8) -> list[str]:
    """What the first line of a table calls its columns; nothing where it has numbers, or is no table."""
    if path.suffix.lower() not in TABLES or not path.is_file():
        return []
    names = next(table(path, encoding))[1]
    return [] if all(map(is_number, names)) else [name or f"column {at}" for at, name in enumerate(names, 1)]


@dataclass
class _Column:
    """What the cells of a column are: empty, numbers, or words."""

    name: str
    numbers: int = 0
    odd: int = 0  # cells that are no numbers
    empty: int = 0
    first_odd: str = ""
    first_empty: int = 0  # its line
    words: int = 0  # of all its cells
    values: set[str] = field(default_factory=set)

    def see(self, line: int, cell: str) -> None:
        """Counts one more cell."""
        cell = cell.strip()
        if not cell:
            self.empty += 1
            self.first_empty = self.first_empty or line
        elif is_number(cell):
            self.numbers += 1
        else:
            self.odd += 1
            self.first_odd = self.first_odd or f"'{cell[:20]}' in line {line}"
        self.words += len(cell.split())
        self.values |= {cell} if cell and len(self.values) <= FEW_VALUES else set()

    @property
    def of_words(self) -> bool:
        """Whether it holds words, and not numbers with a few words among them."""
        return self.odd >= max(1, self.numbers)

    @property
    def of_sentences(self) -> bool:
        """Whether it looks like the text of a data set."""
        return self.of_words and self.words >= SENTENCE * (self.odd + self.numbers)

    @property
    def wrong(self) -> str:
        """What is missing in it, or out of place, and where."""
        said = [f"{self.empty:,} empty {_cells(self.empty)} (first in line {self.first_empty})"] if self.empty else []
        if self.odd and not self.of_words:
            said.append(f"{self.odd:,} {_cells(self.odd)} without a number ({self.first_odd})")
        return f"column {self.name} has {' and '.join(said)}" if said else ""


def _cells(count: int) -> str:
    return "cell" if count == 1 else "cells"


def is_number(cell: str) -> bool:
    """Whether a cell is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def why_no_numbers(path: Path, label_column: str = "", encoding: str = UTF8) -> str:
    """What keeps a table with columns of numbers from being a table of numbers, and what to do; else nothing."""
    if path.suffix.lower() not in TABLES or not path.is_file():
        return ""
    try:
        columns = _seen(path, encoding)
    except Problem:  # no table; as text it may be read, or refused for its own reasons
        return ""
    asked = [name for name in map(str.strip, label_column.split(",")) if name not in ("", NONE)]
    labels = asked or [column.name for column in columns if column.name.lower() == LABEL and not label_column]
    free = [column for column in columns if column.name not in labels]
    words = [column for column in free if column.of_words]
    if words == free:
        return ""
    if path.suffix.lower() == ".tsv" and len(words) >= len(columns) / 2:  # lines of text with a TAB, maybe
        return ""
    for name in asked:
        _column(path, [column.name for column in columns], name, "label")
    wrong = [column.wrong for column in free if column.wrong]
    said = [f"{'; '.join(wrong)}; fill them or drop those rows"] if wrong else []
    said = [*said, *_advice(words, free, asked)]
    return f"{path}: {'. '.join(part if part is said[0] else 'C' + part[1:] for part in said)}" if said else ""


def _seen(path: Path, encoding: str) -> list[_Column]:
    """The columns of a table, all its rows counted; none of one that names its text, or no columns."""
    rows = table(path, encoding)
    header = next(rows)[1]
    if any(name.lower() in TEXT_COLUMNS or is_number(name) for name in header):
        return []
    columns = [_Column(name) for name in header]
    for line, cells in rows:
        for column, cell in zip(columns, cells, strict=True):
            column.see(line, cell)
    return columns


def _advice(words: Sequence[_Column], free: Sequence[_Column], labels: Sequence[str]) -> list[str]:
    """What to do with columns of words: they are labels, or one of them is the text."""
    if not words:
        return []
    names = [column.name for column in words]
    hold = f"column{'s' * (len(names) > 1)} {', '.join(names)} hold{'s' * (len(names) == 1)} words"
    text = next((column for column in words if column.of_sentences), None)
    if text is None:
        return [f"{hold}: pass --label-column {','.join([*labels, *names])}; for text, --text-column"]
    few = [column.name for column in free if column is not text and 1 < len(column.values) <= FEW_VALUES]
    label = ",".join(labels) or next(iter(few), "")
    return [f"{hold}: for text try --text-column {text.name}{f' --label-column {label}' if label else ''}"]


def _rows(path: Path, encoding: str) -> Iterator[tuple[int, dict[str, Any]]]:
    rows = table(path, encoding)
    _, header = next(rows)
    return ((number, dict(zip(header, row, strict=True))) for number, row in rows)


def _column(path: Path, names: Sequence[str], wanted: str, what: str) -> str:
    if wanted in names:
        return wanted
    hint = nearest(wanted, names) or f"; it has: {', '.join(names)}"
    raise Problem(f"{path} has no {what} column '{wanted}'{hint}")


def _likely(path: Path, names: Sequence[str]) -> str:
    """The column that holds the text where none is said."""
    likely = [name for name in names if name.lower() in TEXT_COLUMNS] or (list(names) if len(names) == 1 else [])
    if len(likely) != 1:
        raise Problem(
            f"which column of {path} is the text? Set --text-column to one of: {', '.join(names)} "
            "(a table of numbers has numbers in every column; name others with --label-column)"
        )
    return likely[0]


def _label_columns(paths: Sequence[Path], said: str, encoding: str) -> tuple[str, ...]:
    if said:
        asked = [name.strip() for name in said.split(",")]
        return () if asked == [NONE] else tuple(dict.fromkeys(name for name in asked if name))
    has = {path: _label_of(next((entry for _, entry in _records(path, encoding)), {})) for path in paths}
    one = next((path for path in paths if has[path]), paths[0])
    for path in paths:
        if has[path] != has[one]:
            other = f"a column '{has[path]}'" if has[path] else "none"
            raise Problem(
                f"{one} has a column '{has[one]}' and {path} has {other}; use --label-column {NONE} to ignore labels"
            )
    return (has[one],) if has[one] else ()


def _label_of(entry: Mapping[str, Any]) -> str:
    """The column of labels where none is said, if there is one."""
    return next((name for name in entry if name.lower() == LABEL), "")


def _cells_of(
    paths: Sequence[Path],
    text_column: str,
    labels: Sequence[str],
    columns: Mapping[str, str],
    separator: str,
    encoding: str,
) -> Iterator[Example]:
    beside = {what: name for what, name in columns.items() if what != DIALOGUE}
    for path in paths:
        column = ""
        for number, entry in _records(path, encoding):
            if not column:
                names = list(entry)
                rest = [name for name in names if name not in columns.values()]
                column = _column(path, names, text_column, "text") if text_column else _likely(path, rest)
                for what, name in (*((("label", name)) for name in labels), *columns.items()):
                    _column(path, names, name, what)
            for name in (column, *labels, *columns.values()):
                if entry.get(name) is None or (entry[name] == "" and name != columns.get(CONTEXT)):
                    raise Problem(f"line {number} of {path} has no value for '{name}'")
            if not isinstance(entry[column], str):
                raise Problem(f"line {number} of {path} has {type(entry[column]).__name__} in '{column}', not text")
            values = tuple(str(entry[name]).strip() for name in labels)
            turns = tuple(_turns(entry[name], what, name, number, path, separator) for what, name in beside.items())
            if DIALOGUE in columns:
                yield entry[column], values, turns, str(entry[columns[DIALOGUE]]).strip()
            else:
                yield (entry[column], values, turns) if beside else (entry[column], values)
        if not column:
            raise Problem(f"{path} is empty; write a header and rows, or one JSON object per line")


def _turns(value: Any, what: str, column: str, number: int, path: Path, separator: str) -> Turns:
    """The turns of a context: a text parted at the separator, or a list; of what begins a dialogue none. A target is a text."""
    if what == CONTEXT and isinstance(value, str):
        value = value.split(separator) if value.strip() else []
    turns = value if isinstance(value, list) and what == CONTEXT else [value]
    for turn in turns:
        if not isinstance(turn, str):
            form = "a text or a list of texts" if what == CONTEXT else "text"
            raise Problem(f"line {number} of {path} has {type(turn).__name__} in '{column}', not {form}")
        if not turn.strip():
            raise Problem(f"line {number} of {path} has a blank {'turn' if len(turns) > 1 else what} in '{column}'")
    return tuple(turns)
