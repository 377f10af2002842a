from __future__ import annotations

import os
from pathlib import Path

import pytest

REAL = os.environ.get("ELBOROOM_DATA")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own for each test; real data only for those that ask for it."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("ELBOROOM_CACHE", str(folder))
    monkeypatch.delenv("ELBOROOM_DATA", raising=False)
    return folder


@pytest.fixture
def real(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if REAL is None:
        pytest.skip("ELBOROOM_DATA does not name a folder of real data")
    monkeypatch.setenv("ELBOROOM_DATA", REAL)
    return Path(REAL)
