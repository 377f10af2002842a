"""Examples that come one by one: torch objects, and data sets of the Hub, here as trees of local files."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from elboroom.core.problem import Problem
from elboroom.data import places, registry, rows
from elboroom.data.dataset import DataSet
from elboroom.data.photos import Photos
from elboroom.data.text import Reading


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of one's own, and no network."""
    monkeypatch.setenv("ELBOROOM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("datasets.config.HF_DATASETS_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def values(data: DataSet) -> np.ndarray:
    return data.x(np.arange(len(data))).numpy()


def test_a_tensor_dataset_and_its_loader_are_the_same_data() -> None:
    x, y = torch.rand(30, 1, 8, 8), torch.arange(30) % 3
    dataset = TensorDataset(x, y)
    data = registry.load(dataset)
    assert (data.about.kind, data.about.shape, data.about.labels) == ("pixels", (1, 8, 8), {"label": 3})
    assert np.allclose(values(data), x.numpy())
    assert data.labels[:, 0].tolist() == y.tolist()
    shuffled = registry.load(DataLoader(dataset, batch_size=4, shuffle=True))
    assert shuffled.hash == data.hash, "the order in which it happens to be read is no part of the data"


class Loader:
    """What a loader of one's own may be: no torch, batches in turn, the last one smaller."""

    def __init__(self, x: Any, y: Any, size: int = 8) -> None:
        self.x, self.y, self.size = x, y, size

    def __len__(self) -> int:
        return -(-len(self.y) // self.size)

    def __iter__(self) -> Iterator[Any]:
        for start in range(0, len(self.y), self.size):
            yield self.x[start : start + self.size], self.y[start : start + self.size]


def test_batches_of_a_loader_that_is_not_of_torch_are_examples() -> None:
    x, y = np.random.default_rng(0).random((33, 1, 8, 8), np.float32), np.arange(33) % 3  # the last batch has one
    whole = registry.load(TensorDataset(torch.tensor(x), torch.tensor(y)))
    for data in (Loader(x, y), Loader(torch.tensor(x), torch.tensor(y))):
        assert np.array_equal(values(found := registry.load(data)), values(whole))
        assert found.labels[:, 0].tolist() == y.tolist()
    said = registry.load(Loader([f"w{i % 5} w{i % 3}" for i in range(33)], y))
    assert (len(said), said.about.kind) == (33, "tokens")
    assert said.labels[:, 0].tolist() == y.tolist()
    with pytest.raises(
        Problem, match=r"row 0 has a label of shape \(4,\), where a label is one value; hand in examples"
    ):
        registry.load(Endless([(np.zeros((3, 2)), np.zeros(4))] * 12))


class Pictures(Dataset[Any]):
    """As torchvision has them: a picture and a number."""

    def __init__(self, sides: list[int], colour: int = 99) -> None:
        self.sides, self.colour = sides, colour

    def __len__(self) -> int:
        return len(self.sides)

    def __getitem__(self, i: int) -> tuple[Image.Image, int]:
        made = Image.new(
            "RGB" if i >= self.colour else "L", (self.sides[i], self.sides[i]), None if i >= self.colour else 7 * i
        )
        return made, i % 2


def test_pictures_of_a_dataset_are_read_as_those_of_a_folder_are() -> None:
    data = registry.load(Pictures([8] * 20))
    assert data.about.shape == (1, 8, 8)
    assert data.about.levels == 256
    assert np.allclose(values(data)[:, 0, 0, 0] * 255, 7 * np.arange(20))
    assert not list((places.cache() / "rows").glob("*")), "nothing stays of an object of this process"
    assert registry.load(Pictures([8, 9] * 5), size=4).about.shape == (1, 4, 4)
    with pytest.raises(Problem, match=r"row 1 is 9 x 9, those before it 8 x 8\); resize them with --size 64"):
        registry.load(Pictures([8, 9] * 5))
    with pytest.raises(Problem, match="row 3 of 'Pictures' is in colour"):
        registry.load(Pictures([8] * 5, colour=3))


class Endless(IterableDataset[Any]):
    """Examples without a number, of several kinds."""

    def __init__(self, examples: list[Any]) -> None:
        self.examples = examples

    def __iter__(self) -> Iterator[Any]:
        return iter(self.examples)


def test_vectors_sentences_and_records_in_turn() -> None:
    vectors = registry.load(Endless([torch.tensor([i, 2.0 * i]) for i in range(12)]))
    assert (vectors.about.kind, vectors.about.shape) == ("vectors", (2,))
    assert values(vectors)[5].tolist() == [5, 10]
    sentences = registry.load(Endless([(f"a b w{i % 4}", i % 2) for i in range(20)]), reading=Reading(min_count=1))
    assert sentences.draft.kind == "tokens"
    assert sentences.sentences(np.array([1])) == ["a b w1"]
    assert sentences.classes == {"label": ("0", "1")}
    records = registry.load(Endless([{"u": i, "v": [0.5, i], "label": "ab"[i % 2]} for i in range(12)]))
    assert values(records)[3].tolist() == [3, 0.5, 3]
    assert records.classes == {"label": ("a", "b")}


@pytest.mark.parametrize(
    ("examples", "sentence"),
    [
        ([], "the train split of 'Endless' has no examples"),
        ([torch.zeros(2), torch.zeros(3)], r"row 1 of 'Endless' has shape \(3,\), and those before it \(2,\)"),
        ([object()] * 3, "something else than numbers, pictures, text and labels"),
    ],
)
def test_what_is_no_data_is_said_in_a_sentence(examples: list[Any], sentence: str) -> None:
    with pytest.raises(Problem, match=sentence):
        registry.load(Endless(examples))
    with pytest.raises(Problem, match="a name, a path, an array or a torch Dataset, not dict"):
        registry.load({"a": 1})
    with pytest.raises(Problem, match="--size is for images"):
        registry.load(TensorDataset(torch.rand(9, 4)), size=8)


def tree(folder: Path) -> str:
    """Pictures in folders by split and class, as the library finds them."""
    for split, count in (("train", 12), ("test", 4)):
        for i in range(count):
            path = folder / split / ("cat" if i % 2 else "dog") / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (10, 10), (i, 2 * i, 200)).save(path)
    return f"hf:{folder}"


@pytest.mark.unhurried
def test_pictures_of_the_hub_are_streamed_into_the_cache_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tree(tmp_path / "pets")
    data = registry.load(source, size=8, photos=Photos(crop="centre"))
    assert (data.about.shape, data.classes) == ((3, 8, 8), {"label": ("cat", "dog")})
    assert {name: len(found) for name, found in data.splits.items()} == {"train": 12, "test": 4}
    first = [data.classes["label"][value] for value in data.labels[data.splits["train"], 0]]
    assert sorted(first) == ["cat"] * 6 + ["dog"] * 6
    assert isinstance(data.plain.store.array.base, np.memmap), "mapped, not in memory"
    monkeypatch.setattr(rows, "_streamed", lambda *_: pytest.fail("it is there already"))
    again = registry.load(source, size=8, photos=Photos(crop="centre"))
    assert again.hash == data.hash
    assert registry.lasting(source) == source


@pytest.mark.unhurried
def test_sentences_and_numbers_of_the_hub(tmp_path: Path) -> None:
    for name, header, row in (
        ("text", ["text", "label"], lambda i: [f"w{i % 5} w{i % 3} end", i % 2]),
        ("numbers", ["a", "b"], lambda i: [i, i / 2]),
    ):
        (tmp_path / name).mkdir()
        with (tmp_path / name / "train.csv").open("w", newline="") as file:
            csv.writer(file).writerows([header, *map(row, range(40))])
    words = registry.load(f"hf:{tmp_path}/text")
    assert words.sentences(np.array([4])) == ["w4 w1 end"]
    assert words.classes == {"label": ("0", "1")}
    assert values(registry.load(f"hf:{tmp_path}/numbers"))[3].tolist() == [3, 1.5]
    with pytest.raises(Problem, match="has no column 'body'"):
        registry.load(f"hf:{tmp_path}/text", reading=Reading(text_column="body"))
    with pytest.raises(Problem, match="cannot be read"):
        registry.load(f"hf:{tmp_path}/nothing")
