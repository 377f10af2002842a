from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from elboroom.core.problem import Problem
from elboroom.data import arrays, registry, text
from elboroom.data.dataset import About, Bytes, DataSet
from elboroom.data.fields import Field, said_kinds
from elboroom.data.text import Reading
from elboroom.training.batches import Batches, batch_of

GREY = (np.arange(6 * 5 * 4) * 37 % 256).astype(np.uint8).reshape(6, 5, 4)
DIGITS = np.array([7, 7, 9, 9, 9, 3])

HASHES = {  # as they were before labels had kinds: runs of then must load
    "array": "52d69bc9b9d0a8c4b9a108fc77b9941c882b73a52ae82eefb76446f5a3c22f1c",
    "labelled": "4d9f4b6288a0b8f9082f48902efb962d283e80eab0c324ec6316a7e007779bfb",
    "npz": "4d9f4b6288a0b8f9082f48902efb962d283e80eab0c324ec6316a7e007779bfb",
    "vectors": "14a14a2a2dd53be8d2ddceffe516979f652f55941ec624b0b25abcc9336286b6",
    "npy": "52d69bc9b9d0a8c4b9a108fc77b9941c882b73a52ae82eefb76446f5a3c22f1c",
    "folder": "2f41b4810b71bc9c50716c5336b44219acbdc6c12ca3d9a4b9c8b2b77e85ed89",
    "text": "e8ad8fedaba79d0f8daa72d416bac4eaadee3fa53be9e342296b94ad22625d94",
    "table": "fdc4a3708251560f2b409f0a2cf5e22d016aa0f34b26220a63d067ccf93bde55",
    "list": "dbba9ab167a51c45c097a5f5a3865ab7ac1ce74fca0ee4cf6a18b0890a7a1ee5",
    "handed": "1668e2b88231bffbc727a2f4bcf56654e27e630192bb9e0c336e19dcb8094835",
    "own": "7b1fdf977f93a7f4cf84d0f084b4b6876b35c622efa4a47148f2fae5a2cba5ac",
    "sentences": "b09df25860c7743e88d773b07c47086270f4c5867de6a9f01beebe3846639d8a",
}


def own() -> DataSet:
    labels = np.stack([np.arange(6) % 4, np.arange(6) % 2], 1)
    return DataSet(About("toy", "pixels", (1, 5, 4), 6, {"colour": 4, "form": 2}), Bytes(GREY[:, None]), labels=labels)


def every(folder: Path) -> dict[str, DataSet]:
    """A small data set of each form."""
    np.savez(folder / "one.npz", images=GREY, labels=DIGITS)
    np.savez(folder / "two.npz", x=GREY.reshape(6, 20) / 256, y=np.array(["b", "a", "b", "a", "b", "a"]))
    np.save(folder / "grey.npy", GREY)
    for k in range(4):
        path = folder / "pictures" / "ab"[k % 2] / f"{k}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(GREY[k]).save(path)
    (folder / "mood.txt").write_text("pos\tgood food\nneg\tbad food\npos\tnice\nneg\tcold soup here\n")
    (folder / "stars.csv").write_text('review,star,label\n"so, good",5,pos\nbad,1,neg\nodd one,1,pos\n')
    columns = Reading(text_column="review", label_column="star,label")
    return {
        "array": registry.load(GREY),
        "labelled": arrays.dataset(GREY, labels=DIGITS),
        "npz": registry.load(folder / "one.npz"),
        "vectors": registry.load(folder / "two.npz"),
        "npy": registry.load(folder / "grey.npy"),
        "folder": registry.load(folder / "pictures"),
        "text": registry.load(folder / "mood.txt"),
        "table": registry.load(folder / "stars.csv", reading=columns),
        "list": registry.load(["a b", "b c", "c d"]),
        "handed": text.handed(["a b", "b c", "c d"], [3, 1, 2]),
        "own": own(),
        "sentences": registry.load("sentences"),
    }


def test_hashes_are_what_they_were(tmp_path: Path) -> None:
    assert {name: data.hash for name, data in every(tmp_path).items()} == HASHES


def test_a_field_has_a_kind_and_classes() -> None:
    assert arrays.dataset(GREY, labels=DIGITS).fields == {"label": Field("label", "categorical", ("3", "7", "9"), 3)}
    assert own().fields == {"colour": Field("colour", "categorical", (), 4), "form": Field("form", "binary", (), 2)}
    assert registry.load(GREY).fields == {}


def test_published_sets_say_what_their_labels_are() -> None:
    kinds = registry.load("sentences").about.kinds
    ordered = {"number", "tense", "negation", "polarity"}
    assert {name for name, kind in kinds.items() if kind == "ordinal"} == ordered
    assert {kind for name, kind in kinds.items() if name not in ordered} == {"categorical"}


