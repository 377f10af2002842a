"""What is finished is not done again, what was cut off goes on, what fails does not stop the rest."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commanded import Elbo
from small_studies import Here

from elboroom.core.problem import Problem
from elboroom.studies import Study, run_study
from elboroom.studies.engines.work import CODES, attempt, perform
from elboroom.studies.schema import Measure
from elboroom.studies.space import Cell
from elboroom.studies.store.index import Index
from elboroom.training.recorder import read_log


def lines(folder: Path, state: str) -> list[str]:
    """The runs of all lines of the index that have a state."""
    found = [json.loads(text) for text in (folder / "index.jsonl").read_text().splitlines()]
    return [line["run"] for line in found if line["state"] == state]


def more(tables: dict[str, Any], **changes: Any) -> Study:
    return Study.of({**tables, **changes})


def test_nothing_finished_is_done_again(tables: dict[str, Any], finished: Path) -> None:
    before = (finished / "table.csv").read_bytes()
    engine = Here()
    assert run_study(Study.of(tables), finished, engine, quiet=True) == {"done": 8, "failed": 0}
    assert engine.did == []
    assert (finished / "table.csv").read_bytes() == before
    assert len(lines(finished, "done")) == len(set(lines(finished, "done"))) == 8


def test_every_run_is_what_its_cell_says(whole: Path, tables: dict[str, Any]) -> None:
    cells = Study.of(tables).cells()
    for cell in cells:
        spec = json.loads((whole / "runs" / cell.name / "spec.json").read_text())
        assert (spec["method"], spec["data"]["source"], spec["fit"]["seed"]) == (cell.method, cell.data, cell.seed)
        said = spec["options"] | spec["model"] | spec["fit"]
        assert {name: said[name] for name in cell.options} == cell.options
    values = {(whole / "runs" / cell.name / "metrics.json").read_bytes() for cell in cells}
    assert len(values) == len(cells)


def test_a_study_may_grow_but_not_change(tables: dict[str, Any], finished: Path) -> None:
    engine = Here()
    assert run_study(more(tables, seeds=3), finished, engine, quiet=True)["done"] == 12
    assert len(engine.did) == 4
    assert all("-s2-" in name for name in engine.did)
    with pytest.raises(Problem, match="4 of its runs are not in this one"):
        run_study(Study.of(tables), finished, Here(), quiet=True)
    longer = more(tables, every={**tables["every"], "steps": 13})
    with pytest.raises(Problem, match="has another study"):
        run_study(longer, finished, Here(), quiet=True)
    assert len(lines(finished, "done")) == 12


def test_a_run_whose_folder_is_gone_is_done_again(tables: dict[str, Any], finished: Path) -> None:
    before, gone = (finished / "table.csv").read_bytes(), Study.of(tables).cells()[3]
    shutil.rmtree(finished / "runs" / gone.name)
    engine = Here()
    run_study(Study.of(tables), finished, engine, quiet=True)
    assert engine.did == [gone.name]
    assert (finished / "table.csv").read_bytes() == before


@pytest.mark.slow
def test_a_new_metric_is_measured_without_training(tables: dict[str, Any], finished: Path) -> None:
    measure = {**tables["measure"], "metrics": ["mig", "gaussian-tc", "mean-mi"], "labels": [10], "flips": True}
    weights = {p: p.stat().st_mtime_ns for p in finished.glob("runs/*/checkpoints/*")}
    kept = {p: json.loads(p.read_text()) for p in finished.glob("runs/*/metrics.json")}
    assert run_study(more(tables, measure=measure), finished, Here(), quiet=True)["done"] == 8
    assert weights == {p: p.stat().st_mtime_ns for p in finished.glob("runs/*/checkpoints/*")}
    for path, before in kept.items():
        now = json.loads(path.read_text())
        assert {name: now[name] for name in before} == before
        assert {"mean-mi", "downstream-10", "drift-0.01", "overlap-0.01"} <= now.keys()


def test_another_protocol_measures_all_again(tables: dict[str, Any], finished: Path) -> None:
    run_study(more(tables, measure={**tables["measure"], "samples": 3}), finished, Here(), quiet=True)
    for path in finished.glob("runs/*/metrics.json"):
        assert json.loads(path.read_text())["log_likelihood"]["estimator"] == "iw-3"


def test_modes_are_said_for_all_metrics_or_by_metric(tables: dict[str, Any], finished: Path) -> None:
    measure = {**tables["measure"], "mode": {"mig": "modern"}}
    run_study(more(tables, measure=measure), finished, Here(), quiet=True)
    for path in finished.glob("runs/*/metrics.json"):
        metrics = json.loads(path.read_text())
        assert (metrics["mig"]["mode"], metrics["gaussian-tc"]["mode"]) == ("modern", "dlib")


class Cut(Exception):
    """The plug is pulled."""


class CutAt:
    """A progress bar that pulls the plug at a step."""

    step = 0

    def __init__(self, spec: Any) -> None: ...

    def __call__(self, step: int, line: dict[str, float]) -> None:
        if step == self.step:
            raise Cut

    def close(self) -> None: ...


@pytest.mark.parametrize("step", [1, 5, 9, 12])
def test_a_run_goes_on_from_its_checkpoint(step: int, whole: Path, tables: dict[str, Any], tmp_path: Path) -> None:
    cell, measure = Study.of(tables).cells()[0], Study.of(tables).measure
    bar = type("At", (CutAt,), {"step": step})
    with pytest.raises(Cut):
        perform(cell, tmp_path, measure, bar)
    seen: list[int] = []
    told = attempt(
        cell, tmp_path, measure, type("Seen", (CutAt,), {"__call__": lambda self, step, line: seen.append(step)})
    )
    start = (step - 1) // 4 * 4
    assert (told["state"], told["from"], told["to"]) == ("done", start, 12)
    assert seen == list(range(start + 1, 13)), "and takes no step before it again"
    folder = tmp_path / "runs" / cell.name
    for file in ("metrics.json", "log.jsonl"):
        assert (folder / file).read_bytes() == (whole / "runs" / cell.name / file).read_bytes()
    assert [path.name for path in (folder / "checkpoints").glob("*.json")] == ["step-000000012.json"]
    assert not (folder / "codes").exists(), "what can be made again is not kept"
    assert (folder / CODES).exists()


def test_what_a_kill_leaves_before_the_first_checkpoint_is_swept_away(tables: dict[str, Any], tmp_path: Path) -> None:
    cell = Study.of(tables).cells()[0]
    folder = tmp_path / "runs" / cell.name
    folder.mkdir(parents=True)
    (folder / ".spec.json.part").write_text("{")
    assert attempt(cell, tmp_path, Study.of(tables).measure)["state"] == "done"
    assert read_log(folder / "log.jsonl")[-1]["step"] == 12


def test_a_run_with_damaged_checkpoints_starts_anew(tables: dict[str, Any], finished: Path) -> None:
    cell = Study.of(tables).cells()[0]
    before = json.loads((finished / "runs" / cell.name / "metrics.json").read_text())
    for path in (finished / "runs" / cell.name / "checkpoints").glob("*.safetensors"):
        path.write_bytes(b"nonsense")
    with pytest.warns(UserWarning, match="damaged"):
        told = attempt(cell, finished, Study.of(tables).measure)
    assert (told["state"], told["from"]) == ("done", 0)
    assert json.loads((finished / "runs" / cell.name / "metrics.json").read_text()) == before


@pytest.fixture
def failing(tables: dict[str, Any]) -> Study:
    """One of its three settings diverges."""
    runs = [{"method": "beta-vae", "beta": [1, 2]}, {"method": "vae", "lr": 1e9, "steps": 40}]
    return more(tables, runs=runs, seeds=1)


def test_a_failed_run_is_recorded_and_does_not_stop_the_rest(failing: Study, tmp_path: Path, elbo: Elbo) -> None:
    out = tmp_path / "out"
    assert run_study(failing, out, Here(), quiet=True) == {"done": 2, "failed": 1}
    (entry,) = (entry for entry in Index(out).read().values() if entry.state == "failed")
    assert entry.cell.method == "vae"
    assert "--lr" in entry.told["error"]
    assert "Diverged" in (out / "runs" / entry.cell.name / "error.txt").read_text()
    engine = Here()
    assert run_study(failing, out, engine, quiet=True) == {"done": 2, "failed": 1}
    assert engine.did == [], "a failed run is left alone"
    assert run_study(failing, out, engine, retry=True, quiet=True) == {"done": 2, "failed": 1}
    assert engine.did == [entry.cell.name], "unless it is to be tried again"
    code, said, _ = elbo("study", "status", out, "--json")
    told = json.loads(said)
    assert (code, told["done"], told["failed"], told["left"], told["driven"]) == (0, 2, 1, 0, False)
    assert list(told["errors"]) == [entry.cell.name]
    assert "vae" not in {row.split(",")[1] for row in (out / "table.csv").read_text().splitlines()[1:]}


def test_a_full_disk_stops_the_study_and_loses_nothing(
    tables: dict[str, Any], whole: Path, disk: Callable[[str], Path]
) -> None:
    """Room for two or three runs: the study stops with one sentence, and goes on when there is more."""
    place = disk("size=2m")
    out, engine = place / "study", Here()
    with pytest.raises(Problem, match=r"no space left .* all finished runs are kept"):
        run_study(Study.of(tables), out, engine, quiet=True)
    done = lines(out, "done")
    assert 1 <= len(done) < 8
    assert not lines(out, "failed"), "a full disk is no fault of a run"
    subprocess.run(["mount", "-o", "remount,size=50m", str(place)], check=True)
    engine = Here()
    assert run_study(Study.of(tables), out, engine, quiet=True) == {"done": 8, "failed": 0}
    assert not set(engine.did) & set(done)
    assert (out / "table.csv").read_bytes() == (whole / "table.csv").read_bytes()


def test_a_disk_that_has_no_room_for_all_is_told_after_the_first_run(
    tables: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elboroom.studies.store.disk.free", lambda folder: 1000)
    one = more(tables, runs=[{"method": "beta-vae", "beta": [1, 2]}], seeds=1)
    with pytest.warns(UserWarning, match=r"2 runs like the first need about .* but only 1 kB are free") as told:
        run_study(one, tmp_path / "out", Here(), quiet=True)
    assert len([w for w in told if "like the first" in str(w.message)]) == 1


def test_finished_runs_are_gathered_at_an_address(tables: dict[str, Any], tmp_path: Path) -> None:
    one = more(tables, runs=[{"method": "beta-vae", "beta": [1, 2]}], seeds=1)
    to = tmp_path / "far"
    run_study(one, tmp_path / "out", Here(), to=f"file://{to}", quiet=True)
    for cell in one.cells():
        for file in ("metrics.json", "spec.json", "checkpoints/step-000000012.safetensors"):
            path = Path("runs") / cell.name / file
            assert (to / path).read_bytes() == (tmp_path / "out" / path).read_bytes()
    for file in ("table.csv", "table.parquet", "index.jsonl", "study.json"):
        assert (to / file).read_bytes() == (tmp_path / "out" / file).read_bytes()


def test_an_error_that_nobody_expected_is_kept_with_its_traceback(
    tables: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("by nought\nand a second line")

    monkeypatch.setattr("elboroom.studies.engines.work.trained", broken)
    cell: Cell = Study.of(tables).cells()[0]
    told = attempt(cell, tmp_path, Measure())
    assert told == {"state": "failed", "error": "ZeroDivisionError: by nought and a second line"}
    assert "ZeroDivisionError" in (tmp_path / "runs" / cell.name / "error.txt").read_text()
