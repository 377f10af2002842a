"""The corpora as their authors publish them; counts are those of the files, by hand or as published."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from elboroom.core.problem import Problem
from elboroom.data import corpora, registry
from elboroom.data.dataset import DataSet
from elboroom.data.sources import SOURCES
from elboroom.data.text import Reading
from elboroom.data.tokens import UNK, Words

NAMES = ["ptb", "multi30k", "multi30k-5", "caption-style", "dailydialog", "yelp-sentiment"]
NAMES += ["multi30k-en-fr", "multi30k-fr-en", "dailydialog-replies", "turkcorpus", "asset"]


def sizes(data: DataSet) -> dict[str, int]:
    return {name: len(rows) for name, rows in data.splits.items()}


def distinct(data: DataSet) -> dict[str, set[str]]:
    return {name: set(data.sentences(rows)) for name, rows in data.splits.items()}


def write(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


# ---- on the real files


@pytest.mark.unhurried
@pytest.mark.filterwarnings("ignore:.*left out sentences:UserWarning")
@pytest.mark.parametrize("name", NAMES)
def test_sources_tell_the_truth(name: str, real: Path) -> None:
    source, data = SOURCES[name], registry.load(name)
    assert (sizes(data), data.about.shape, data.about.name) == (source.counts, source.shape, name)
    assert (source.kind, data.about.kind) == ("tokens", "tokens")
    assert set(registry.check(name).values()) - {name, str(real), str(real / source.folder)} == {"ok"}
    assert registry.get(name)["state"] == "here"


def test_ptb(real: Path) -> None:
    data = registry.load("ptb")
    assert isinstance(data.tokeniser, Words)
    assert data.about.levels == data.tokeniser.size == 10_002
    predicted = {name: int(data.lengths(rows).sum()) for name, rows in data.splits.items()}
    assert predicted == {"train": 929_589, "valid": 73_760, "test": 82_430}
    assert {name: int(data.words[rows].sum()) for name, rows in data.splits.items()} == predicted
    text = (real / "ptb" / "ptb.test.txt").read_text()
    unknown = sum(int((data.x(rows) == UNK).sum()) for rows in np.array_split(data.splits["test"], 20))
    assert unknown == text.split().count("<unk>") > 0, "no word of the test is unknown but <unk> itself"
    assert data.sentences(data.splits["test"][:1]) == ["no it was n't black monday"]
    assert int(data.lengths(data.splits["test"]).max()) == 78
    assert "<unk>" not in data.tokeniser.words


def test_multi30k(real: Path) -> None:
    data = registry.load("multi30k")
    assert data.sentences([0]) == ["two young , white males are outside near many bushes ."]
    assert data.about.levels == 10_210 + 4
    assert registry.load("multi30k", reading=Reading(min_count=2)).about.levels == 5_917 + 4


@pytest.mark.slow
def test_multi30k_five(real: Path) -> None:
    data = registry.load("multi30k-5")
    assert data.about.levels == 19_585 + 4
    assert int(data.words[data.splits["train"]].sum()) == 1_944_108 + 145_000
    assert registry.load("multi30k-5", reading=Reading(min_count=5)).about.levels == 7_444 + 4
    columns = data.words[data.splits["train"]].reshape(5, -1).mean(1) - 1
    assert columns.round(1).tolist() == [19.4, 15.1, 12.8, 10.8, 8.9]


def test_caption_style(real: Path) -> None:
    data = registry.load("caption-style")
    assert data.classes == {"style": ("humorous", "romantic")}
    for split, counts in {"train": [6000, 6000], "valid": [200, 200], "test": [300, 300]}.items():
        assert np.bincount(data.labels[data.splits[split], 0]).tolist() == counts
    parts = distinct(data)
    assert not parts["train"] & parts["test"]
    assert not parts["valid"] & parts["test"]
    pairs = corpora.transfer_pairs("caption-style")
    assert {" ".join(pair.reference.split()) for pair in pairs} == parts["test"]
    assert not {pair.source for pair in pairs} & (parts["train"] | parts["valid"] | parts["test"])
    assert [sum(pair.target == label for pair in pairs) for label in (0, 1)] == [300, 300]
    assert pairs[0].target == 1
    assert pairs[0].reference.endswith("exhausted after a long day of hiking .")
    assert any("track，speed" in sentence for sentence in parts["train"])  # noqa: RUF001


@pytest.mark.slow
def test_dailydialog(real: Path) -> None:
    with pytest.warns(UserWarning, match="more than 200 words: 4 of train, 1 of test"):
        data = registry.load("dailydialog")
    assert data.about.labels == {"act": 4, "emotion": 7}
    assert sizes(data)["train"] == 87_171 - 12 - 4
    kept = {name: len(_kept(real, file)) for name, file in (("valid", "validation.zip"), ("test", "test.zip"))}
    assert kept == {"valid": 1000 - 77, "test": 1000 - 106}
    first = data.splits["train"][:4]
    assert data.sentences(first)[0] == "Say , Jim , how about going for a few beers after dinner ?"
    assert data.labels[first].tolist() == [[2, 0], [3, 0], [1, 0], [1, 0]], "acts 3 4 2 2, but from 0"


def _kept(real: Path, file: str) -> list[object]:
    train = {_lower(text) for text, _, _ in corpora._dialogues(real / "dailydialog" / "train.zip")}
    return [entry for entry in corpora._dialogues(real / "dailydialog" / file) if _lower(entry[0]) not in train]


def _lower(text: str) -> str:
    return " ".join(text.lower().split())


@pytest.mark.unhurried
def test_yelp_sentiment(real: Path) -> None:
    data = registry.load("yelp-sentiment")
    assert data.classes == {"sentiment": ("negative", "positive")}
    assert np.bincount(data.labels[data.splits["train"], 0]).tolist() == [46_829, 66_491]
    assert len(data.splits["valid"]) + len(data.splits["test"]) == 24_776 + 37_697
    parts = distinct(data)
    pairs = corpora.transfer_pairs()
    for one, two in (("train", "valid"), ("train", "test"), ("valid", "test")):
        assert not parts[one] & parts[two]
    assert len(pairs) == 1000
    assert not {pair.source for pair in pairs} & (parts["train"] | parts["valid"] | parts["test"])
    assert pairs[0] == (
        "ever since joes has changed hands it 's just gotten worse and worse .",
        1,
        "Ever since joes has changed hands it's gotten better and better.",
    )
    assert pairs[500].target == 0
    assert abs(len(parts["valid"]) - len(parts["test"])) <= 1


# ---- by hand


def test_yelp_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shen, li = tmp_path / corpora.SHEN, tmp_path / corpora.LI
    write(shen / "sentiment.dev.0", "d0", "held", "d1", "d2", "d0", "d3")
    write(shen / "sentiment.dev.1", "d4 .", "d5 .", "d1")
    write(shen / "sentiment.test.0", "t0", "held", " t1 ", "d3", "t0")
    write(shen / "sentiment.test.1", "t2", "held2", "d4 .")
    for name in ("sentiment.test", "reference"):
        write(li / f"{name}.0", "held" + "\tBetter." * (name == "reference"))
        write(li / f"{name}.1", "held2" + "\tWorse." * (name == "reference"))
    monkeypatch.setenv("ELBOROOM_DATA", str(tmp_path))
    data = registry.load("yelp-sentiment")
    found = {
        name: list(zip(data.sentences(rows), data.labels[rows, 0], strict=True)) for name, rows in data.splits.items()
    }
    assert found == {
        "train": [("t0", 0), ("t1", 0), ("t0", 0), ("t2", 1)],
        "valid": [("d0", 0), ("d2", 0), ("d0", 0), ("d4 .", 1)],
        "test": [("d1", 0), ("d3", 0), ("d5 .", 1), ("d1", 1)],
    }
    assert corpora.transfer_pairs() == [("held", 1, "Better."), ("held2", 0, "Worse.")]
    write(li / "reference.1", "held2")
    with pytest.raises(Problem, match=r"line 1 of .*reference\.1 must be a sentence, a TAB and its rewriting"):
        corpora.transfer_pairs()


def dialogues(folder: Path, name: str, texts: list[str], acts: list[str], emotions: list[str]) -> None:
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / f"{name}.zip", "w") as archive:
        for what, some in (("", texts), ("act_", acts), ("emotion_", emotions)):
            archive.writestr(f"{name}/dialogues_{what}{name}.txt", "".join(f"{line}\n" for line in some))


def test_dialogues_by_hand(tmp_path: Path) -> None:
    train = ["Hi . __eou__ Who ? __eou__", "Odd __eou__ one __eou__", "Bye . __eou__"]
    dialogues(tmp_path, "train", train, ["1 2", "1", "4"], ["0 6", "0", "3"])
    dialogues(tmp_path, "validation", ["hi .  __eou__ WHO ? __eou__", "New . __eou__"], ["1 2", "3"], ["0 6", "1"])
    dialogues(tmp_path, "test", ["bye . __eou__", "Bye . __eou__ Hi . __eou__"], ["4", "4 1"], ["3", "3 0"])
    data = corpora.dailydialog(tmp_path)
    assert {name: data.sentences(rows) for name, rows in data.splits.items()} == {
        "train": ["Hi .", "Who ?", "Bye ."],
        "valid": ["New ."],
        "test": ["Bye .", "Hi ."],
    }
    assert data.labels.tolist() == [[0, 0], [1, 6], [3, 3], [2, 1], [3, 3], [0, 0]]
    assert data.classes["emotion"][6] == "surprise"
    (tmp_path / "test.zip").write_bytes(b"no zip")
    with pytest.raises(Problem, match=r"test\.zip cannot be read as a zip of dialogues"):
        corpora.dailydialog(tmp_path)


# ---- where they come from


@pytest.mark.parametrize("name", NAMES)
def test_files_are_put_in_place_by_hand(name: str, cache: Path) -> None:
    said = rf"{name} is missing and cannot be downloaded; put .*{next(iter(SOURCES[name].files)).name}.* into {cache}"
    with pytest.raises(Problem, match=said):
        registry.load(name)
    with pytest.raises(Problem, match=said):
        registry.get(name)
    row = next(row for row in registry.listing() if row["name"] == name)
    assert (row["where"], row["how"]) == ("not here", f"by hand: elbo data get {name} says where to put it")


def test_own_folder_is_named_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELBOROOM_DATA", str(tmp_path / "own"))
    with pytest.raises(Problem, match=rf"into {tmp_path / 'own' / 'ptb'}$"):
        registry.get("ptb")


def test_rewritings_that_are_not_here() -> None:
    with pytest.raises(Problem, match="rewritings of yelp-sentiment are missing"):
        corpora.transfer_pairs()
    with pytest.raises(Problem, match="unknown corpus with rewritings 'ptb'"):
        corpora.transfer_pairs("ptb")


def test_columns_are_known(real: Path) -> None:
    with pytest.raises(Problem, match="columns of ptb are fixed"):
        registry.load("ptb", reading=Reading(text_column="text"))
