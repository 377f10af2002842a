"""A study compares what compares: sizes, data, directions and measures are not mixed, whatever is changed in between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commanded import Elbo
from PIL import Image
from small_studies import Here

from elboroom.core.problem import Problem
from elboroom.studies import Study, run_study, write_report
from elboroom.studies.analysis.scores import Scores
from elboroom.studies.analysis.summary import summary
from elboroom.studies.analysis.table import query, results
from elboroom.studies.study import FILE


def values(folder: Path, metric: str) -> list[float]:
    return [row["value"] for row in results(folder) if row["metric"] == metric]


@pytest.mark.slow
def test_methods_without_a_density_compare_by_what_they_have(tables: dict[str, Any], tmp_path: Path) -> None:
    runs = [{"method": ["vae", "wae-mmd"]}]
    run_study(Study.of({**tables, "runs": runs}), tmp_path / "out", Here(), quiet=True)
    rows = results(tmp_path / "out")
    scores = Scores.of(rows, rows[0]["data"])
    assert len(scores.of_method("log_likelihood_posthoc", "wae-mmd")) == 2, "a tuned width is no other estimator"
    assert write_report(tmp_path / "out", n=50).exists()


@pytest.mark.slow
def test_sizes_of_images_are_told_apart(tables: dict[str, Any], tmp_path: Path) -> None:
    for number in range(40):
        pixels = np.random.default_rng(number).integers(0, 255, (16, 16), np.uint8)
        (tmp_path / "images").mkdir(exist_ok=True)
        Image.fromarray(pixels).save(tmp_path / "images" / f"{number}.png")
    study = Study.of(
        {**tables, "data": str(tmp_path / "images"), "size": [8, 16], "runs": [{"method": "vae"}], "measure": {}}
    )
    run_study(study, tmp_path / "out", Here(), quiet=True)
    rows = results(tmp_path / "out")
    assert [row["n"] for row in summary(rows) if row["metric"] == "distortion"] == [2, 2]
    with pytest.raises(Problem, match="different data sets or sizes cannot be compared"):
        summary(rows, ("method", "setting"))
    page = write_report(tmp_path / "out", n=20).read_text(encoding="utf-8")
    ids = [part.split('"')[0] for part in page.split('<section id="')[1:]]
    assert len(ids) == len(set(ids))
    assert "images at 8" in page


def test_a_study_belongs_to_its_data_and_not_to_a_directory(
    tables: dict[str, Any], squares: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    mine = tmp_path / "here" / "mine.npz"
    mine.write_bytes(squares.read_bytes())
    monkeypatch.chdir(tmp_path / "here")
    study = Study.of({**tables, "data": "mine.npz", "runs": [{"method": "vae"}], "seeds": 1})
    run_study(study, tmp_path / "out", Here(), quiet=True)
    monkeypatch.chdir(tmp_path)
    engine = Here()
    assert run_study(Study.read(tmp_path / "out"), tmp_path / "out", engine, quiet=True)["done"] == 1
    assert engine.did == []
    with np.load(squares) as file:
        np.savez(mine, x=255 - file["x"], y=file["y"])
    with pytest.raises(Problem, match="has changed since vae-s0-"):
        run_study(Study.read(tmp_path / "out").scaled(seeds=2), tmp_path / "out", engine, quiet=True)


def test_a_search_keeps_its_goal(tables: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    runs = [{"method": "beta-vae", "beta": [1, 4], "latent": [2, 3]}]
    search = {"metric": "elbo", "goal": "max", "trials": 1}
    study = Study.of({**tables, "runs": runs, "search": search, "measure": {"samples": 2, "most": 20}})
    assert study.count == 2, "a trial has a run for each seed"
    run_study(study, tmp_path / "out", Here(), quiet=True)
    for other in ({"metric": "distortion", "goal": "min"}, {"goal": "min"}):
        with pytest.raises(Problem, match="only its number of trials may change"):
            run_study(study.searching(**other), tmp_path / "out", Here(), quiet=True)
    assert run_study(study.searching(trials=2), tmp_path / "out", Here(), quiet=True)["done"] == 4


def test_the_strength_is_an_option_of_the_method(tables: dict[str, Any], tmp_path: Path) -> None:
    every = {**tables["every"], "latent": [2, 3]}
    runs = [{"method": "beta-vae", "beta": [1, 4]}]
    study = Study.of({**tables, "every": every, "runs": runs, "seeds": 1, "measure": {"samples": 2, "most": 20}})
    run_study(study, tmp_path / "out", Here(), quiet=True)
    assert sorted({row["strength"] for row in results(tmp_path / "out")}) == [1.0, 4.0]


@pytest.mark.slow
def test_other_labels_and_codes_are_measured_again(tables: dict[str, Any], tmp_path: Path) -> None:
    base = {**tables, "runs": [{"method": "vae"}]}
    measure = {**tables["measure"], "labels": [5, 20, 40], "predictor": "logistic"}
    run_study(Study.of({**base, "measure": measure}), tmp_path / "out", Here(), quiet=True)
    assert len(values(tmp_path / "out", "udr")) == 2
    less = {**measure, "labels": [5, 20], "codes": 30}
    run_study(Study.of({**base, "measure": less, "seeds": 3}), tmp_path / "out", Here(), quiet=True)
    assert len(values(tmp_path / "out", "udr")) == 3
    rows = results(tmp_path / "out")
    assert len(summary([row for row in rows if row["metric"].startswith(("efficiency", "downstream"))])) == 3
    assert not values(tmp_path / "out", "downstream-40")


def test_damaged_files_are_mended_or_told(finished: Path, tables: dict[str, Any], elbo: Elbo) -> None:
    run = next((finished / "runs").iterdir())
    (run / "metrics.json").write_text('{"run": {')
    assert len({row["run"] for row in results(finished)}) == 7
    engine = Here()
    assert run_study(Study.of(tables), finished, engine, quiet=True)["done"] == 8
    assert engine.did == [run.name]
    seconds = query(finished, f"SELECT train FROM timings WHERE run = '{run.name}'")[1][0][0]
    lines = [json.loads(line) for line in (finished / "index.jsonl").read_text().splitlines()]
    first = next(line for line in lines if line["run"] == run.name and line["state"] == "done")
    assert seconds > first["seconds"]["train"], "what it took before counts too"
    (finished / "table.csv").unlink()
    (finished / "timings.csv").unlink()
    assert query(finished, "SELECT count(DISTINCT run) FROM results")[1] == [(8,)], "asked of the runs themselves"
    (finished / FILE).write_text('{"name"')
    code, _, err = elbo("study", "status", finished)
    assert (code, len(err.splitlines())) == (2, 1), err


def test_threads_may_be_left_to_the_study(tables: dict[str, Any], tmp_path: Path) -> None:
    every = {**tables["every"], "threads": 0}
    study = Study.of({**tables, "every": every, "runs": [{"method": "vae"}], "seeds": 1})
    assert run_study(study, tmp_path / "out", Here(), quiet=True) == {"done": 1, "failed": 0}


@pytest.mark.parametrize(
    ("runs", "says"),
    [
        ([{"method": "vae", "zip": 3}], "zip must be a table of lists"),
        ([{"method": "beta-vae", "beta": {"low": -5, "high": 10}, "draws": 600}], "beta"),
        ([{"method": "vae"}, {"method": "beta-vae", "beta": []}], r"\[\[runs\]\] 2 has no run"),
        ([{"method": "vae", "latent": {"low": 1.2, "high": 1.8, "whole": True}, "draws": 1}], "is empty"),
        ([{"method": "vae", "latent": [[3]]}], "latent must be text, a number"),
    ],
)
def test_nonsense_is_refused_before_the_first_run(
    tables: dict[str, Any], runs: list[dict[str, Any]], says: str, tmp_path: Path
) -> None:
    with pytest.raises(Problem, match=says):
        run_study(Study.of({**tables, "runs": runs}), tmp_path / "out", Here(), quiet=True)
    assert not (tmp_path / "out").exists()


def test_steps_are_scaled_wherever_they_are_said(tables: dict[str, Any]) -> None:
    base = {**tables, "every": {**tables["every"], "steps": 600}}
    runs = [{"method": "vae", "zip": {"steps": [600, 1200], "latent": [2, 3]}}, {"method": "vae", "steps": 1800}]
    few = Study.of({**base, "runs": runs, "seeds": 1}).scaled(steps=3)
    assert [cell.options["steps"] for cell in few.cells()] == [3, 6, 9]
    for steps in ({"low": 1, "high": 9}, "many", 0):
        with pytest.raises(Problem, match="--steps can scale only"):
            Study.of({**base, "runs": [{"method": "vae", "steps": steps, "draws": 0}]}).scaled(steps=3)
    two = Study.of({**tables, "runs": [{"method": "vae", "zip": {"data": ["a.npy", "b.npy"], "latent": [2, 3]}}]})
    assert [Path(cell.data).name for cell in two.cells()] == ["a.npy", "a.npy", "b.npy", "b.npy"]
