"""Text methods learn something by default: small sentences of three slots, a few hundred steps."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

import elboroom
from elboroom.runs.run import Run

SLOTS = (
    ("a", "the", "some", "no"),
    ("old", "new", "red", "big"),
    ("dog", "cat", "man", "day", "map", "ring"),
    ("ran", "sat"),
)
SENTENCES = [" ".join(words) for words in product(*SLOTS)]  # 192 of them
SMALL: dict[str, Any] = {"steps": 300, "lr": 5e-3, "embed": 32, "hidden": 64, "latent": 8, "threads": 1, "holdout": 0}


def directions(run: Run) -> float:
    """In how many directions codes lie: the participation ratio of the eigenvalues of their covariance."""
    found = torch.linalg.eigvalsh(torch.cov(torch.from_numpy(run.encode(SENTENCES)).T)).clamp_min(0)
    return float(found.sum() ** 2 / found.square().sum())


@pytest.mark.slow
def test_codes_have_several_directions_where_published_beginnings_leave_one(tmp_path: Path) -> None:
    ours = elboroom.train("ae", SENTENCES, tmp_path / "c", **SMALL)
    published = elboroom.train("ae", SENTENCES, tmp_path / "a", **SMALL, trunk="a")
    assert directions(ours) > 3
    assert directions(published) < 2
    assert ours.log[-1]["nll"] < published.log[-1]["nll"] - 2
