"""One registry: every key of every metrics.json has a title and a direction, and a name says how it is measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import elboroom
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.evaluate.disentanglement import metrics as of_codes
from elboroom.evaluate.registry import chosen, find, goal, metrics, quantity
from elboroom.evaluate.result import Result
from elboroom.runs import measure
from elboroom.runs.run import Run

SMALL: dict[str, Any] = {"steps": 3, "batch_size": 8, "latent": 3, "threads": 1}
WORDS = SMALL | {"embed": 4, "hidden": 4}
BY_NAME = ["all", "downstream", "probe", "flips"]


def unknown_keys(run: Run, names: list[str], **options: Any) -> set[str]:
    """Keys of a measured run that no metric gives."""
    found = measure.metrics(run, names, samples=2, most=40, smaller=True, **options)
    kept = json.loads((run.folder / "metrics.json").read_text())
    assert kept == found
    return {key for key in found if key != "run" and quantity(key) is None}


@pytest.mark.parametrize("method", ["vae", "wae-mmd", "implicit-vae", "implicit-vae-mi"])
def test_every_key_of_a_run_on_pixels_has_a_direction(method: str, binary: DataSet, tmp_path: Path) -> None:
    run = elboroom.train(method, binary, tmp_path / "run", **SMALL)
    assert not unknown_keys(run, BY_NAME if method == "vae" else ["likelihood"], mode="logistic")


def test_every_key_of_a_run_on_text_has_a_direction(sentences: DataSet, tmp_path: Path) -> None:
    run = elboroom.train("vae", sentences, tmp_path / "run", **WORDS)
    assert not unknown_keys(run, ["all", "probe"], sentences=30)
    assert {"bleu", "perplexity", "mig"} <= run.measured.keys()


def test_directions() -> None:
    better = {"elbo": "max", "distortion": "min", "downstream-100": "max", "probe-1000": "max", "reverse_ppl": "min",
              "drift-0.01": "min", "overlap-0.01": "max", "udr": "max", "sap paper": "max", "mean-mi": "min"}  # fmt: skip
    assert {key: goal(key) for key in better} == better
    for key in ("rate", "active_units", "active-units", "elbo_dual", "sparsity", "of-nobody", "of_nobody"):
        assert goal(key) is None
    assert quantity("of-nobody") is None
    assert quantity("downstream-10000") == ("Factors predicted from 10,000 labels", "high")
    assert all(entry.summary and entry.title for entry in metrics().values())
    assert find("mig").better == "high"
    assert find("likelihood").better == "neither"


def test_results_know_which_way_is_better(binary: DataSet, tmp_path: Path) -> None:
    run = elboroom.train("vae", binary, tmp_path / "run", **SMALL)
    assert (run.elbo().better, run.elbo().title) == ("high", "ELBO")
    assert run.log_likelihood(samples=2, most=10).better == "high"
    assert Result.from_json("rate", run.evaluate(samples=2)["rate"]).better == "neither"


def test_what_all_stands_for() -> None:
    assert [entry.name for entry in chosen(["all"], has_sentences=False)] == ["likelihood", "mmd", *of_codes()]
    assert [entry.name for entry in chosen(["all"], has_sentences=True)][-1] == "text"
    assert [entry.name for entry in chosen(["sap", "likelihood", "sap"], True)] == ["sap", "likelihood"]
    with pytest.raises(Problem, match="unknown metric 'likelyhood'; did you mean 'likelihood'"):
        chosen(["likelyhood"], True)


def test_options_are_those_that_a_metric_reads() -> None:
    assert find("likelihood").options == {"split", "samples", "most", "iw_most", "iw_until", "seed", "proposal"}
    assert find("mig").options == {"mode", "representation", "seed", "interval", "smaller"}
    assert find("probe").options == {"seed", "split"}


def test_a_metric_of_several_runs_is_asked_for_alone(binary: DataSet, tmp_path: Path) -> None:
    run = elboroom.train("vae", binary, tmp_path / "run", **SMALL)
    with pytest.raises(Problem, match="udr compares several runs and is asked for alone"):
        measure.metrics(run, ["likelihood", "udr"])
    assert not (run.folder / "metrics.json").exists(), "nothing is measured before"


def test_records_are_added_and_taken_away(binary: DataSet, tmp_path: Path) -> None:
    run = elboroom.train("vae", binary, tmp_path / "run", **SMALL)
    run.record({"downstream-10": Result(0.5, "logistic", metric="downstream-10"), "elbo": Result(-3.0, "elbo", "nats")})
    found = run.record({"mig": Result(None, "dlib", reason="no factor", metric="mig")}, without=("downstream-",))
    assert set(found) == {"run", "elbo", "mig"}
    assert json.loads((run.folder / "metrics.json").read_text()) == found == run.measured
    assert found["elbo"] == {"value": -3.0, "unit": "nats", "estimator": "elbo"}
    assert found["mig"] == {"value": None, "metric": "mig", "mode": "dlib", "reason": "no factor"}
