"""Text as a data set: sentences that come one at a time, kept as numbers; the vocabulary is that of the training split."""

from __future__ import annotations

import hashlib
import re
import warnings
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, field_validator

from elboroom.core.problem import Problem, unknown
from elboroom.data.arrays import HOLDOUT
from elboroom.data.dataset import About, DataSet, Made
from elboroom.data.fields import FieldKind
from elboroom.data.lines import NONE, Example, examples, named
from elboroom.data.sequences import CONTEXT, SEQUENCES, TARGET, AboutSequence, Beside, Turns
from elboroom.data.stores import Ragged, chunks, runs
from elboroom.data.tokens import BYTES, UNK, Subwords, Tokeniser, Words, as_bytes, byte_pairs, most_frequent

Ints = NDArray[np.int64]

PAIRS = 8000  # the vocabulary of a byte-pair encoding where none is asked for
WORDS = 1 << 18  # spelled at a time


class Reading(BaseModel):
    """How text becomes tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tokens: Literal["words", "bpe", "bytes"] = Field(
        "words",
        description="tokens of text: whitespace words, byte-pair encoding learnt from the training split, bytes",
    )
    min_count: int = Field(1, ge=1, description="words seen fewer times than this in the training split become unknown")
    vocabulary: int = Field(
        0, ge=0, description=f"largest vocabulary, with four markers; 0 is all words, or {PAIRS} for byte-pair encoding"
    )
    longest: int = Field(200, ge=1, description="sentences with more words are left out, with a warning")
    text_column: str = Field("", description="the column of a table that holds the text")
    label_column: str = Field(
        "", description=f"its label columns, comma-separated; '{NONE}' for no labels, also in plain text"
    )
    target_column: str = Field("", description="its column of paired targets, one for each text")
    context_column: str = Field("", description="its column of contexts; in .jsonl a text or a list of turns")
    turn_separator: str = Field(
        "", description="what stands between two turns of a context that is one text, e.g. ' ||| '; a TAB if not said"
    )
    dialogue_column: str = Field(
        "",
        description="its column of what rows belong together, which are held out together; else those whose first turn is "
        "the same",
    )
    own_vocabulary: str = Field(
        "",
        description="which of context and target have tokens of their own, comma-separated; else they share those of x",
    )

    encoding: str = Field("utf-8", description="of the files, e.g. latin-1 or cp1252")

    @field_validator("encoding")
    @classmethod
    def _known(cls, name: str) -> str:
        try:
            plain = "\n".encode(name) == b"\n" and isinstance(b"\n".decode(name), str)
        except LookupError:
            raise ValueError(f"is no encoding ('{name}'); use utf-8, latin-1, cp1252, ...") from None
        if not plain:
            raise ValueError(
                f"must keep line ends as they are in ASCII, which '{name}' does not; convert the file to utf-8"
            )
        return name

    @property
    def columns(self) -> dict[str, str]:
        """The columns of sequences beside the text, by what they are."""
        named = {CONTEXT: self.context_column, TARGET: self.target_column}
        return {name: column for name, column in named.items() if column}


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sentences as they were read: their words as places in `types`, end to end."""

    name: str
    reading: Reading
    types: list[str]
    ids: NDArray[np.int32]
    offsets: Ints  # (N + 1,)
    labels: Ints  # (N, K)
    classes: dict[str, tuple[str, ...]]
    read: dict[str, int]  # how many sentences each split had when it was read
    kinds: Mapping[str, FieldKind] = field(default_factory=dict)  # of its labels, where they are not the usual ones
    tokeniser: Tokeniser | None = None  # handed in; learnt where there is none
    beside: Mapping[str, Turns] = field(default_factory=dict)  # contexts and targets
    own: tuple[str, ...] = ()  # which of these have tokens of their own; the others share those of x
    others: Mapping[str, Tokeniser] = field(default_factory=dict)  # of these, handed in
    told: Ints | None = None  # the dialogue of each row, (N,), where a column says it

    def sentences(self, index: Ints) -> list[str]:
        """The sentences at `index`."""
        return list(self._sentences(index))

    def turns(self, name: str, index: Ints) -> list[list[str]]:
        """The turns of a context or target at `index`."""
        side = self.beside[name]
        return [list(self._sentences(np.arange(side.rows[i], side.rows[i + 1]), side)) for i in index]

    def dialogues(self, index: Ints) -> Ints | None:
        """The dialogue of each of these rows, which are held out together: as a column says, else by their first turns.

        None of sentences that have nothing beside them. Where nothing was said before, the sentence is the first turn.
        """
        return None if self._dialogues is None else self._dialogues[index]

    @cached_property
    def _dialogues(self) -> Ints | None:
        if self.told is not None or not self.beside:
            return self.told
        first = [self.ids[start:end].tobytes() for start, end in pairwise(self.offsets.tolist())]
        if (turns := self.beside.get(CONTEXT)) is not None:
            ends = turns.offsets.tolist()
            for row, (turn, after) in enumerate(pairwise(turns.rows.tolist())):
                first[row] = turns.ids[ends[turn] : ends[turn + 1]].tobytes() if turn < after else first[row]
        known = {words: number for number, words in enumerate(dict.fromkeys(first))}
        return np.array([known[words] for words in first], np.int64)

    def _sentences(self, index: Ints, of: Corpus | Turns | None = None) -> Iterator[str]:
        side = of or self
        for start, end in zip(side.offsets[:-1][index].tolist(), side.offsets[1:][index].tolist(), strict=True):
            yield " ".join([self.types[i] for i in side.ids[start:end].tolist()])

    def tokenised(self, splits: Mapping[str, Ints], holdout: float = 0.0) -> DataSet:
        """The data set, its tokens learnt from the split "train" and from nothing else, when they are first asked for."""
        asked = self.reading
        if asked.tokens == "bytes" and asked.vocabulary not in (0, BYTES):
            raise Problem(f"--tokens bytes always has {BYTES} ids, not {asked.vocabulary}; remove --vocabulary")
        if asked.tokens == "bytes" and asked.min_count > 1:
            raise Problem("--min-count has no effect with --tokens bytes; remove it")
        sizes = {name: len(values) for name, values in self.classes.items()}
        beside = {
            name: AboutSequence(shared=name not in self.own, turns=turns.most) for name, turns in self.beside.items()
        }
        draft = About(self.name, "tokens", (0,), len(splits["train"]), sizes, 0, dict(self.kinds), beside)
        tokens = partial(self._tokens, splits["train"])
        return DataSet(draft, tokens, splits, self.labels, None, holdout, self.hash, None, self, self.classes)

    def _tokens(self, train: Ints) -> Made:
        tokeniser, store = self._fitted(train)
        longest = int(store.lengths(np.arange(len(store))).max(initial=0))
        beside = {name: self._beside(name, turns, tokeniser, train) for name, turns in self.beside.items()}
        return Made((longest,), tokeniser.size, store, tokeniser, beside)

    def read_with(self, tokeniser: Tokeniser | None, others: Mapping[str, Tokeniser]) -> Corpus:
        """The same sentences for tokens that were learnt elsewhere: those of x, of what is beside it, or both."""
        own = tuple(name for name in self.beside if name in {*self.own, *others})
        return replace(self, tokeniser=tokeniser, others=others, own=own)

    def _fitted(self, train: Ints) -> tuple[Tokeniser, Ragged]:
        words = np.diff(self.offsets) + 1
        shared = [(turns, turns.of(train)) for name, turns in self.beside.items() if name not in self.own]
        tokeniser = self.tokeniser or self._learnt([(self, train), *shared])
        if isinstance(tokeniser, Words):
            return tokeniser, Ragged(self.ids, self.offsets, self._table(tokeniser))
        return tokeniser, Ragged(*self._spelled(tokeniser, self), words=words)

    def _beside(self, name: str, turns: Turns, shared: Tokeniser, train: Ints) -> Beside:
        """A context or target in the tokens of x, in those that were handed in for it, or in its own."""
        tokeniser = shared
        if name in self.own:
            tokeniser = self.others.get(name) or self._learnt([(turns, turns.of(train))])
        if isinstance(tokeniser, Words):
            store = turns.joined(self._table(tokeniser)[turns.ids], turns.offsets)
        else:
            store = turns.joined(*self._spelled(tokeniser, turns))
        return Beside(store, tokeniser, name not in self.own, turns.most)

    def _learnt(self, sides: Sequence[tuple[Corpus | Turns, Ints]]) -> Tokeniser:
        """Tokens of these sentences of each side."""
        asked = self.reading
        if asked.tokens == "words":
            seen = np.zeros(len(self.types), np.int64)
            for side, index in sides:
                counts = np.diff(side.offsets)
                chosen = np.zeros(len(counts), bool)
                chosen[index] = True
                seen += np.bincount(side.ids[np.repeat(chosen, counts)], minlength=len(self.types))
            return most_frequent(self.types, seen, asked.min_count, asked.vocabulary)[0]
        if asked.tokens == "bytes":
            return as_bytes()
        sentences = chain.from_iterable(self._sentences(index, side) for side, index in sides)
        return byte_pairs(sentences, asked.vocabulary or PAIRS, asked.min_count)

    def _table(self, words: Words) -> NDArray[np.int32]:
        """The token of every type."""
        return np.array([words.ids.get(word, UNK) for word in self.types], np.int32)

    def _spelled(self, pieces: Subwords, side: Corpus | Turns) -> tuple[NDArray[np.int32], Ints]:
        """All sentences of a side in pieces, end to end: every word is spelled once."""
        spelling, places = pieces.spelled(self.types)
        counts = np.diff(places)[side.ids]  # pieces of every word
        counts[side.offsets[:-1]] -= not pieces.lead  # the space before a sentence
        ends = np.concatenate([[0], np.cumsum(counts)])
        ids = np.empty(ends[-1], np.int32)
        for at in range(0, len(side.ids), WORDS):
            words, some = side.ids[at : at + WORDS], counts[at : at + WORDS]
            ids[ends[at] : ends[at + len(words)]] = spelling[runs(places[1:][words] - some, some)]
        return ids, ends[side.offsets]

    @cached_property
    def hash(self) -> str:
        """SHA-256 of sentences, labels, splits as read, and reading; what is held out later does not change it."""
        digest = hashlib.sha256(
            repr((self.reading.model_dump(exclude_defaults=True), self.classes, self.read)).encode()
        )
        for word in self.types:
            digest.update(f"{word}\n".encode())
        for kept in (self.ids, self.offsets, self.labels):
            for part in chunks(kept):
                digest.update(part)
        for name, turns in sorted(self.beside.items()):
            digest.update(repr((name, name in self.own)).encode())
            for part in (part for kept in (turns.ids, turns.offsets, turns.rows) for part in chunks(kept)):
                digest.update(part)
        return digest.hexdigest()


