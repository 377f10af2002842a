"""DataSet: examples kept as they came (bytes, bits, reals, tokens) and gathered by index."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, cast, final, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elboroom.core.problem import Problem, unknown
from elboroom.data.fields import Field, FieldKind, checked_kind, usual
from elboroom.data.sequences import AboutSequence, Beside
from elboroom.data.stores import Bits as Bits
from elboroom.data.stores import Bytes as Bytes
from elboroom.data.stores import Ragged, Store, chunks
from elboroom.data.stores import Reals as Reals
from elboroom.data.stores import runs as runs
from elboroom.data.tokens import UNK, Tokeniser

Kind = Literal["pixels", "vectors", "tokens"]
Index = NDArray[np.integer[Any]] | Tensor | Sequence[int]

SEED = 20_140_101  # of the split that hold_out draws: fixed, so that a run and its evaluation see the same rows


@dataclass(frozen=True)
class About:
    """What a model needs to know of a data set; kept in spec.json so that a run loads without the data."""

    name: str  # registry name, or the path or "array" of a user's own
    kind: Kind
    shape: tuple[int, ...]  # (C, H, W), (D,), or (the most tokens that are predicted of a sentence,)
    n: int  # training examples
    labels: dict[str, int]  # what is observed beside x: name -> number of values, in column order
    levels: int = 256  # 2 binary, 256 8-bit, 0 real valued; of tokens the size of the vocabulary
    kinds: dict[str, FieldKind] = field(default_factory=dict)  # of each label; binary or categorical if not said
    sequences: dict[str, AboutSequence] = field(default_factory=dict)  # contexts and targets beside x

    def __post_init__(self) -> None:
        for name, kind in self.kinds.items():
            if name not in self.labels:
                raise unknown("label", name, self.labels, self.name)
            checked_kind(kind)
        if twice := self.sequences.keys() & self.labels.keys():
            raise Problem(f"'{self.name}' has a label and a sequence that are both called '{twice.pop()}'")
        kinds = {name: self.kinds.get(name, usual(size)) for name, size in self.labels.items()}
        object.__setattr__(self, "kinds", kinds)

    def to_json(self) -> dict[str, Any]:
        """The same as a plain dict."""
        entry = {**asdict(self), "shape": list(self.shape)}
        return entry if self.sequences else {k: v for k, v in entry.items() if k != "sequences"}

    @staticmethod
    def from_json(entry: Mapping[str, Any]) -> About:
        """About, read back from a plain dict."""
        try:
            about = About(
                name=str(entry["name"]),
                kind=cast(Kind, str(entry["kind"])),
                shape=tuple(int(side) for side in entry["shape"]),
                n=int(entry["n"]),
                labels={str(name): int(size) for name, size in entry["labels"].items()},
                levels=int(entry["levels"]),
                kinds={str(name): kind for name, kind in entry.get("kinds", {}).items()},  # none in runs of old
                sequences={str(n): AboutSequence.from_json(said) for n, said in entry.get("sequences", {}).items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise Problem(f"this is not a valid description of a data set: {error!r}") from error
        if min(about.n, about.levels, 0, *about.labels.values()) < 0 or not about.shape or min(about.shape) < 1:
            raise Problem("this is not a valid description of a data set: a size is too small")
        if about.kind not in get_args(Kind):
            raise unknown("kind of data", about.kind, get_args(Kind))
        return about


class Made(NamedTuple):
    """What tokens decide: shape, levels, where examples and what is beside them lie, and what made tokens of them."""

    shape: tuple[int, ...]
    levels: int
    store: Store
    tokeniser: Tokeniser | None
    beside: Mapping[str, Beside] = {}


Tokenise = Callable[[], Made]


class Text(Protocol):
    """What sentences were tokenised from."""

    def sentences(self, index: NDArray[np.int64]) -> list[str]: ...  # as they were read

    def turns(self, name: str, index: NDArray[np.int64]) -> list[list[str]]: ...  # of a context or target

    def dialogues(self, index: NDArray[np.int64]) -> NDArray[np.int64] | None: ...  # the rows held out together

    def tokenised(self, splits: Mapping[str, NDArray[np.int64]], holdout: float = 0.0) -> DataSet: ...  # by "train"

    def read_with(self, tokeniser: Tokeniser | None, others: Mapping[str, Tokeniser]) -> Text: ...  # the same, by these


@final
class DataSet:
    """Examples x with the labels u observed beside them, in named splits; rows are asked for by index."""

    def __init__(
        self,
        about: About,
        store: Store | Tokenise,
        splits: Mapping[str, NDArray[np.int64]] | None = None,
        labels: NDArray[Any] | None = None,
        label_values: Mapping[str, NDArray[np.float64]] | None = None,
        holdout: float = 0.0,
        hash: str | None = None,
        tokeniser: Tokeniser | None = None,
        text: Text | None = None,
        classes: Mapping[str, Sequence[str]] | None = None,
        beside: Mapping[str, Beside] | None = None,
    ) -> None:
        self._tokenise = store if callable(store) else None
        if not callable(store):
            self.__dict__["_made"] = Made(about.shape, about.levels, store, tokeniser, beside or {})
            about = replace(about, sequences={name: found.about for name, found in (beside or {}).items()})
        n = len(labels) if callable(store) and labels is not None else len(self.store)
        self.splits = dict(splits) if splits is not None else {"train": np.arange(n, dtype=np.int64)}
        self.draft = replace(about, n=len(self.splits["train"]))  # about, but for what tokens decide: shape and levels
        self.labels = _columns(about, labels, n)  # (N, K)
        self.label_values = dict(label_values or {})
        self.holdout = holdout  # the share held out as "test" by default, where the source has no test split
        self.classes = {
            name: tuple(values) for name, values in (classes or {}).items()
        }  # what the values of a label mean
        self._text = text
        for name, found in (beside or {}).items():
            if len(found.store) != n:
                raise Problem(f"'{about.name}' has {n} examples but {len(found.store)} of {name}")
        self._hash = hash
        self._under: DataSet | None = None  # the data whose labels were given other kinds
        self._held: dict[tuple[float, str], DataSet] = {}  # what was held out of it before
        if n < 2:
            raise Problem(f"'{about.name}' has {n} example{'s' * (n == 0)}; at least 2 are needed")

    def made(self) -> Made:
        """Shape, levels, store and tokeniser; text is tokenised when one of these is first asked for."""
        return self._made

    @cached_property
    def _made(self) -> Made:
        assert self._tokenise is not None
        return self._tokenise()

    @cached_property
    def about(self) -> About:
        """What a model needs to know of it."""
        shape, levels, *_ = self._made
        return replace(self.draft, shape=shape, levels=levels, sequences={n: s.about for n, s in self.beside.items()})

    @property
    def store(self) -> Store:
        """Where the examples lie."""
        return self._made.store

    @property
    def tokeniser(self) -> Tokeniser | None:
        """What made tokens of its text."""
        return self._made.tokeniser

    @property
    def beside(self) -> Mapping[str, Beside]:
        """The sequences of tokens beside x: context, target."""
        return self._made.beside

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        parts = ", ".join(f"{name} {len(rows):,}" for name, rows in self.splits.items())
        return f"DataSet({self.about.name}: {self.about.kind} {self.about.shape}, {parts})"

    @property
    def fields(self) -> dict[str, Field]:
        """What is observed beside x, by name: labels in the order of the columns of `labels`, then sequences."""
        about = self.draft
        labels = {n: Field(n, about.kinds[n], self.classes.get(n, ()), size) for n, size in about.labels.items()}
        return labels | {n: Field(n, "sequence") for n in about.sequences}

    @property
    def plain(self) -> DataSet:
        """The same data with the kinds of labels that it says itself."""
        return self if self._under is None else self._under

    @property
    def is_read(self) -> bool:
        """Whether its sentences are at hand, and not their tokens alone."""
        return self._text is not None

    @property
    def said_kinds(self) -> dict[str, FieldKind]:
        """The kinds of labels that the user said and that are not the data set's own."""
        return {name: kind for name, kind in self.draft.kinds.items() if kind != self.plain.draft.kinds[name]}

    @property
    def hash(self) -> str:
        """SHA-256 of the examples as kept, their labels and the kinds that the user said; computed once."""
        if self._under is not None and self._hash is None:
            said = sorted(self.said_kinds.items())
            self._hash = hashlib.sha256(f"{self.plain.hash} {said}".encode()).hexdigest()
        if self._hash is None:
            digest = hashlib.sha256(repr((self.about.shape, self.about.levels, self.draft.labels)).encode())
            for part in self.store.raw():
                digest.update(part)
            for part in chunks(self.labels):
                digest.update(part)
            for name, found in sorted(self.beside.items()):
                digest.update(repr((name, found.about)).encode())
                for part in found.store.raw():
                    digest.update(part)
            self._hash = digest.hexdigest()
        return self._hash

    @property
    def split_hash(self) -> str:
        """What the rows of each split are, in short; with `hash` it tells tokens too, which are learnt from "train"."""
        digest = hashlib.sha256()
        for name, rows in sorted(self.splits.items()):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(rows, np.int64).data)
        return digest.hexdigest()[:16]

    def x(self, index: Index) -> Tensor:
        """The examples at `index`, float32: pixels in [0, 1] of shape (B, C, H, W), or real vectors (B, D).

        Sentences are rows of int64 `<s> tokens </s>`, padded to the longest among them, (B, L).
        """
        return self.store.take(_rows(index))

    def lengths(self, index: Index) -> Tensor:
        """How many tokens are predicted of the sentences at `index`, the end of each counted as one, (B,)."""
        return torch.from_numpy(self._sentences.lengths(_rows(index)))

    def sequence(self, name: str, index: Index) -> tuple[Tensor, Tensor]:
        """The ids of what is beside x at `index`, `<s> tokens </s>` padded, (B, L), and how many follow <s>, (B,).

        The turns of a context each end in </s>.
        """
        if name not in self.draft.sequences:
            raise Problem(f"'{self.draft.name}' has no {name}")
        rows, store = _rows(index), self.beside[name].store
        return store.take(rows), torch.from_numpy(store.lengths(rows))

    @property
    def words(self) -> NDArray[np.int64]:
        """Of every sentence its whitespace words, the end counted as one, whatever the tokens are, (N,)."""
        return self._sentences.words

    def unknown(self, index: Index) -> float:
        """The share of the tokens at `index` that stand for unknown words; none of what is no text."""
        if not isinstance(self.store, Ragged):
            return 0.0
        tokens = self.store.tokens(_rows(index))
        return float(np.mean(tokens == UNK)) if len(tokens) else 0.0

    def sentences(self, index: Index) -> list[str]:
        """The sentences at `index` as they were read, runs of spaces as one; decoded where only tokens were handed in."""
        if self._text is not None:
            return self._text.sentences(_rows(index))
        if self.tokeniser is None:
            raise Problem(f"'{self.draft.name}' has no tokeniser, so its tokens cannot be decoded")
        return [self.tokeniser.decode(row) for row in self._sentences.take(_rows(index)).tolist()]

    def turns(self, name: str, index: Index) -> list[list[str]]:
        """The turns of the contexts or targets at `index` as they were read; decoded where only tokens were handed in."""
        if name not in self.draft.sequences:
            raise Problem(f"'{self.draft.name}' has no {name}; say which column holds it: --{name}-column")
        return self._text.turns(name, _rows(index)) if self._text is not None else self.beside[name].turns(_rows(index))

    @property
    def _sentences(self) -> Ragged:
        if not isinstance(self.store, Ragged):
            raise Problem(f"'{self.draft.name}' is {self.about.kind}, not text")
        return self.store

    def u(self, index: Index, given: Sequence[str]) -> Tensor:
        """The labels named in `given` at `index`, each one-hot, side by side: (B, sum of their sizes); sequences are not."""
        rows, names = _rows(index), list(self.draft.labels)
        parts = [torch.zeros(len(rows), 0)]
        for name in given:
            if name in self.draft.sequences:
                continue
            if not names:
                raise Problem(f"'{self.draft.name}' has no labels, so '{name}' cannot be used")
            if name not in names:
                raise unknown("label", name, names, self.draft.name)
            column = torch.from_numpy(self.labels[rows, names.index(name)])  # (B,)
            parts.append(torch.nn.functional.one_hot(column, self.draft.labels[name]).float())
        return torch.cat(parts, dim=1)

    def with_kinds(self, kinds: Mapping[str, FieldKind]) -> DataSet:
        """The same data with labels of these kinds; the values of one that becomes ordinal are numbered by size."""
        for name in kinds:
            if name not in self.draft.labels:
                raise unknown("label", name, self.draft.labels, self.draft.name)
        plain, wanted = self.plain, self.draft.kinds | dict(kinds)
        if wanted == self.draft.kinds:
            return self
        if wanted == plain.draft.kinds:
            return plain
        labels, classes = plain.labels.copy(), dict(plain.classes)
        for column, known in enumerate(plain.fields[name] for name in plain.draft.labels):
            if wanted[known.name] != known.kind:
                order = known.order(wanted[known.name])
                labels[:, column] = np.argsort(order)[labels[:, column]]
                classes |= {known.name: tuple(known.classes[i] for i in order)} if known.classes else {}
        kept = (plain.label_values, plain.holdout, None, None, plain._text, classes)
        made = DataSet(replace(plain.draft, kinds=wanted), plain.made, plain.splits, labels, *kept)
        made._under = plain
        return made

    def with_labels(self, classes: Mapping[str, Sequence[str]], labels: NDArray[np.int64]) -> DataSet:
        """The same data with more labels: what the values of each are called, and their columns, (N, K)."""
        if self.draft.kind == "tokens":
            raise Problem(f"the labels of '{self.draft.name}' come from its text file; use --label-column")
        if twice := next((name for name in classes if name in self.draft.labels), None):
            raise Problem(f"'{self.draft.name}' has a label '{twice}' already; rename the new one")
        plain, more = self.plain, {name: len(values) for name, values in classes.items()}
        about = replace(plain.about, labels=plain.about.labels | more)
        columns, named = np.column_stack([plain.labels, labels]), plain.classes | dict(classes)
        kept = (plain.label_values, plain.holdout)
        return DataSet(about, plain.store, plain.splits, columns, *kept, classes=named).with_kinds(self.draft.kinds)

    def read_with(self, tokeniser: Tokeniser | None, others: Mapping[str, Tokeniser] | None = None) -> DataSet:
        """The same sentences in the tokens of this tokeniser, or in their own, whatever is held out of them later.

        `others` are those of the sequences beside x that have tokens of their own.
        """
        if self._under is not None:
            return self._under.read_with(tokeniser, others).with_kinds(self.draft.kinds)
        if self._text is None and tokeniser and self.tokeniser and self.tokeniser.to_json() == tokeniser.to_json():
            return self
        if self._text is None:
            raise Problem(f"'{self.about.name}' came as tokens of its own, which are not those of the base")
        return self._text.read_with(tokeniser, others or {}).tokenised(self.splits, self.holdout)

    def hold_out(self, share: float, name: str = "test") -> DataSet:
        """The same data with a random share of "train" moved to the split `name`; the same rows every time.

        Rows of one dialogue, or of one source, are moved together.
        """
        if share == 0:
            return self
        if (share, name) in self._held:
            return self._held[share, name]
        if self._under is not None:
            self._held[share, name] = self._under.hold_out(share, name).with_kinds(self.draft.kinds)
            return self._held[share, name]
        if not 0 < share < 1:
            raise Problem(f"the share to hold out must be between 0 and 1, not {share:g}")
        if name in self.splits:
            raise Problem(f"'{self.draft.name}' already has a split '{name}' of {len(self.splits[name]):,} examples")
        train = self.splits["train"]
        count = max(1, round(share * len(train)))
        if len(train) - count < 2:
            raise Problem(f"holding out {share:g} of {len(train)} examples leaves fewer than 2 for training")
        order = np.random.default_rng(SEED).permutation(len(train))
        held, dialogues = np.zeros(len(train), bool), self._text.dialogues(train) if self._text else None
        held[order[:count]] = True
        if dialogues is not None:
            held = _together(dialogues, count, self.draft.name)
        splits = {**self.splits, "train": np.sort(train[~held]), name: np.sort(train[held])}
        kept = (self.labels, self.label_values, 0.0, self._hash, None, None, self.classes)
        made = DataSet(self.draft, self.made, splits, *kept) if self._text is None else self._text.tokenised(splits)
        self._held[share, name] = made
        return made


