"""A search proposes settings, learns from what is measured, and goes on where it was cut off."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commanded import Elbo
from small_studies import Here

from elboroom.core.problem import Problem
from elboroom.evaluate import registry
from elboroom.evaluate.disentanglement.registry import metric
from elboroom.evaluate.disentanglement.source import Source
from elboroom.evaluate.result import Result
from elboroom.studies import Study, run_study
from elboroom.studies.analysis.table import results
from elboroom.studies.engines.pool import Told
from elboroom.studies.schema import Measure
from elboroom.studies.search import Trials
from elboroom.studies.space import Cell

optuna = pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'elboroom[optuna]'")


class Gone(Exception):
    """The process that drives a search ends."""


class Made(Here):
    """An engine whose runs take no time: distortion is (beta - 10)^2, and a little more for each seed."""

    def run(self, cells: Iterator[Cell], root: Path, measure: Measure) -> Iterator[tuple[Cell, Told]]:
        for cell in cells:
            yield cell, {"state": "started"}
            self.did.append(cell.name)
            folder = root / "runs" / cell.name
            folder.mkdir(parents=True, exist_ok=True)
            value = (cell.options["beta"] - 10.0) ** 2 + cell.seed
            number = {"value": value, "unit": "nats", "estimator": "made"}
            (folder / "metrics.json").write_text(
                json.dumps({"run": {"method": "beta-vae", "step": 1, "seed": cell.seed}, "distortion": number})
            )
            yield cell, {"state": "done", "seconds": {}}


@pytest.fixture
def sought(tables: dict[str, Any]) -> Study:
    runs = [{"method": "beta-vae", "beta": {"low": 1, "high": 100}}]
    search = {"metric": "distortion", "goal": "min", "trials": 25}
    return Study.of({**tables, "runs": runs, "seeds": 3, "search": search})


def kept(out: Path) -> Any:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    storage = JournalStorage(JournalFileBackend(str(out / "search.log")))
    return optuna.load_study(study_name="small", storage=storage)


def test_a_search_finds_where_the_median_over_seeds_is_best(sought: Study, tmp_path: Path) -> None:
    engine = Made()
    assert run_study(sought, tmp_path / "out", engine, quiet=True)["done"] == 75
    study = kept(tmp_path / "out")
    assert len(study.trials) == 25
    for trial in study.trials:
        beta = float(f"{trial.params['1/beta']:.4g}")
        assert trial.value == pytest.approx((beta - 10) ** 2 + 1), "of seeds 0, 1 and 2 the median is 1"
    late = [abs(trial.params["1/beta"] - 10) for trial in study.trials[-5:]]
    assert study.best_value < 30
    assert sorted(late)[2] < 25, "later trials are near what was best"
    assert len({row["run"] for row in results(tmp_path / "out")}) == 75


def test_a_search_that_was_cut_off_goes_on(sought: Study, tmp_path: Path) -> None:
    class Cut(Made):
        def run(self, cells: Iterator[Cell], root: Path, measure: Measure) -> Iterator[tuple[Cell, Told]]:
            for number, told in enumerate(super().run(cells, root, measure)):
                if number == 21:  # in the middle of a trial: two lines a run, three runs a trial
                    raise Gone
                yield told

    with pytest.raises(Gone):
        run_study(sought, tmp_path / "out", Cut(), quiet=True)
    before = {trial.number: trial.params for trial in kept(tmp_path / "out").trials}
    assert len(before) == 4
    engine = Made()
    run_study(sought, tmp_path / "out", engine, quiet=True)
    study = kept(tmp_path / "out")
    assert len(study.trials) == 25
    assert all(trial.state.name == "COMPLETE" for trial in study.trials)
    assert {number: study.trials[number].params for number in before} == before
    assert len(engine.did) == 75 - 10, "ten runs were done before"
    assert len({json.dumps(trial.params) for trial in study.trials}) == 25, "nothing is proposed twice"
    more = sought.searching(trials=27)
    run_study(more, tmp_path / "out", engine, quiet=True)
    assert len(kept(tmp_path / "out").trials) == 27


def test_lists_and_blocks_are_choices_and_a_choice_made_twice_is_run_once(
    tables: dict[str, Any], tmp_path: Path
) -> None:
    runs = [{"method": "beta-vae", "beta": [1, 9, 50]}, {"method": "beta-tcvae", "beta": [30, 11]}]
    search = {"metric": "distortion", "goal": "min", "trials": 30}
    engine = Made()
    run_study(Study.of({**tables, "runs": runs, "seeds": 1, "search": search}), tmp_path / "out", engine, quiet=True)
    study = kept(tmp_path / "out")
    assert len(study.trials) == 30
    assert len(engine.did) == len(set(engine.did)) <= 5
    assert study.best_value == 1.0


def test_what_is_under_way_for_one_trial_is_not_begun_for_another(tables: dict[str, Any], tmp_path: Path) -> None:
    class Three(Made):
        """Takes three cells before it does the first."""

        def run(self, cells: Iterator[Cell], root: Path, measure: Measure) -> Iterator[tuple[Cell, Told]]:
            while batch := [cell for _, cell in zip(range(3), cells, strict=False)]:
                yield from super().run(iter(batch), root, measure)

    search = {"metric": "distortion", "goal": "min", "trials": 12}
    runs, engine = [{"method": "beta-vae", "beta": [1, 9, 50]}], Three()
    run_study(Study.of({**tables, "runs": runs, "seeds": 1, "search": search}), tmp_path / "out", engine, quiet=True)
    assert len(engine.did) == len(set(engine.did)) <= 3
    assert [trial.state.name for trial in kept(tmp_path / "out").trials] == ["COMPLETE"] * 12


def test_a_failed_run_fails_its_trial_alone(sought: Study, tmp_path: Path) -> None:
    class Failing(Made):
        def run(self, cells: Iterator[Cell], root: Path, measure: Measure) -> Iterator[tuple[Cell, Told]]:
            for cell, told in super().run(cells, root, measure):
                is_high = told["state"] == "done" and cell.options["beta"] > 50
                yield cell, {"state": "failed", "error": "too strong"} if is_high else told

    few = sought.searching(trials=8)
    counts = run_study(few, tmp_path / "out", Failing(), quiet=True)
    states = [trial.state.name for trial in kept(tmp_path / "out").trials]
    assert counts["failed"] == 3 * states.count("FAIL") > 0
    assert states.count("COMPLETE") + states.count("FAIL") == 8
    assert run_study(few, tmp_path / "out", Made(), retry=True, quiet=True) == {"done": 24, "failed": 0}
    again = [trial.params for trial in kept(tmp_path / "out").trials if trial.state.name == "COMPLETE"]
    assert sorted(json.dumps(p) for p in again) == sorted(
        json.dumps(t.params) for t in kept(tmp_path / "out").trials[:8]
    )


def test_what_is_searched_for_is_measured(tables: dict[str, Any], tmp_path: Path) -> None:
    runs = [{"method": "beta-vae", "beta": {"low": 1, "high": 9, "log": True}}]
    measure = {**tables["measure"], "metrics": []}
    study = Study.of({**tables, "runs": runs, "seeds": 1, "measure": measure}).searching(metric="mean-mi", trials=2)
    run_study(study, tmp_path / "out", Here(), quiet=True)
    values = {row["value"] for row in results(tmp_path / "out") if row["metric"] == "mean-mi"}
    assert {trial.value for trial in kept(tmp_path / "out").trials} == values


def test_a_search_goes_the_way_that_is_better(tables: dict[str, Any], tmp_path: Path) -> None:
    said = Study.of({**tables, "search": {"metric": "distortion"}})
    assert Trials(said, tmp_path).direction == "minimize"
    assert Trials(said.searching(metric="elbo"), tmp_path).direction == "maximize"
    assert Trials(said.searching(goal="max"), tmp_path).direction == "maximize"
    assert Trials(said.searching(goal="max").searching(metric="mean-mi"), tmp_path).direction == "minimize"
    assert said.kept["search"]["goal"] == "min", "as studies that said it were kept"


def test_a_metric_of_ones_own_is_searched_for_with_a_goal(
    tables: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_METRICS", registry._METRICS.copy())
    monkeypatch.setattr(registry, "_QUANTITIES", registry._QUANTITIES.copy())

    @metric("of-my-own", needs="codes")
    def of_my_own(source: Source, seed: int, mode: str) -> Result:
        """The largest code."""
        return Result(float(source.mu.max()), mode)

    study = Study.of({**tables, "search": {"metric": "of-my-own"}})
    with pytest.raises(Problem, match="of-my-own has no better direction; give --goal min or --goal max"):
        Trials(study, tmp_path)
    assert Trials(study.searching(goal="min"), tmp_path).direction == "minimize"


def test_mistakes_of_a_search(sought: Study, tables: dict[str, Any], tmp_path: Path, elbo: Elbo) -> None:
    out = tmp_path / "out"
    with pytest.raises(Problem, match="unknown metric 'distorsion'; did you mean 'distortion'"):
        run_study(sought.searching(metric="distorsion"), out, Made(), quiet=True)
    for neither in ("rate", "active_units"):
        with pytest.raises(Problem, match=f"{neither} has no better direction; give --goal min or --goal max"):
            run_study(sought.searching(metric=neither), out, Made(), quiet=True)
    assert Trials(sought.searching(metric="rate", goal="max"), out).direction == "maximize"
    with pytest.raises(Problem, match="goal 'up'"):
        sought.searching(goal="up")
    two = Study.of({**tables, "data": [tables["data"], "mnist"], "search": {"metric": "elbo"}})
    with pytest.raises(Problem, match="needs one data set"):
        Trials(two, out)
    file = tmp_path / "s.toml"
    file.write_text(f"data = '{tables['data']}'\n[[runs]]\nmethod = 'beta-vae'\nbeta = [1, 2]\n")
    code, _, err = elbo("study", "run", file, "--search", "optuna", "--out", out)
    assert code == 2
    assert "search needs metric" in err
    assert not out.exists()
