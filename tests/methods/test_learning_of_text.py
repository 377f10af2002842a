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


@pytest.mark.slow
def test_the_first_stage_ends_once_it_learns_nothing_more_of_the_validation_split(tmp_path: Path) -> None:
    few = SENTENCES[::6]  # which an autoencoder learns by heart
    told: dict[str, Any] = SMALL | {"holdout": 0.5, "steps": 400, "pretraining": 0.9, "log_every": 10}
    run = elboroom.train("ae-pretrained-free-bits", few, tmp_path / "early", **told)
    seen = [line["nll_valid"] for line in run.log if "nll_valid" in line]
    began = next(line["step"] for line in run.log if "kl_hinge" in line)
    assert began < 300
    assert min(seen) < seen[-1]
    assert len(seen) - 1 - seen.index(min(seen)) == 2, "two looks without a better one"
    late = elboroom.train("ae-pretrained-free-bits", few, tmp_path / "late", **told, pretraining_patience=0)
    assert next(line["step"] for line in late.log if "kl_hinge" in line) > 360
