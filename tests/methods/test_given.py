"""A model of text that is given a label learns to read it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import elboroom
from elboroom.core.draw import Draw
from elboroom.training.batches import batch_of


@pytest.mark.unhurried
def test_the_other_label_costs_nats(tmp_path: Path) -> None:
    rng, kinds = np.random.default_rng(0), ("good", "bad")
    said = [(" ".join([*(f"w{i}" for i in rng.integers(0, 30, 4)), kinds[y]]), y) for y in rng.integers(0, 2, 400)]
    lines, labels = zip(*said, strict=True)
    run = elboroom.train("vae", (list(lines), labels), tmp_path / "run", given="label", steps=120, embed=16, hidden=32,
                         latent=4, threads=1)  # fmt: skip
    batch = batch_of(run.data, run.data.splits["test"], run.given)
    assert batch.u is not None
    with torch.no_grad():
        own, other = (float(Draw(run.model, b).nll.mean()) for b in (batch, replace(batch, u=batch.u.flip(1))))
    assert other - own > 1, "of which the last word alone tells log 2 / 2 and more"
