"""Watches: what looks at held-out data while a run goes on."""

from __future__ import annotations

import torch
from torch import Tensor

from elboroom.core.draw import Draw, LatentModel
from elboroom.core.method import Method, Watch
from elboroom.core.pairs import has_density
from elboroom.data.dataset import DataSet
from elboroom.training.batches import batch_of, reseed


@torch.no_grad()
def negative_elbo(model: LatentModel, data: DataSet, split: str, given: tuple[str, ...], most: int = 10_000) -> Tensor:
    """nll + kl at weight one (nll alone where q has no density), one sample, over at most `most` rows of a split."""
    rows = data.splits[split][:most]
    device = next(model.parameters()).device
    reseed(0, 0)
    total = torch.zeros((), device=device, dtype=torch.float64)
    for start in range(0, len(rows), 256):
        draw = Draw(model, batch_of(data, rows[start : start + 256], given, device))
        loss = draw.nll.sum()
        if has_density(model.families[0]):
            loss = loss + draw.rate.sum()
        total += loss.double()
    return total / len(rows)


class Plateau(Watch):
    """Ends the run after `patience` looks without a better ELBO on the validation split; the best is kept."""

    best: Tensor
    waited: Tensor

    def __init__(self, data: DataSet, given: tuple[str, ...], patience: int, every: int) -> None:
        super().__init__()
        self.data, self.given, self.patience, self.every = data, given, patience, every
        self.improved = False
        self.register_buffer("best", torch.tensor(float("inf"), dtype=torch.float64))
        self.register_buffer("waited", torch.tensor(0))

    def look(self, method: Method, step: int) -> bool:
        method.model.eval()
        value = negative_elbo(method.model, self.data, "valid", self.given)
        method.model.train()
        self.improved = bool(value < self.best)
        self.best.copy_(torch.minimum(self.best, value))
        self.waited.copy_(torch.zeros_like(self.waited) if self.improved else self.waited + 1)
        return int(self.waited) >= self.patience
