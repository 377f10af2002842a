from __future__ import annotations

import numpy as np
import pytest
import torch

from elboroom.core.problem import Problem
from elboroom.data.dataset import About, Bits, Bytes, DataSet, Reals

rng = np.random.default_rng(0)
IMAGES = rng.integers(0, 256, (40, 1, 5, 3), dtype=np.uint8)
LABELS = np.stack([np.arange(40) % 4, np.arange(40) % 3], axis=1)


def data() -> DataSet:
    return DataSet(About("toy", "pixels", (1, 5, 3), 40, {"colour": 4, "form": 3}), Bytes(IMAGES), labels=LABELS)


@pytest.mark.parametrize("index", [np.array([3, 1, 3]), torch.tensor([3, 1, 3]), [3, 1, 3]])
def test_gather_takes_numpy_torch_and_lists(index: object) -> None:
    x = data().x(index)  # type: ignore[arg-type]
    assert x.dtype == torch.float32
    assert torch.equal(x, torch.from_numpy(IMAGES[[3, 1, 3]]).float() / 255)


def test_bits_give_back_what_was_packed() -> None:
    images = rng.integers(0, 2, (7, 1, 5, 3), dtype=np.uint8)  # 15 pixels: the last byte is not full
    store = Bits(np.packbits(images.reshape(7, -1), axis=1), (1, 5, 3))
    assert torch.equal(store.take(np.array([6, 0])), torch.from_numpy(images[[6, 0]]).float())


def test_labels_are_one_hot_side_by_side() -> None:
    u = data().u([5, 6], ["form", "colour"])
    assert u.tolist() == [[0, 0, 1, 0, 1, 0, 0], [1, 0, 0, 0, 0, 1, 0]]
    assert data().u([5, 6], []).shape == (2, 0)


def test_unknown_label_names_the_nearest() -> None:
    with pytest.raises(Problem, match="did you mean 'colour'"):
        data().u([0], ["color"])
    with pytest.raises(Problem, match="has no labels"):
        DataSet(About("bare", "pixels", (1, 5, 3), 40, {}), Bytes(IMAGES)).u([0], ["label"])


def test_hold_out_is_a_partition_and_always_the_same() -> None:
    one, two = data().hold_out(0.1), data().hold_out(0.1)
    assert np.array_equal(one.splits["test"], two.splits["test"])
    assert sorted([*one.splits["train"], *one.splits["test"]]) == list(range(40))
    assert (one.about.n, len(one.splits["test"])) == (36, 4)
    assert one.hash == data().hash
    again = one.hold_out(0.25, "valid")
    assert {name: len(rows) for name, rows in again.splits.items()} == {"train": 27, "test": 4, "valid": 9}
    assert data().hold_out(0) is not None


@pytest.mark.parametrize("share", [-0.1, 1.0, 1.5, float("nan"), 0.99])
def test_hold_out_refuses_nonsense(share: float) -> None:
    with pytest.raises(Problem):
        data().hold_out(share)


def test_hold_out_refuses_a_split_that_is_there() -> None:
    with pytest.raises(Problem, match="already has a split 'test'"):
        data().hold_out(0.1).hold_out(0.1)


def test_hash_is_of_content() -> None:
    changed, labels = IMAGES.copy(), LABELS.copy()
    changed[39, 0, 0, 0] ^= 1
    labels[39, 1] ^= 1
    hashes = {data().hash, data().hash}
    assert len(hashes) == 1
    hashes.add(DataSet(data().about, Bytes(changed), labels=LABELS).hash)
    hashes.add(DataSet(data().about, Bytes(IMAGES), labels=labels).hash)
    assert len(hashes) == 3


def test_about_round_trips_through_json() -> None:
    about = data().about
    assert About.from_json(about.to_json()) == about
    with pytest.raises(Problem, match="not a valid description"):
        About.from_json({"name": "x"})
    with pytest.raises(Problem, match="kind of data"):
        About.from_json({**about.to_json(), "kind": "pixel"})


def test_too_few_and_wrong_labels() -> None:
    about = About("toy", "vectors", (2,), 1, {}, 0)
    with pytest.raises(Problem, match="at least 2"):
        DataSet(about, Reals(np.zeros((1, 2), np.float32)))
    with pytest.raises(Problem, match="outside 0 to 3"):
        DataSet(data().about, Bytes(IMAGES), labels=LABELS + 1)
    with pytest.raises(Problem, match="labels of shape"):
        DataSet(data().about, Bytes(IMAGES), labels=LABELS[:3])