def _together(dialogues: NDArray[np.int64], count: int, data: str) -> NDArray[np.bool_]:
    """Which rows are of dialogues drawn at random until they have `count`, larger ones passed over, (N,)."""
    _, which, sizes = np.unique(dialogues, return_inverse=True, return_counts=True)
    drawn, room = np.zeros(len(sizes), bool), count
    for one in np.random.default_rng(SEED).permutation(len(sizes)):
        drawn[one] = sizes[one] <= room
        room -= sizes[one] * drawn[one]
    if not drawn.any():
        drawn[sizes.argmin()] = True
    held = drawn[which]
    if (~held).sum() < 2:
        raise Problem(
            f"'{data}' has {len(sizes)} dialogue{'s' * (len(sizes) != 1)}, by the first turns of its rows or by "
            "--dialogue-column, so none can be held out; name another column, or write a test file"
        )
    return np.asarray(held)


def _rows(index: Index) -> NDArray[np.int64]:
    if isinstance(index, Tensor):
        index = index.cpu().numpy()
    return np.asarray(index, dtype=np.int64)  # (B,)


def _columns(about: About, labels: NDArray[Any] | None, n: int) -> NDArray[np.int64]:
    """The labels as one checked column per name."""
    columns = np.zeros((n, 0), np.int64) if labels is None else np.asarray(labels, np.int64)
    if columns.shape != (n, len(about.labels)):
        raise Problem(f"'{about.name}' has {n} examples but labels of shape {columns.shape}")
    for (name, size), column in zip(about.labels.items(), columns.T, strict=True):
        if column.min(initial=0) < 0 or column.max(initial=0) >= size:
            raise Problem(f"label '{name}' of '{about.name}' has values outside 0 to {size - 1}")
    return columns
