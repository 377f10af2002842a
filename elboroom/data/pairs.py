"""Corpora with a context: replies of dialogues, translations, simplifications, and folders of paired lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from elboroom.core.problem import Problem
from elboroom.data import corpora
from elboroom.data.arrays import HOLDOUT
from elboroom.data.corpora import ACTS, EMOTIONS, MULTI30K, TURN
from elboroom.data.dataset import DataSet
from elboroom.data.fields import CATEGORICAL
from elboroom.data.lines import SPLITS, TAB, Example, lines
from elboroom.data.sequences import CONTEXT, alternating
from elboroom.data.text import Reading, gather

BEFORE, LONGEST = 5, 40  # turns of a dialogue that a reply may see, words of each that are kept
TUNED = 200  # sources of simplifications, the last ones, that are for validation

# The files, with their SHA-256.
FRENCH = {
    "train.fr": "8fa41bb718412bcb7c5dfa58603842810a01543eae86a51279f9886b901266e1",
    "val.fr": "b303e301aa21fe7822a846b2b3fb2d5a1121ec807cd5b1d006fb7b2b5507168a",
    "test_2016_flickr.fr": "1463bd5960f9bfe098ec3cd752d3df0c49c84dc646fb518964a29232658cd836",
}
TURK = {
    "tune.8turkers.tok.norm": "1a0a0bf500bac72486eda8816e0a64347e79bd3652daddd1289fd4eec773df00",
    "tune.8turkers.tok.turk.0": "fb7c373e88dd188e234c688e6c7ed22012658e06c5c127d4be5f19f0e66a6542",
    "tune.8turkers.tok.turk.1": "308fab45b60d36bbd0ff651245cc0ceed82654658679c27ce575c4b487827394",
    "tune.8turkers.tok.turk.2": "f428363b156759352c4240a218f5485909961c84554fd20dbcf076a4518c1f13",
    "tune.8turkers.tok.turk.3": "22a430a69b348643e4e86e33724ef8a0dc690e948827af9667d21536f7f19981",
    "tune.8turkers.tok.turk.4": "a07211cb2a493f8a6c00f3f437c826eb10d01abb354f910d278d74752c306c24",
    "tune.8turkers.tok.turk.5": "951a03c67fd726a946a7d303af6edc64b4c3aa351721c7e921bd83c5f8a7e1c6",
    "tune.8turkers.tok.turk.6": "2983e016b4a7edff749106865251653d93def0c8f4f6f30ef6800b83cc3becbb",
    "tune.8turkers.tok.turk.7": "f427962c2fa8aee00911c74b3c2c093e5b50acc70928a619d3f3225ba29f38eb",
    "test.8turkers.tok.norm": "5a45e4deb23524dbd06fae0bbaf4a547df8c5d982bf4c9867c0f1462ed99ac46",
    "test.8turkers.tok.turk.0": "33399612ddb7ec4f0cd798508ea2928a3ab9b2ec3a9e524a4d5a0da44bf1425a",
    "test.8turkers.tok.turk.1": "6ea0d23083ce25c7cceb19f4e454ddde7d8b4010243d7af2ab0a96884587e79b",
    "test.8turkers.tok.turk.2": "abe871f586783f6e2273557fbc1ed203b06e5a5c2a52da260113c939ce1e79e3",
    "test.8turkers.tok.turk.3": "b4387233b14c123c7cef8d15c2ee7c68244fedb10e6e37008c0eed782b98897e",
    "test.8turkers.tok.turk.4": "1abf53f4dc075660322be772b40cdd26545902d5a7fa8746a460ea55301dd847",
    "test.8turkers.tok.turk.5": "3bbb08c71bbf692a2b7f2b6421a833397f96574fb9d7ff1dfd2c0f52ea0c52d6",
    "test.8turkers.tok.turk.6": "d100c0a63c9a01cde27694f18275e760d3f77bcd8b46ab9f6f832e8bc37c4857",
    "test.8turkers.tok.turk.7": "e1956804ef69855a83a6c214acd07373533dad31615de0254ec60e3d0dbbedac",
}
ASSET = {
    "asset.valid.orig": "83dca90b5c53365a9c4a70222aed129c6df3c3f6b5da82ee94312e179b93fff1",
    "asset.valid.simp.0": "27b0c4a40c91b875c82a8ed76ff7cf0476b03a3a6998a2e3ef6e18000efda624",
    "asset.valid.simp.1": "5043e9db5934c3d538b91f56d23466177813896da10f153d2b16c0c415ac5e84",
    "asset.valid.simp.2": "578dd487cf03f6f66bb4acd2c44b464c3ac9fb42dc64b8e6afd391778ebc7ea7",
    "asset.valid.simp.3": "4ab95ba6f7a60adde2f57201c0b749384ce64c97f8378fb0ab185367709a8386",
    "asset.valid.simp.4": "f6f1d4bf9f87b532b37d7f5700ec384f817dba10247c91df629e1f6eee6c3aa9",
    "asset.valid.simp.5": "182114cfbb2960358b0e2d71737ead9a2abb0c27d3f65281335f079ae4447e3b",
    "asset.valid.simp.6": "aba27b505dad048982e902a04c4ffc5ab9e926b38d2383920aea798fd42de376",
    "asset.valid.simp.7": "73d7983107eca6b98a9aec62ea75ea8d5adf313755b7e105608f212dead124cd",
    "asset.valid.simp.8": "58f8e1109d87a4e3c5403705b8782750bb849cb8389a698156e00ca6512dd5c4",
    "asset.valid.simp.9": "35a861e174ce5458fdcd1866e49aa84297fcb6b51fd98d6633b71932a646832e",
    "asset.test.orig": "673ceb2672a37168a52040d75e16f9ffd1e3777b9f68e19207f2adf6542723f1",
    "asset.test.simp.0": "66f36029d0c732eb92886021faefe531c6cfd0a32bdbe7ae4aa97fd45bd1b046",
    "asset.test.simp.1": "d323ceb364abbe84c79b14b028aa1ff563cd94955fbab19049612548dbb0f83f",
    "asset.test.simp.2": "786b55f8425ce4a993e98be5e2bea9ef87bf536b96dc13f7a57c4733fdb63e06",
    "asset.test.simp.3": "e211c9e2ede1dfe315097132dbe4feda76b309bdc636a5394cb5d2664ba5bf52",
    "asset.test.simp.4": "37be9cf0592c0f68d87848dc9c442fe62f344518c1993896c00788bf943b755d",
    "asset.test.simp.5": "8485210573a3bd76116de8e978b227677c6c207111a4938729397c4e603dfa46",
    "asset.test.simp.6": "f0cb3ab823d23203ea044f81bd7e67cc823db0632095e43b78a54a9891a0b0a8",
    "asset.test.simp.7": "35cbb8b9964252a1470607634f19ad946c6bc2951b3e500eedd826baf12bd3c8",
    "asset.test.simp.8": "047b6419590b88f93b435d3177bba1883dc9c0dc178676e48470b408236446f4",
    "asset.test.simp.9": "3f5745e4f2743563b88ea4284ec35fa4ddb68d62de80b63ffb87751b998fe6b8",
}


def dailydialog_replies(folder: Path, reading: Reading | None = None) -> DataSet:
    """Every utterance of DailyDialog but the first of a dialogue, with up to 5 turns before it as its context.

    Turns are lower-cased, and of one in a context the first 40 words are kept. Splits are those of `dailydialog`: whole
    dialogues, those of valid and test that are in train left out.
    """
    read = {split: _replies(found) for split, found in corpora.dialogues(folder).items()}
    labels, kinds = {"act": ACTS, "emotion": EMOTIONS}, dict.fromkeys(("act", "emotion"), CATEGORICAL)
    return gather("dailydialog-replies", read, labels, reading, kinds=kinds, beside=[CONTEXT])


def _replies(dialogues: Iterable[tuple[str, list[str], list[str]]]) -> Iterator[Example]:
    for text, acts, emotions in dialogues:
        turns = [turn.lower().split() for turn in text.split(TURN)][: len(acts)]
        for at in range(1, len(turns)):
            before = alternating([" ".join(turn[:LONGEST]) for turn in turns[max(0, at - BEFORE) : at]])
            labels = ACTS[int(acts[at]) - 1], EMOTIONS[int(emotions[at])]
            yield " ".join(turns[at]), labels, (tuple(before),)


def multi30k_en_fr(folder: Path, reading: Reading | None = None) -> DataSet:
    """French captions given their English source, lower-cased and tokenised as published; a vocabulary for each."""
    return _translations("multi30k-en-fr", folder, list(MULTI30K), list(FRENCH), reading)


def multi30k_fr_en(folder: Path, reading: Reading | None = None) -> DataSet:
    """English captions given their French translation, lower-cased and tokenised as published; a vocabulary for each."""
    return _translations("multi30k-fr-en", folder, list(FRENCH), list(MULTI30K), reading)


def _translations(
    name: str, folder: Path, sources: Sequence[str], targets: Sequence[str], reading: Reading | None
) -> DataSet:
    files = zip(("train", "valid", "test"), sources, targets, strict=True)
    read = {split: _aligned(folder / source, folder / target) for split, source, target in files}
    return gather(name, read, None, reading, beside=[CONTEXT], own=[CONTEXT])


def turkcorpus(folder: Path, reading: Reading | None = None) -> DataSet:
    """Simplifications given their source, lower-cased and tokenised as published: every source with its 8 references.

    Train is made of the tune sources but for the last 200, which are valid: far less than the published training data.
    """
    parts = {part: (f"{part}.8turkers.tok.norm", f"{part}.8turkers.tok.turk", 8) for part in ("tune", "test")}
    return _simplified("turkcorpus", folder, (parts["tune"], parts["test"]), reading)


def asset(folder: Path, reading: Reading | None = None) -> DataSet:
    """Simplifications given their source, with 10 references each; split as `turkcorpus`.

    Published in upper and lower case and not tokenised: here lower-cased, with punctuation as words of its own.
    """
    parts = ("asset.valid.orig", "asset.valid.simp", 10), ("asset.test.orig", "asset.test.simp", 10)
    return _simplified("asset", folder, parts, reading, tokenised=False)


def _simplified(
    name: str, folder: Path, parts: Sequence[tuple[str, str, int]], reading: Reading | None, tokenised: bool = True
) -> DataSet:
    read: dict[str, list[Example]] = {"train": [], "valid": [], "test": []}
    for split, (source, reference, count) in zip(("train", "test"), parts, strict=True):
        files = [folder / source, *(folder / f"{reference}.{k}" for k in range(count))]
        rows = list(zip(*_columns(files), strict=True))
        for place, (said, *simpler) in enumerate(rows):
            where = "valid" if split == "train" and place >= len(rows) - TUNED else split
            read[where] += [_pair(said, text, tokenised) for text in simpler]
    return gather(name, read, None, reading, beside=[CONTEXT])


def _pair(source: str, text: str, tokenised: bool) -> Example:
    if not tokenised:
        source, text = (" ".join(re.findall(r"\w+(?:['’.-]\w+)*|[^\w\s]", side.lower())) for side in (source, text))  # noqa: RUF001
    return text, (), ((source,),)


def is_paired(folder: Path) -> bool:
    """Whether a folder holds train.src and train.tgt, or the like."""
    return any(folder.glob("*.src")) or any(folder.glob("*.tgt"))


def load(folder: Path, reading: Reading | None = None) -> DataSet:
    """The lines of NAME.tgt given those of NAME.src, NAME being train, valid (val, dev) or test.

    A TAB stands between two turns of a source. Without a test, a tenth is held out, all targets of a source together.
    """
    reading = reading or Reading()
    if reading.text_column or reading.label_column or reading.columns:
        raise Problem(f"{folder} has paired lines, which have no columns; remove --context-column and the like")
    read: dict[str, Iterable[Example]] = {}
    for path in sorted({path.with_suffix("") for kind in ("src", "tgt") for path in folder.glob(f"*.{kind}")}):
        if path.name.lower() not in SPLITS:
            raise Problem(f"{path}.src: paired lines are called train, valid or test")
        for kind in ("src", "tgt"):
            if not Path(f"{path}.{kind}").is_file():
                raise Problem(f"{path}.{kind} is missing: every .src needs a .tgt of as many lines")
        files = Path(f"{path}.src"), Path(f"{path}.tgt")
        read[SPLITS[path.name.lower()]] = _aligned(*files, reading.encoding, reading.turn_separator or TAB)
    if "train" not in read:
        raise Problem(f"{folder} has no train.src and train.tgt")
    return gather(str(folder), read, None, reading, 0.0 if "test" in read else HOLDOUT, beside=[CONTEXT])


def _aligned(source: Path, target: Path, encoding: str = "utf-8", separator: str = "") -> Iterator[Example]:
    for number, (said, text) in enumerate(zip(*_columns([source, target], encoding), strict=True), 1):
        if bool(said.strip()) != bool(text.strip()):
            blank, other = (source, target) if text.strip() else (target, source)
            raise Problem(f"line {number} of {blank} is blank, and that of {other} is not")
        yield text, (), (tuple(alternating(said.split(separator))) if separator else (said,),)


def _columns(paths: Sequence[Path], encoding: str = "utf-8") -> list[list[str]]:
    """The lines of files that have as many each."""
    columns = [[line.rstrip("\n") for _, line in lines(path, encoding)] for path in paths]
    for path, column in zip(paths, columns, strict=True):
        if len(column) != len(columns[0]):
            raise Problem(
                f"{paths[0]} has {len(columns[0]):,} lines and {path} has {len(column):,}; they must be pairs"
            )
    return columns
