"""Seeded samples of the campaigns, which are tools: python -m tests.attacks.kill, .commands and .folders."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow


def tool(name: str) -> ModuleType:
    """A tool of this folder."""
    spec = importlib.util.spec_from_file_location(f"attacks_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
@pytest.mark.parametrize("name", ["control-vae", "vae of pieces"])
def test_kills(tmp_path: Path, name: str) -> None:
    campaign = tool("kill").Campaign(tmp_path / "kill.json", seed=3)
    try:
        campaign.round(name)
    finally:
        campaign.close()
    assert not campaign.counts["failures"]
    assert campaign.counts["kills"] >= 5


def test_bad_command_lines() -> None:
    assert tool("commands").attack(60, seed=4, processes=1) == []


def test_damaged_folders() -> None:
    assert tool("folders").attack(60, seed=5) == []
