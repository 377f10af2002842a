"""What the tests of studies share: small squares to train on, and a finished study."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_studies import MEASURE, TINY, Here

from elboroom.studies import Study, run_study


@pytest.fixture(scope="session")
def squares(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 squares on 8 x 8 pixels; the label is their row."""
    rng = np.random.default_rng(0)
    x, y = np.zeros((200, 8, 8), np.uint8), rng.integers(0, 4, 200)
    for i, row in enumerate(y):
        column, side = rng.integers(0, 4), rng.integers(1, 4)
        x[i, 2 * row : 2 * row + side, 2 * column : 2 * column + side] = 255
    path = tmp_path_factory.mktemp("squares") / "squares.npz"
    np.savez(path, x=x, y=y)
    return path


@pytest.fixture(scope="session")
def tables(squares: Path) -> dict[str, Any]:
    """The tables of a study of two methods, two strengths and two seeds."""
    runs = [
        {"method": "beta-vae", "beta": [1, 8]},
        {"method": "dip-vae-i", "zip": {"off": [1, 10], "diag": [10, 100]}},
    ]
    return {"name": "small", "data": str(squares), "seeds": 2, "every": TINY, "runs": runs, "measure": MEASURE}


@pytest.fixture(scope="session")
def whole(tables: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That study, finished; to be read only."""
    folder = tmp_path_factory.mktemp("study") / "small"
    assert run_study(Study.of(tables), folder, Here(), quiet=True) == {"done": 8, "failed": 0}
    return folder


@pytest.fixture
def finished(whole: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(whole, tmp_path / "small"))
