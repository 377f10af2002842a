"""Batches of sentences: by similar length, by one length, or mixed; always a function of the seed and the step."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
import torch

from elboroom.core import distributed
from elboroom.core.problem import Problem
from elboroom.data import registry
from elboroom.data.dataset import DataSet
from elboroom.data.text import gather
from elboroom.data.tokens import PAD
from elboroom.training import batches as module
from elboroom.training.batches import Batches, Order, batch_of, steps_of

CPU = torch.device("cpu")
SIZE = 4


def corpus(lengths: list[int]) -> DataSet:
    """A sentence of each length; label and place in the order are told apart by the words."""
    words = itertools.cycle("abcdefgh")
    train = [(" ".join(next(words) for _ in range(n)), (str(k % 3),)) for k, n in enumerate(lengths)]
    test = [("a b", ("0",)), ("c", ("1",))]
    return gather("toy", {"train": train, "test": test}, {"label": None})


LENGTHS = np.random.default_rng(0).integers(1, 12, 103).tolist()
DATA = corpus(LENGTHS)


def made(order: Order, data: DataSet = DATA, size: int = SIZE, seed: int = 3, **options: object) -> Batches:
    return Batches(data, "train", size, seed, (), CPU, order, **options)


def rows(batches: Batches, steps: range) -> list[list[int]]:
    return [batches(step).index.tolist() for step in steps]  # type: ignore[union-attr]


ORDERS: list[Order] = ["mixed", "buckets", "constant"]


def test_a_batch_has_lengths_and_labels() -> None:
    batch = batch_of(DATA, np.array([5, 2, 9]), ("label",))
    assert batch.lengths is not None
    assert batch.lengths.tolist() == [LENGTHS[k] + 1 for k in (5, 2, 9)]
    assert torch.equal(batch.lengths, (batch.x != PAD).sum(1) - 1)
    assert batch.x.dtype == torch.int64
    assert batch.x.shape == (3, 2 + max(LENGTHS[k] for k in (5, 2, 9)))
    assert batch.u is not None
    assert batch.u.argmax(1).tolist() == [2, 2, 0]
    assert batch_of(registry.load(np.zeros((4, 3))), np.array([0]), ()).lengths is None


@pytest.mark.parametrize("order", ORDERS)
def test_a_function_of_seed_and_step(order: Order) -> None:
    one, two, other = made(order), made(order), made(order, seed=4)
    steps = 2 * one.per_epoch + 3
    seen = rows(one, range(steps))
    for step in reversed(range(steps)):
        assert two(step).index.tolist() == seen[step]  # type: ignore[union-attr]
    assert rows(other, range(steps)) != seen
    assert seen[: one.per_epoch] != seen[one.per_epoch : 2 * one.per_epoch]
    assert one(7).step == 7


@pytest.mark.parametrize("order", ["mixed", "buckets"])
def test_batches_are_full_and_distinct(order: Order) -> None:
    batches = made(order)
    assert batches.per_epoch == 103 // SIZE == 25
    left_out = []
    for epoch in range(3):
        seen = rows(batches, range(25 * epoch, 25 * (epoch + 1)))
        assert all(len(set(batch)) == SIZE for batch in seen)
        assert len({row for batch in seen for row in batch}) == 100, "no example twice in an epoch"
        assert {row for batch in seen for row in batch} <= set(range(103))
        left_out.append(set(range(103)) - {row for batch in seen for row in batch})
    assert len(set(map(frozenset, left_out))) > 1, "the remainder is another one in every epoch"


def test_mixed_is_the_plain_permutation() -> None:
    for epoch in (0, 2):
        plain = np.random.default_rng([3, 0, epoch]).permutation(DATA.splits["train"])
        assert rows(made("mixed"), range(25 * epoch, 25 * epoch + 25)) == plain[:100].reshape(25, 4).tolist()


def test_buckets_are_pools_sorted_by_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POOL", 10)
    batches, drawn = made("buckets"), np.random.default_rng([3, 0, 1]).permutation(103)[:100]
    seen = rows(batches, range(25, 50))
    pools = [set(drawn[:40].tolist()), set(drawn[40:80].tolist()), set(drawn[80:].tolist())]
    for pool, count in zip(pools, (10, 10, 5), strict=True):
        mine = sorted((batch for batch in seen if set(batch) <= pool), key=lambda b: [LENGTHS[r] for r in b])
        assert len(mine) == count
        lengths = [LENGTHS[r] for batch in mine for r in batch]
        assert lengths == sorted(LENGTHS[r] for r in pool), "batches of a pool follow one another in length"


def test_buckets_come_shuffled() -> None:
    """One pool holds all, so that unshuffled batches would grow from the first to the last."""
    longest = [max(LENGTHS[r] for r in batch) for batch in rows(made("buckets"), range(25))]
    assert longest != sorted(longest)
    assert sum(a > b for a, b in itertools.pairwise(longest)) > 5


def test_buckets_pad_little() -> None:
    """One pool holds all: the lengths of a batch differ by no more than neighbours in the sorted list do."""

    def padding(order: Order) -> int:
        return sum(int((made(order)(step).x == PAD).sum()) for step in range(25))

    assert padding("buckets") < 0.15 * padding("mixed")
    wide = [
        max(LENGTHS[r] for r in batch) - min(LENGTHS[r] for r in batch) for batch in rows(made("buckets"), range(25))
    ]
    assert max(wide) <= 1


def test_ties_of_length_are_broken_anew() -> None:
    data = corpus([5] * 40)
    seen = rows(made("buckets", data), range(20))
    together = Counter(frozenset(pair) for batch in seen for pair in itertools.combinations(batch, 2))
    assert len(together) > 90, "of 120 pairs: other sentences meet in every epoch"
    assert seen[:10] != sorted(seen[:10])


def test_constant_batches_have_one_length_and_stay() -> None:
    batches = made("constant")
    counts = Counter(LENGTHS)
    assert batches.per_epoch == sum(-(-n // SIZE) for n in counts.values())
    first = rows(batches, range(batches.per_epoch))
    second = rows(batches, range(batches.per_epoch, 2 * batches.per_epoch))
    assert sorted(row for batch in first for row in batch) == list(range(103)), "every sentence once"
    for batch in first:
        assert len({LENGTHS[row] for row in batch}) == 1
        assert 1 <= len(batch) <= SIZE
        assert batch == sorted(batch), "in the order of the file"
    assert sorted(first) == sorted(second)
    assert first != second
    assert all((batches(step).x != PAD).all() for step in range(batches.per_epoch))
    sizes = Counter(LENGTHS[batch[0]] for batch in first if len(batch) < SIZE)
    assert set(sizes.values()) <= {1}, "at most one batch of each length is not full"


@pytest.mark.parametrize("order", ORDERS)
def test_fresh_batches(order: Order) -> None:
    batches, again = made(order), made(order)
    found = {turn: batches.fresh(9, 1, turn).index.tolist() for turn in range(30)}  # type: ignore[union-attr]
    assert len({tuple(batch) for batch in found.values()}) > 10
    again(80)  # another epoch is planned before
    assert all(again.fresh(9, 1, turn).index.tolist() == batch for turn, batch in found.items())  # type: ignore[union-attr]
    assert batches.fresh(9, 2, 0).index.tolist() != found[0]  # type: ignore[union-attr]
    if order != "mixed":
        epoch = rows(batches, range(batches.per_epoch))
        assert all(batch in epoch and batch != epoch[9] for batch in found.values())
    assert all(len(set(batch)) == len(batch) for batch in found.values())


def test_fresh_sorts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = made("buckets")
    batches(0)
    monkeypatch.setattr(np, "lexsort", None)
    monkeypatch.setattr(np, "argsort", None)
    batches.fresh(0, 1, 5)


def test_fresh_where_there_is_one_batch() -> None:
    batches = made("buckets", corpus([2, 3, 4]), size=3)
    assert sorted(batches.fresh(0, 0, 0).index.tolist()) == [0, 1, 2]  # type: ignore[union-attr]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("epochs", [0.001, 1, 2.5])
def test_epochs_as_steps(order: Order, epochs: float) -> None:
    assert steps_of(DATA, "train", SIZE, order, epochs) == max(1, round(epochs * made(order).per_epoch))


def test_splits_are_kept_apart() -> None:
    for order in ORDERS:
        batches = Batches(DATA, "test", 2, 0, ("label",), CPU, order)
        seen = {row for step in range(batches.per_epoch) for row in batches(step).index.tolist()}  # type: ignore[union-attr]
        assert seen == {103, 104}


def test_ranks_share_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rows(made("buckets"), range(5))
    monkeypatch.setattr(distributed, "world", lambda: 2)
    parts = []
    for rank in (0, 1):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        parts.append(rows(made("buckets"), range(5)))
    assert [a + b for a, b in zip(*parts, strict=True)] == whole
    assert all(len(part) == 2 for part in parts[0])
    with pytest.raises(Problem, match="devices cannot share them; use --batches buckets"):
        made("constant")
    with pytest.raises(Problem, match="cannot be shared by 2 devices"):
        made("buckets", size=3)


def test_what_is_refused() -> None:
    images = registry.load(np.zeros((8, 3)))
    for order in ("buckets", "constant"):
        with pytest.raises(Problem, match=f"--batches {order} is for text, and 'array' is vectors"):
            Batches(images, "train", 4, 0, (), CPU, order)
    with pytest.raises(Problem, match="--batch-size 104 is more than the 103 examples"):
        made("buckets", size=104)
