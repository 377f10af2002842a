"""Batches and noise as pure functions of (seed, step, player, turn): what makes a run resume bit for bit."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from elboroom.core import ranks
from elboroom.core.draw import Batch
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet


def reseed(*key: int) -> None:
    """Starts torch's noise at a place that depends on the key alone."""
    seed = int(np.random.SeedSequence((len(key), *key)).generate_state(1, np.uint64)[0] >> 1)
    torch.default_generator.manual_seed(seed)  # torch.manual_seed asks every backend, which costs half a millisecond
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)


class Batches:
    """Batches of distinct examples of a split: every epoch a new permutation, the remainder of an epoch left out."""

    def __init__(self, data: DataSet, split: str, size: int, seed: int, given: tuple[str, ...], device: torch.device):
        self.data, self.rows, self.size, self.seed = data, data.splits[split], size, seed
        self.given, self.device = given, device
        if size > len(self.rows):
            raise Problem(f"--batch-size {size} is more than the {len(self.rows)} examples of split '{split}'")
        if size % ranks.world():
            raise Problem(f"--batch-size {size} cannot be shared by {ranks.world()} devices: make it a multiple")
        self.per_epoch = len(self.rows) // size
        self._epoch: tuple[int, NDArray[np.int64]] = (-1, self.rows)

    def __call__(self, step: int) -> Batch:
        """The batch of a step."""
        epoch, place = divmod(step, self.per_epoch)
        if self._epoch[0] != epoch:
            self._epoch = epoch, np.random.default_rng([self.seed, 0, epoch]).permutation(self.rows)
        return self._batch(self._epoch[1][place * self.size : (place + 1) * self.size], step)

    def fresh(self, step: int, player: int, turn: int) -> Batch:
        """Another batch for one turn of one player."""
        rng = np.random.default_rng([self.seed, 1, step, player, turn])
        return self._batch(self.rows[rng.choice(len(self.rows), self.size, replace=False, shuffle=False)], step)

    def _batch(self, rows: NDArray[np.int64], step: int) -> Batch:
        share = self.size // ranks.world()
        rows = rows[ranks.rank() * share : (ranks.rank() + 1) * share]
        return batch_of(self.data, rows, self.given, self.device, step)


def batch_of(
    data: DataSet, rows: NDArray[np.int64], given: tuple[str, ...], device: torch.device | str = "cpu", step: int = 0
) -> Batch:
    """These rows of a data set as a Batch."""
    u = data.u(rows, given) if given else None
    return Batch(data.x(rows), u, index=torch.from_numpy(rows), step=step).to(torch.device(device))
