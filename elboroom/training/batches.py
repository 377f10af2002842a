"""Batches and noise as pure functions of (seed, step, player, turn): what makes a run resume bit for bit."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from elboroom.core import distributed
from elboroom.core.batch import Batch
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.data.sequences import SEQUENCES


def reseed(*key: int) -> None:
    """Starts torch's noise at a place that depends on the key alone."""
    seed = int(np.random.SeedSequence((len(key), *key)).generate_state(1, np.uint64)[0] >> 1)
    torch.default_generator.manual_seed(seed)  # torch.manual_seed asks every backend, which costs half a millisecond
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)


Order = Literal["mixed", "buckets", "constant"]
POOL = 50  # batches that are sorted by length together


class Batches:
    """Batches of distinct examples of a split, every epoch anew.

    `mixed`: a permutation, cut; the remainder of an epoch is left out. `buckets`: of sentences, permuted, then sorted by
    length within pools of 50 batches, cut, and the batches shuffled: all have `size` sentences of similar lengths.
    `constant`: of sentences sorted by length, each batch of at most `size` with one length; what is in a batch stays, their
    order is shuffled (He et al. 2019).
    """

    def __init__(
        self,
        data: DataSet,
        split: str,
        size: int,
        seed: int,
        given: tuple[str, ...],
        device: torch.device,
        order: Order = "mixed",
    ) -> None:
        self.data, self.rows, self.size, self.seed = data, data.splits[split], size, seed
        self.given, self.device, self.order = given, device, order
        if size > len(self.rows):
            raise Problem(f"--batch-size {size} is more than the {len(self.rows)} examples of split '{split}'")
        if size % distributed.world():
            raise Problem(
                f"--batch-size {size} cannot be shared by {distributed.world()} devices; use a multiple of that"
            )
        if order == "constant" and distributed.world() > 1:
            raise Problem("batches of one length differ in size, so devices cannot share them; use --batches buckets")
        self.lengths = _lengths(data, self.rows, order)
        if order == "constant":
            by_length = np.argsort(self.lengths, kind="stable")
            self.rows, self.lengths = self.rows[by_length], self.lengths[by_length]
        self.bounds = _bounds(self.lengths, size, order)  # where each batch of an epoch begins, and the last ends
        self.per_epoch = len(self.bounds) - 1
        self._epoch: tuple[int, NDArray[np.int64], NDArray[np.int64]] = (-1, self.rows, self.bounds)

    def __call__(self, step: int) -> Batch:
        """The batch of a step."""
        epoch, place = divmod(step, self.per_epoch)
        return self._batch(self._planned(epoch, place), step)

    def fresh(self, step: int, player: int, turn: int) -> Batch:
        """Another batch for one turn of one player; of sentences by length, another one of the same epoch."""
        rng = np.random.default_rng([self.seed, 1, step, player, turn])
        if self.order == "mixed":
            return self._batch(self.rows[rng.choice(len(self.rows), self.size, replace=False, shuffle=False)], step)
        epoch, place = divmod(step, self.per_epoch)
        further = int(rng.integers(1, self.per_epoch)) if self.per_epoch > 1 else 0
        return self._batch(self._planned(epoch, (place + further) % self.per_epoch), step)

    def _planned(self, epoch: int, place: int) -> NDArray[np.int64]:
        """The rows of one batch of an epoch."""
        if self._epoch[0] != epoch:
            self._epoch = epoch, *self._plan(np.random.default_rng([self.seed, 0, epoch]))
        _, rows, turns = self._epoch
        batch = turns[place]
        return rows[self.bounds[batch] : self.bounds[batch + 1]]

    def _plan(self, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows of an epoch, and the order in which their batches come."""
        if self.order == "constant":
            return self.rows, rng.permutation(self.per_epoch)
        if self.order == "mixed":
            return rng.permutation(self.rows), np.arange(self.per_epoch)
        drawn = rng.permutation(len(self.rows))[: self.per_epoch * self.size]  # ties of length stay in this order
        drawn = drawn[np.lexsort((self.lengths[drawn], np.arange(len(drawn)) // (POOL * self.size)))]
        return self.rows[drawn], rng.permutation(self.per_epoch)

    def _batch(self, rows: NDArray[np.int64], step: int) -> Batch:
        if distributed.world() > 1:
            share = self.size // distributed.world()
            rows = rows[distributed.rank() * share : (distributed.rank() + 1) * share]
        return batch_of(self.data, rows, self.given, self.device, step)


def steps_of(data: DataSet, split: str, size: int, order: Order, epochs: float) -> int:
    """How many steps that many passes over a split are, at least one."""
    lengths = _lengths(data, data.splits[split], order)
    return max(1, round(epochs * (len(_bounds(np.sort(lengths), size, order)) - 1)))


def _lengths(data: DataSet, rows: NDArray[np.int64], order: Order) -> NDArray[np.int64]:
    """The lengths of sentences; where they do not matter, all the same."""
    if order == "mixed":
        return np.zeros(len(rows), np.int64)
    if data.about.kind != "tokens":
        raise Problem(
            f"--batches {order} is for text, and '{data.about.name}' is {data.about.kind}; use --batches mixed"
        )
    return data.lengths(rows).numpy()


def _bounds(lengths: NDArray[np.int64], size: int, order: Order) -> NDArray[np.int64]:
    """Where the batches of sorted sentences begin, and the last ends."""
    if order != "constant":
        return np.arange(len(lengths) // size + 1) * size
    changes = np.concatenate([[0], np.flatnonzero(np.diff(lengths)) + 1, [len(lengths)]])
    return np.unique(np.concatenate([np.arange(a, b, size) for a, b in pairwise(changes)] + [changes]))


def batch_of(
    data: DataSet, rows: NDArray[np.int64], given: tuple[str, ...], device: torch.device | str = "cpu", step: int = 0
) -> Batch:
    """These rows of a data set as a Batch."""
    labels = [name for name in given if name not in data.draft.sequences]
    u = data.u(rows, labels) if labels else None
    lengths = data.lengths(rows) if data.about.kind == "tokens" else None
    y = torch.from_numpy(data.labels[rows]) if data.about.labels else None
    beside: dict[str, Any] = {}
    for name in (name for name in SEQUENCES if name in data.draft.sequences):
        beside[name], beside[f"{name}_lengths"] = data.sequence(name, rows)
    return Batch(data.x(rows), u, lengths, torch.from_numpy(rows), step, y, **beside).to(torch.device(device))
