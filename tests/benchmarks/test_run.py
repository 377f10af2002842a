"""What `make bench` keeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import run
from benchmarks.measure import Result
from elboroom.core.problem import Problem


@pytest.fixture
def readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A README of its own, beside a folder of results."""
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "README.md").write_text("Before.\n<!-- bench -->\nold\n<!-- /bench -->\nAfter.\n")
    monkeypatch.setattr(run, "LATEST", tmp_path / "benchmarks" / "latest.json")
    monkeypatch.setattr(run.pages, "README", tmp_path / "README.md")
    monkeypatch.setattr(run, "quiet", lambda force: None)
    return tmp_path / "README.md"


def fast() -> Result:
    """A measurement; against another."""
    return Result(value=250.0, unit="images/s", reference=100.0, ratio=2.5)


def test_what_is_measured_is_in_the_table_of_the_readme_at_once(readme: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Result:
        raise Problem("no peer")

    monkeypatch.setattr(run, "MEASUREMENTS", {"one": fast, "two": broken})
    assert run.main([]) == 2, "what was measured before is kept"
    said = readme.read_text()
    assert said.startswith("Before.\n<!-- bench -->\n| what")
    assert said.endswith("<!-- /bench -->\nAfter.\n")
    assert "| one | 250 images/s | **2.5** |" in said
    assert run.pages.readme() == said, "so that no page is out of date"
    assert list(json.loads(run.LATEST.read_text())) == ["one"]


def test_what_does_not_count_is_not_kept(readme: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = readme.read_text()
    monkeypatch.setattr(run, "MEASUREMENTS", {"one": fast})
    assert run.main(["--force"]) == 0
    assert readme.read_text() == before
    assert not run.LATEST.exists()
