"""Tokens: sentences as numbers, by whitespace words, byte-pair encoding or bytes; 0 to 3 are pad, start, end, unknown."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from elboroom.core.files import read_json
from elboroom.core.problem import Problem

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PAD, START, END, UNK = 0, 1, 2, 3
MARKERS = 4
MARKS = ("<pad>", "<s>", "</s>", "<unk>")
UNKNOWN = "<unk>"  # a word of this name in a file is UNK itself, never a type of its own
TOKENISER = "tokeniser.json"  # in the folder of a run
LONGEST = 1 << 26  # bytes of what the library keeps of a tokeniser
BYTES = 256 + MARKERS  # the vocabulary of bytes, and the least that a byte-pair encoding begins with


@final
class Words:
    """Whitespace words: the types from id 4 on, everything else UNK."""

    def __init__(self, words: Sequence[str], name: str = "words") -> None:
        self.words, self.name = tuple(words), name
        self.ids = {word: MARKERS + place for place, word in enumerate(self.words)}
        if UNKNOWN in self.ids or len(self.ids) < len(self.words) or any(len(w.split()) != 1 for w in self.words):
            raise Problem(f"a vocabulary must list distinct words without spaces and without {UNKNOWN}")

    @property
    def size(self) -> int:
        """V, markers included."""
        return MARKERS + len(self.words)

    @property
    def tokens(self) -> tuple[str, ...]:
        """What each id stands for, (V,)."""
        return *MARKS, *self.words

    def encode(self, sentence: str) -> list[int]:
        """The ids of a sentence, without markers."""
        return [self.ids.get(word, UNK) for word in sentence.split()]

    def decode(self, ids: Iterable[Any]) -> str:
        """The sentence of ids: markers are skipped, and it stops at the end."""
        return " ".join(UNKNOWN if i == UNK else self.words[i - MARKERS] for i in _inside(ids))

    def to_json(self) -> dict[str, Any]:
        """The same as a plain dict."""
        return {"kind": "words", "name": self.name, "words": list(self.words)}

    @staticmethod
    def from_json(entry: Mapping[str, Any]) -> Words:
        """Words, read back from a plain dict."""
        return Words([str(word) for word in entry["words"]], str(entry["name"]))


@final
class Subwords:
    """Pieces of words, each a run of bytes, so that nothing is unknown but the word <unk> itself.

    `content` is what the `tokenizers` library keeps of it, in which <unk> is 0: its ids are ours less 3. `lead` goes
    before a sentence: a space where pieces that begin a word hold the space before it.
    """

    def __init__(self, content: str, name: str, lead: str = "") -> None:
        self.content, self.name, self.lead = content, name, lead
        self.size = self._tokenizer.get_vocab_size() + UNK

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer  # only where it is used

        try:
            refuse_odd(self.content)
            return Tokenizer.from_str(self.content)
        except Exception as error:  # the library raises nothing narrower
            said = " ".join(str(error).split())[:200]
            raise Problem(f"this is not a tokeniser that elboroom wrote: {said}") from error

    @property
    def tokens(self) -> tuple[str, ...]:
        """What each id stands for, (V,)."""
        pieces = sorted(self._tokenizer.get_vocab().items(), key=lambda item: item[1])
        return *MARKS, *(piece for piece, _ in pieces[MARKERS - UNK :])

    def __getstate__(self) -> dict[str, Any]:
        return {"content": self.content, "name": self.name, "lead": self.lead, "size": self.size}

    def encode(self, sentence: str) -> list[int]:
        """The ids of a sentence, without markers; runs of spaces count as one."""
        words = sentence.split()
        return self._ids(self.lead + " ".join(words)) if words else []

    def spelled(self, words: Iterable[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The ids of words, each after a space, end to end, and where each begins and the last ends.

        Pieces never reach over a space, so a sentence is the ids of its words, less the first space where none leads it.
        """
        ids, offsets = array("i"), array("q", [0])
        for word in words:
            ids.extend(self._ids(f" {word}"))
            offsets.append(len(ids))
        return np.frombuffer(ids, np.int32), np.frombuffer(offsets, np.int64)

    def _ids(self, text: str) -> list[int]:
        return [i + UNK for i in self._tokenizer.encode(text, add_special_tokens=False).ids]

    def decode(self, ids: Iterable[Any]) -> str:
        """The sentence of ids: markers are skipped, and it stops at the end."""
        return self._tokenizer.decode([i - UNK for i in _inside(ids)], skip_special_tokens=False).strip()

    def to_json(self) -> dict[str, Any]:
        """The same as a plain dict."""
        return {"kind": "subwords", "name": self.name, "lead": self.lead, "content": self.content}

    @staticmethod
    def from_json(entry: Mapping[str, Any]) -> Subwords:
        """Subwords, read back from a plain dict."""
        return Subwords(str(entry["content"]), str(entry["name"]), str(entry["lead"]))