class _Label:
    """The values of one label as they come, numbered."""

    def __init__(self, name: str, listed: Sequence[str] | None) -> None:
        self.name, self.listed, self.codes = name, listed is not None, {v: i for i, v in enumerate(listed or ())}
        self.column = array("i")

    def add(self, value: str, split: str, data: str) -> None:
        if value not in self.codes and (self.listed or split != "train"):
            raise Problem(f"the {split} split of '{data}' has {self.name} '{value}', which no training example has")
        self.column.append(self.codes.setdefault(value, len(self.codes)))

    def sorted(self) -> tuple[tuple[str, ...], Ints]:
        """The values, those that were not listed in order, and the column of their numbers, (N,)."""
        values = list(self.codes) if self.listed else sorted(self.codes, key=_natural)
        place = np.array([values.index(value) for value in self.codes], np.int64)
        return tuple(values), place[np.frombuffer(self.column, np.int32)]


class _Side:
    """What is beside the sentences, as it comes."""

    def __init__(self) -> None:
        self.ids, self.offsets, self.rows = array("i"), array("q", [0]), array("q", [0])

    def add(self, turns: Iterable[Sequence[str]], known: dict[str, int]) -> None:
        for words in filter(None, turns):
            self.ids.extend([known.setdefault(word, len(known)) for word in words])
            self.offsets.append(len(self.ids))
        self.rows.append(len(self.offsets) - 1)

    def read(self) -> Turns:
        offsets, rows = (np.frombuffer(kept, np.int64) for kept in (self.offsets, self.rows))
        return Turns(np.frombuffer(self.ids, np.int32), offsets, rows)