@pytest.mark.unhurried
def test_the_kinds_of_dsprites(real: Path) -> None:
    kinds = registry.load("dsprites").about.kinds
    assert kinds == {"shape": "categorical", **dict.fromkeys(("scale", "orientation", "posX", "posY"), "ordinal")}


def test_kinds_that_were_said_are_in_the_hash_where_they_differ() -> None:
    data = own()
    other = registry.load(data, label_kinds="colour=ordinal")
    assert (other.about.kinds, other.said_kinds) == ({"colour": "ordinal", "form": "binary"}, {"colour": "ordinal"})
    assert other.hash != data.hash
    assert registry.load(data, label_kinds={"colour": "categorical", "form": "binary"}).hash == data.hash
    assert other.with_kinds({"colour": "ordinal"}) is other
    assert other.with_kinds({"colour": "categorical"}).hash == data.hash
    assert other.with_kinds({"form": "ordinal"}).hash != other.hash


def test_what_is_held_out_keeps_the_kinds() -> None:
    for data in (own(), text.handed([f"a {k} b" for k in range(8)], [10, 9, 9, 10, 9, 10, 9, 10])):
        name = list(data.about.labels)[-1]
        other = data.with_kinds({name: "ordinal"})
        held = other.hold_out(0.5)
        assert (held.about.kinds, held.hash) == (other.about.kinds, other.hash)
        assert (held.labels.tolist(), held.classes) == (other.labels.tolist(), other.classes)


def test_ordinal_values_are_numbered_by_size() -> None:
    data = arrays.dataset(GREY, labels={"age": np.array(["10", "9.5", "-2", "100", "9.5", "-2"])})
    assert data.classes == {"age": ("-2", "10", "100", "9.5")}
    ordered = data.with_kinds({"age": "ordinal"})
    assert ordered.classes == {"age": ("-2", "9.5", "10", "100")}
    assert ordered.labels[:, 0].tolist() == [2, 1, 0, 3, 1, 0]
    assert data.labels[:, 0].tolist() == [1, 3, 0, 2, 3, 0], "the data itself stays"


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        ("color=ordinal", "did you mean 'colour'"),
        ("colour=ordinary", "did you mean 'ordinal'"),
        ("colour=sequence", "kind of label"),
        ("colour=binary", "has 4 values; a binary label has exactly two"),
        ("colour", "NAME=KIND"),
        ("colour=", "NAME=KIND"),
        ("form=binary,form=ordinal", "names 'form' twice"),
    ],
)
def test_kinds_that_are_refused(kinds: str, said: str) -> None:
    with pytest.raises(Problem, match=said):
        registry.load(own(), label_kinds=kinds)


@pytest.mark.parametrize("values", [["a", "b"], ["1", "nan"], ["1", "1.0"], ["1_0", "2"]])
def test_ordinal_needs_different_numbers(values: list[str]) -> None:
    data = arrays.dataset(GREY, labels={"mood": np.array(values * 3)})
    with pytest.raises(Problem, match="'mood' cannot be ordinal"):
        data.with_kinds({"mood": "ordinal"})


def test_kinds_without_labels() -> None:
    with pytest.raises(Problem, match="has no labels"):
        registry.load(GREY, label_kinds="label=ordinal")
    assert said_kinds(" a = binary, b=ordinal,") == {"a": "binary", "b": "ordinal"}


def test_about_tells_kinds_and_reads_what_older_runs_keep() -> None:
    about = own().with_kinds({"colour": "ordinal"}).about
    entry = about.to_json()
    assert entry["kinds"] == {"colour": "ordinal", "form": "binary"}
    assert About.from_json(entry) == about
    old = {name: value for name, value in entry.items() if name != "kinds"}
    assert About.from_json(old).kinds == {"colour": "categorical", "form": "binary"}
    for wrong in ({"colour": "odd"}, {"shade": "binary"}, ["colour"]):
        with pytest.raises(Problem):
            About.from_json(entry | {"kinds": wrong})


def test_a_batch_carries_all_labels_whatever_is_given() -> None:
    data = own()
    batch = batch_of(data, np.array([5, 0]), ("form",))
    assert batch.y is not None
    assert (batch.y.dtype, batch.y.tolist()) == (torch.int64, [[1, 1], [0, 0]])
    assert batch.u is not None
    assert batch.u.tolist() == [[0, 1], [1, 0]]
    assert (batch.context, batch.context_lengths) == (None, None)
    assert batch_of(registry.load(GREY), np.array([5, 0]), ()).y is None
    drawn = Batches(data, "train", 3, 0, (), torch.device("cpu"))(0)
    assert drawn.index is not None
    assert drawn.y is not None
    assert torch.equal(drawn.y, torch.from_numpy(data.labels)[drawn.index])
