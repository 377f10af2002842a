"""What ends the first stage of ae-pretrained-free-bits by the validation split is kept in checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from contract import act_at, interrupt

import elboroom
from elboroom.data.dataset import DataSet
from elboroom.runs.run import Run
from elboroom.training.session import Stopped

TOLD: dict[str, Any] = {
    "steps": 60, "pretraining": 0.9, "lr": 0.1, "decay": "none", "batch_size": 8, "latent": 3, "embed": 4, "hidden": 8,
    "holdout": 0.3, "threads": 1, "log_every": 1,
}  # fmt: skip


def looks(run: Run) -> list[tuple[int, float]]:
    """When the first stage looked at the validation split, and what it saw."""
    return [(int(line["step"]), line["nll_valid"]) for line in run.log if "nll_valid" in line]


def test_a_first_stage_that_was_cut_off_ends_where_it_would_have(sentences: DataSet, tmp_path: Path) -> None:
    whole = elboroom.train("ae-pretrained-free-bits", sentences, tmp_path / "whole", **TOLD)
    seen = looks(whole)
    assert seen[-1][0] < 54, "it is ended early"
    assert min(nats for _, nats in seen) < seen[-1][1]
    between = (seen[-2][0] + seen[-1][0]) // 2  # one look without a better one behind it, the last ahead
    with pytest.raises(Stopped):
        elboroom.train("ae-pretrained-free-bits", sentences, tmp_path / "parts", bar=act_at(between, interrupt), **TOLD)
    parts = elboroom.resume(tmp_path / "parts", data=sentences)
    assert looks(parts) == seen
    pairs = zip(whole.model.state_dict().values(), parts.model.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