def _own(name: str, reading: Reading, beside: Sequence[str], own: Sequence[str]) -> tuple[str, ...]:
    """The sequences with tokens of their own: what the data set says, and what the user says."""
    said = [which.strip() for which in reading.own_vocabulary.split(",") if which.strip()]
    for which in said:
        if which not in SEQUENCES:
            raise unknown("field of --own-vocabulary", which, SEQUENCES)
        if which not in beside:
            raise Problem(f"--own-vocabulary {which}: '{name}' has no {which}")
    return tuple(which for which in beside if which in {*own, *said})


def _refuse_columns(name: str, reading: Reading, beside: Sequence[str], dialogues: bool) -> None:
    """Refuses a column beside the text where none is read."""
    said = reading.columns | ({"dialogue": reading.dialogue_column} if reading.dialogue_column else {})
    if which := next((which for which in said if which not in [*beside, *(["dialogue"] * dialogues)]), None):
        raise Problem(f"'{name}' is read without a {which}; --{which}-column is for .tsv, .csv and .jsonl files")


def _natural(value: str) -> tuple[bool, int, str]:
    """Whole numbers by size, before all else."""
    number = bool(re.fullmatch(r"-?\d{1,18}", value))
    return not number, int(value) if number else 0, value


def gather(
    name: str,
    splits: Mapping[str, Iterable[Example]],
    labels: Mapping[str, Sequence[str] | None] | None = None,
    reading: Reading | None = None,
    holdout: float = 0.0,
    kinds: Mapping[str, FieldKind] | None = None,
    beside: Sequence[str] = (),
    own: Sequence[str] = (),
    dialogues: bool = False,
) -> DataSet:
    """The data set of sentences that come one by one, with a value for each of `labels` and turns for each of `beside`.

    The values of a label are listed, or else those of the training split, sorted. Blank sentences are left out. `own` are
    the sequences beside x that have tokens of their own, as the user may say of others too. With `dialogues` each example
    says at its end which it belongs to.
    """
    reading = reading or Reading()
    _refuse_columns(name, reading, beside, dialogues)
    own = _own(name, reading, beside, own)
    sides = [_Side() for _ in beside]
    known: dict[str, int] = {}
    numbers, told = dict[str, int](), array("q")
    ids, offsets, columns = array("i"), array("q", [0]), [_Label(*entry) for entry in (labels or {}).items()]
    rows, long = dict[str, Ints](), dict[str, int]()
    for split, found in sorted(splits.items(), key=lambda item: item[0] != "train"):
        start, long[split] = len(offsets) - 1, 0
        for text, values, *more in found:
            words = text.split()
            said = [[turn.split() for turn in turns] for turns in more[0]] if more else []
            length = max(map(len, chain([words], *said))) if said else len(words)
            if not words or length > reading.longest:
                long[split] += bool(words)
                continue
            for side, turns in zip(sides, said, strict=True):
                side.add(turns, known)
            ids.extend([known.setdefault(word, len(known)) for word in words])
            offsets.append(len(ids))
            for label, value in zip(columns, values, strict=True):
                label.add(value, split, name)
            if dialogues:
                told.append(numbers.setdefault(str(more[1]), len(numbers)))
        rows[split] = np.arange(start, len(offsets) - 1)
        if not len(rows[split]):
            most = f" of at most {reading.longest} words" if long[split] else ""
            raise Problem(f"the {split} split of '{name}' has no sentence{most}")
    if any(long.values()):
        counts = ", ".join(f"{count:,} of {split}" for split, count in long.items() if count)
        warnings.warn(f"'{name}': left out sentences of more than {reading.longest} words: {counts}", stacklevel=2)
    coded = {label.name: label.sorted() for label in columns}
    read = {which: side.read() for which, side in zip(beside, sides, strict=True)}
    if empty := read[CONTEXT].empty if CONTEXT in read else 0:
        warnings.warn(f"'{name}': rows with an empty context, whose texts answer nothing: {empty:,}", stacklevel=2)
    return Corpus(
        name,
        reading,
        list(known),
        np.frombuffer(ids, np.int32),
        np.frombuffer(offsets, np.int64),
        np.column_stack([np.zeros((len(offsets) - 1, 0), np.int64), *(column for _, column in coded.values())]),
        {label: values for label, (values, _) in coded.items()},
        {split: len(some) for split, some in rows.items()},
        kinds or {},
        beside=read,
        own=own,
        told=np.frombuffer(told, np.int64) if dialogues else None,
    ).tokenised(rows, holdout)


