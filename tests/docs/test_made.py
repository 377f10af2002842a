"""How rows of pages were made: a command that the command line takes, hours of the whole run, and how its loss ended."""

from __future__ import annotations

import importlib
import json
import shlex
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from commanded import accept

import elboroom
from elboroom.data.dataset import DataSet
from elboroom.training.spec import Spec

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "docs" / "results" / "runs"
RECORDS = sorted(place.parent.name for place in KEPT.glob("*/spec.json"))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "docs" / "results")
    return importlib.import_module("made")


def record(folder: Path, losses: list[float], **timing: float) -> None:
    folder.mkdir(parents=True)
    (folder / "spec.json").write_text((KEPT / "style-yelp-ae" / "spec.json").read_text())
    lines = [json.dumps({"step": 10 * (n + 1), "loss": loss}) + "\n" for n, loss in enumerate(losses)]
    (folder / "log.jsonl").write_text("".join(lines))
    (folder / "timing.json").write_text(json.dumps(timing))


def test_every_record_says_how_it_was_made() -> None:
    for name in RECORDS:
        told = json.loads((KEPT / name / "made.json").read_text())
        assert {"date", "commit", "processor"} == {*told}, name
        words = shlex.split(Spec.read(KEPT / name).command)
        assert words[:2] == ["elbo", "train"], name
        accept(words[1:])
        assert not any(word.startswith("/") for word in words), name


def test_what_is_kept_says_how_it_was_made(
    made: ModuleType, pixels: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = importlib.import_module("records")
    monkeypatch.setattr(records, "KEPT", tmp_path / "kept")
    run = elboroom.train("vae", pixels, tmp_path / "run", steps=2, batch_size=8, latent=3, threads=1)
    records.keep(run, "vae")
    told = json.loads((tmp_path / "kept" / "vae" / "made.json").read_text())
    assert told["processor"].endswith("cores")
    assert told == made.here()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert made.here()["commit"] == "not kept", "without git a run is kept all the same"


def test_code_that_was_changed_since_its_commit_is_said(
    made: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, code = tmp_path / "docs" / "results", tmp_path / "elboroom" / "fgim.py"
    for folder in (here, code.parent):
        folder.mkdir(parents=True)
    code.write_text("one\n")
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "one"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    monkeypatch.setattr(made, "HERE", here)
    clean = made.here()["commit"]
    assert "," not in clean
    code.write_text("two\n")
    assert made.here()["commit"] == f"{clean}, changed"


def test_hours_are_those_of_the_whole_run(made: ModuleType, tmp_path: Path) -> None:
    record(tmp_path / "whole", [1.0] * 40, **{"from": 0, "to": 400, "seconds": 3600.0})
    record(tmp_path / "resumed", [1.0] * 40, **{"from": 300, "to": 400, "seconds": 900.0})
    assert made.hours(tmp_path / "whole") == made.hours(tmp_path / "resumed") == 1.0
    (tmp_path / "whole" / "timing.json").unlink()
    assert made.hours(tmp_path / "whole") is None


def test_rows_say_whether_a_run_still_learns(made: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "KEPT", tmp_path)
    record(tmp_path / "x-falls", [100.0 - n for n in range(40)], **{"from": 0, "to": 400, "seconds": 360.0})
    record(tmp_path / "x-flat", [100.0, *[1.0, 1.1] * 20], **{"from": 0, "to": 400, "seconds": 360.0})
    text = made.section("x", ["x-falls", "x-flat", "x-none"])
    falls, flat = (
        next(line for line in text.splitlines() if line.startswith(f"| {name} ")) for name in ("falls", "flat")
    )
    assert falls.endswith("| not kept | not kept | not kept | 0.10 | still falls |")
    assert flat.endswith("| settled |")
    assert "`elbo train style-ae --data yelp-sentiment" in falls
    assert "0.2 core-hours" in text
    assert "| none |" not in text
    assert made.section("x", []) == ""