def refuse_odd(content: str) -> None:
    """Refuses what is not a byte-pair encoding as it is written here, before the library, which can panic, reads it."""
    if len(content) > LONGEST:
        raise ValueError(f"it has more than {LONGEST >> 20} MB")
    entry = json.loads(content)
    model, added = entry["model"], entry["added_tokens"]
    types = {name: (entry.get(name) or {}).get("type") for name in ("model", "pre_tokenizer", "decoder")}
    if types != {"model": "BPE", "pre_tokenizer": "ByteLevel", "decoder": "ByteLevel"}:
        raise ValueError("it is no byte-level BPE")
    for name in ("normalizer", "post_processor", "truncation", "padding"):
        if entry.get(name) is not None:
            raise ValueError(f"it has a {name}")
    if [(token["id"], token["content"]) for token in added] != [(0, UNKNOWN)]:
        raise ValueError("it has other special words")
    vocabulary, merges = model["vocab"], model["merges"]
    if model.get("dropout") or sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise ValueError("its ids are not 0, 1, 2, ...")
    pairs = (pair.split(" ") if isinstance(pair, str) else pair for pair in merges)
    if any(len(pair) != 2 or "".join(pair) not in vocabulary or not set(pair) <= vocabulary.keys() for pair in pairs):
        raise ValueError("it merges pieces that it does not have")


Tokeniser = Words | Subwords


def tokeniser(entry: Mapping[str, Any]) -> Tokeniser:
    """The tokeniser that a plain dict describes."""
    kinds: dict[Any, type[Tokeniser]] = {"words": Words, "subwords": Subwords}
    try:
        return kinds[entry["kind"]].from_json(entry)
    except (KeyError, TypeError) as error:
        raise Problem(f"this is not a valid description of a tokeniser: {error!r}") from error


def kept(path: Path) -> Tokeniser:
    """The tokeniser in a file."""
    try:
        return tokeniser(read_json(path))
    except Problem as problem:
        raise Problem(f"{problem}; sentences need this tokeniser") from problem


def most_frequent(
    types: Sequence[str], counts: NDArray[np.int64], min_count: int = 1, vocabulary: int = 0
) -> tuple[Words, NDArray[np.int32]]:
    """The words seen `min_count` times or more, at most `vocabulary` ids in all (0: no limit), most frequent first.

    Also the table from the place of a type in `types` to its id.
    """
    if vocabulary and vocabulary < MARKERS + 2:
        raise Problem(f"--vocabulary must be at least {MARKERS + 2}, of which {MARKERS} are markers, not {vocabulary}")
    order = np.lexsort((np.arange(len(types)), -counts))  # of equally frequent types, the first seen
    kept = [int(i) for i in order if counts[i] >= max(min_count, 1) and types[i] != UNKNOWN]
    kept = kept[: vocabulary - MARKERS] if vocabulary else kept
    if len(kept) < 2:
        seen = int((counts > 0).sum())
        raise Problem(f"the vocabulary is too small: {len(kept)} of {seen} words are seen at least {min_count} times")
    name = "words" + (f" seen {min_count} times or more" if min_count > 1 else "")
    name += f", the most frequent {len(kept)}" if vocabulary and len(kept) == vocabulary - MARKERS else ""
    table = np.full(len(types), UNK, np.int32)
    table[kept] = np.arange(MARKERS, MARKERS + len(kept))
    return Words([types[i] for i in kept], name), table


def as_bytes() -> Subwords:
    """Every byte of a sentence in UTF-8 as an id of its own."""
    return Subwords(_untrained().to_str(), "bytes")


def byte_pairs(sentences: Iterable[str], vocabulary: int, min_count: int = 1) -> Subwords:
    """Byte-pair encoding: the most frequent pair of pieces becomes a piece, until there are `vocabulary` ids.

    Pairs seen fewer than `min_count` times stay apart. The same sentences give the same pieces every time: ties go to the
    pair that came first, beginning with the bytes in order.
    """
    if vocabulary < BYTES:
        raise Problem(f"--vocabulary {vocabulary} is too small; byte-pair encoding needs at least {BYTES} ids")
    from tokenizers import Tokenizer
    from tokenizers.trainers import BpeTrainer

    model = Tokenizer.from_str(_untrained().to_str())
    trainer = BpeTrainer(
        vocab_size=vocabulary - UNK,
        min_frequency=min_count,
        special_tokens=[_unknown()],
        initial_alphabet=_alphabet(),
        show_progress=False,
    )
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # its threads would not survive a fork
    model.train_from_iterator((" " + " ".join(sentence.split()) for sentence in sentences), trainer)
    trained = Subwords(model.to_str(), "", lead=" ")
    trained.name = f"bpe {trained.size}" + (f" of pairs seen {min_count} times or more" if min_count > 1 else "")
    return trained


def _untrained() -> Tokenizer:
    from tokenizers import Tokenizer
    from tokenizers.decoders import ByteLevel as Joined
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel

    pieces = [UNKNOWN, *_alphabet()]
    made = Tokenizer(BPE(vocab={piece: i for i, piece in enumerate(pieces)}, merges=[]))
    made.pre_tokenizer = ByteLevel(add_prefix_space=False)
    made.decoder = Joined()
    made.add_special_tokens([_unknown()])
    return made


def _alphabet() -> list[str]:
    """The 256 letters that stand for bytes."""
    from tokenizers.pre_tokenizers import ByteLevel

    return sorted(ByteLevel.alphabet())


def _unknown() -> Any:
    from tokenizers import AddedToken

    return AddedToken(UNKNOWN, single_word=True, normalized=False, special=True)


def _inside(ids: Iterable[Any]) -> Iterator[int]:
    """The ids before the end that are no markers."""
    for i in map(int, ids):
        if i == END:
            return
        if i not in (PAD, START):
            yield i
