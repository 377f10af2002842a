"""Codes that are all equal have no map; t-SNE would end the process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import elboroom
from elboroom import Problem
from elboroom.evaluate.manifold import atlas
from elboroom.plots.sentences import code_map


def test_codes_that_are_equal_have_no_map(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("".join(f"w{i % 7} w{i % 5} w{i % 3}\n" for i in range(60)))
    options = {"steps": 1, "batch_size": 8, "latent": 2, "embed": 4, "hidden": 5, "threads": 1}
    run = elboroom.train("vae", str(tmp_path / "words.txt"), tmp_path / "run", **options)
    with torch.no_grad():
        for parameter in run.model.posterior.parameters():
            parameter.zero_()
    with pytest.raises(Problem, match="no map of them"):
        code_map(run)


def test_rows_that_are_equal_have_no_map() -> None:
    with pytest.raises(Problem, match="no map of them"):
        atlas(np.ones((60, 3)))
