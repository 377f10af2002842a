"""What `make bench` keeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import run
from benchmarks.measure import Result
from elboroom.core.problem import Problem


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page of its own, beside a folder of results."""
    (tmp_path / "benchmarks").mkdir()
    table = tmp_path / "docs" / "benchmarks.md"
    table.parent.mkdir()
    table.write_text("Before.\n<!-- bench -->\nold\n<!-- /bench -->\nAfter.\n")
    monkeypatch.setattr(run, "LATEST", tmp_path / "benchmarks" / "latest.json")
    monkeypatch.setattr(run.pages, "BENCH", table)
    monkeypatch.setattr(run, "quiet", lambda force: None)
    return table


def fast() -> Result:
    """A measurement; against another."""
    return Result(value=250.0, unit="images/s", reference=100.0, ratio=2.5)


def test_what_is_measured_is_in_the_table_at_once(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Result:
        raise Problem("no peer")

    monkeypatch.setattr(run, "MEASUREMENTS", {"one": fast, "two": broken})
    assert run.main([]) == 2, "what was measured before is kept"
    said = page.read_text()
    assert said.startswith("Before.\n<!-- bench -->\n| what")
    assert said.endswith("<!-- /bench -->\nAfter.\n")
    assert "| one | 250 images/s | **2.5** |" in said
    assert run.pages.bench_page() == said, "so that no page is out of date"
    assert list(json.loads(run.LATEST.read_text())) == ["one"]


def test_what_does_not_count_is_not_kept(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = page.read_text()
    monkeypatch.setattr(run, "MEASUREMENTS", {"one": fast})
    assert run.main(["--force"]) == 0
    assert page.read_text() == before
    assert not run.LATEST.exists()
