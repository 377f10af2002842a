"""Seeded samples of the campaigns, which are tools: python -m tests.attacks.kill, .commands and .folders."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from elboroom.cli import COMMANDS
from elboroom.commands.data import data_app
from elboroom.commands.study import study_app


def tool(name: str) -> ModuleType:
    """A tool of this folder."""
    spec = importlib.util.spec_from_file_location(f"attacks_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


def test_every_command_has_a_line_to_spoil_or_a_reason(tmp_path: Path) -> None:
    commands, run = tool("commands"), tmp_path / "run"
    bench = SimpleNamespace(root=tmp_path, image=run, text=run, style=run, reply=run)
    groups = {"data": data_app, "study": study_app}
    known = {(name,) for name in COMMANDS.keys() - groups.keys() - commands.LEFT_OUT.keys()}
    known |= {(name, str(one.name)) for name, group in groups.items() for one in group.registered_commands}
    assert {tuple(line[: 2 if line[0] in groups else 1]) for line in commands.starts(bench)} == known
    assert all(commands.LEFT_OUT.values())


@pytest.mark.slow
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


@pytest.mark.slow
def test_bad_command_lines() -> None:
    assert tool("commands").attack(60, seed=4, processes=1) == []


@pytest.mark.slow
def test_damaged_folders() -> None:
    assert tool("folders").attack(60, seed=5) == []