def handed(sentences: Sequence[str], labels: Sequence[object] | None = None, reading: Reading | None = None) -> DataSet:
    """Sentences that were handed in, with a label each or none; a tenth is held out by default."""
    if isinstance(sentences, str) or not all(isinstance(sentence, str) for sentence in sentences):
        raise Problem("a list must hold text, one string per sentence; pass numbers as an array")
    if labels is not None and len(labels) != len(sentences):
        raise Problem(f"there are {len(sentences)} sentences but {len(labels)} labels")
    values = [()] * len(sentences) if labels is None else [(str(label),) for label in labels]
    read = {"train": zip(sentences, values, strict=True)}
    return gather("array", read, None if labels is None else {"label": None}, reading, HOLDOUT)


def load(path: Path, reading: Reading | None = None) -> DataSet:
    """The text of a file, or of the files of a folder that are called train, valid (val, dev) and test.

    Other files of a folder are training text where none is called train, and are not read where one is. Where no file is
    called test, a tenth of the sentences is held out.
    """
    reading = reading or Reading()
    parts = named(path) if path.is_dir() else {"train": [path]}
    labels, read = examples(
        parts,
        reading.text_column,
        reading.label_column,
        reading.columns,
        reading.turn_separator,
        reading.encoding,
        reading.dialogue_column,
    )
    holdout = 0.0 if "test" in parts else HOLDOUT
    beside, dialogues = list(reading.columns), bool(reading.dialogue_column)
    return gather(str(path), read, dict.fromkeys(labels), reading, holdout, beside=beside, dialogues=dialogues)
