"""What a report computes: known answers, and the figures that show them with the rows behind them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from elboroom.core.problem import Problem
from elboroom.studies.analysis import charts, relations
from elboroom.studies.analysis.pictures import terms
from elboroom.studies.analysis.scores import Scores

METHODS = {"beta-vae": [1.0, 4.0], "factor-vae": [10.0, 20.0]}


def made(
    number: Any, metrics: tuple[str, ...] = ("mig", "elbo", "distortion", "rate", "udr"), seeds: int = 3
) -> Scores:
    """Runs of two methods, two strengths and three seeds; number(metric, method, strength, seed) is what each has."""
    rows = []
    for method, strengths in METHODS.items():
        for strength in strengths:
            for seed in range(seeds):
                head = {
                    "run": f"{method}-{strength}-{seed}",
                    "method": method,
                    "setting": f"s {strength:g}",
                    "seed": seed,
                }
                head |= {"strength": strength, "data": "d", "unit": "", "settings": "{}"}
                for metric in metrics:
                    how = {"estimator": "dlib" if metric == "mig" else "made"}
                    rows.append({**head, **how, "metric": metric, "value": number(metric, method, strength, seed)})
    return Scores.of(rows, "d")


def by_seed(metric: str, method: str, strength: float, seed: int) -> float:
    """The metric is the seed; the ELBO falls with it, the distortion is the strength."""
    return {"mig": seed, "elbo": -seed, "distortion": strength, "rate": 30 - strength, "udr": 2 * seed}[metric] * 1.0


def test_variance_is_split_between_method_setting_and_seed() -> None:
    assert made(by_seed).variance("mig") == (pytest.approx(0), pytest.approx(0))
    assert made(by_seed).variance("distortion") == (pytest.approx(468.75 / 632.25), pytest.approx(1))
    one = made(lambda metric, method, strength, seed: float(method == "beta-vae"))
    assert one.variance("mig") == (pytest.approx(1), pytest.approx(1))
    half = made(
        lambda metric, method, strength, seed: float(method == "beta-vae") + (1 if seed == 0 else -1) * (seed < 2)
    )
    between, total = 12 * 0.25, 12 * 0.25 + 8
    assert half.variance("mig") == (pytest.approx(between / total), pytest.approx(between / total))
    assert made(lambda *_: 1.0).variance("mig") is None


def test_a_setting_belongs_to_its_method() -> None:
    """Settings of two methods that go by the same name: only method and setting together explain the score."""
    rows = [
        {"run": f"{m}{s}{seed}", "method": m, "setting": s, "seed": seed, "strength": 1.0, "data": "d", "unit": "",
         "settings": "{}", "estimator": "dlib", "metric": "mig", "value": float((m == "a") != (s == "beta 1"))}
        for m in "ab" for s in ("beta 1", "beta 2") for seed in range(2)
    ]  # fmt: skip
    assert Scores.of(rows, "d").variance("mig") == (pytest.approx(0), pytest.approx(1))


def test_ranks_agree_as_they_are_made_to() -> None:
    scores = made(by_seed)
    found = scores.correlation(["elbo", "udr"], ["mig"])
    assert found.correlation[:, 0] == pytest.approx([-1, 1])
    figure, rows = relations.correlations(scores)
    told = {(r["row"], r["column"]): r["spearman"] for r in rows}
    assert told["mig", "mig"] == pytest.approx(1)
    assert told["elbo", "mig"] == pytest.approx(-1)
    assert all(r["n"] == 12 for r in rows)
    assert figure.axes


def test_rules_are_scored_by_the_rank_of_what_they_pick() -> None:
    found = {row["rule"]: row for row in made(by_seed).selection()}
    assert found["highest elbo"]["mig"] == "10.5 of 12", "it picks seed 0, which shares the last four places"
    assert found["highest udr"]["mig"] == "2.5 of 12"
    assert found["highest udr"]["picks"].endswith("-2")
    assert set(found) == {"highest elbo", "lowest distortion", "lowest rate", "highest udr"}


def test_the_best_run_is_best_by_the_way_its_metric_goes() -> None:
    scores = made(lambda metric, method, strength, seed: strength + seed / 10)
    best, least = scores.best("mig"), scores.best("distortion")
    assert best is not None
    assert least is not None
    assert (best["run"], least["run"]) == ("factor-vae-20.0-2", "beta-vae-1.0-0")
    assert scores.best("mig", "beta-vae") == {
        "run": "beta-vae-4.0-2",
        "method": "beta-vae",
        "setting": "s 4",
        "strength": 4.0,
        "seed": 2,
    }
    assert scores.headline() == "mig"
    assert scores.headline("elbo") == "elbo"
    with pytest.raises(Problem, match="did you mean 'elbo'"):
        scores.headline("elob")
    assert made(by_seed, ("elbo",)).headline() == "elbo"


def test_metrics_that_know_the_factors_are_told_from_those_that_do_not() -> None:
    scores = made(
        lambda metric, method, strength, seed: seed + strength,
        ("mig", "gaussian-tc", "elbo", "udr", "downstream-10", "downstream-9"),
    )
    assert scores.supervised == ["mig"]
    assert scores.unsupervised == ["elbo", "gaussian-tc", "udr"]
    assert scores.downstream == ["downstream-9", "downstream-10"]
    assert scores.settings("factor-vae") == [("s 10", 10.0), ("s 20", 20.0)]
    assert scores.of_method("mig", "beta-vae", "s 4").tolist() == [4, 5, 6]


def test_every_chart_is_drawn_with_its_data() -> None:
    rng = np.random.default_rng(0)
    names = (
        "mig",
        "sap",
        "elbo",
        "distortion",
        "rate",
        "udr",
        "downstream-10",
        "downstream-100",
        "drift-0.01",
        "overlap-0.01",
    )
    scores = made(lambda metric, method, strength, seed: float(rng.random()), names)
    drawn = (charts.violins, charts.strengths, charts.trade_off, charts.plane, relations.correlations, relations.variance,
             relations.agreement, relations.label_curves, relations.flip_curves)  # fmt: skip
    for draw in drawn:
        figure, rows = draw(scores)
        assert figure.axes, draw.__name__
        assert rows, draw.__name__
    shown = {r["run"]: r for r in charts.plane(scores)[1]}
    for i, run in enumerate(scores.runs):
        assert shown[run["run"]]["rate"] == scores.columns["rate"][i]
    lines = charts.strengths(scores)[0].axes[0].lines
    medians = [float(np.median(scores.of_method("distortion", "beta-vae", s))) for s in ("s 1", "s 4")]
    assert list(lines[0].get_ydata()) == pytest.approx(medians)


def test_scores_against_the_error_per_pixel_are_joined_by_strength() -> None:
    """A line a method, through the medians of its settings, each with its strength beside it."""
    values = {"mig": lambda s, seed: s / 40 + seed, "error_per_pixel": lambda s, seed: s / 1000 + seed}
    scores = made(lambda metric, method, strength, seed: values[metric](strength, seed), tuple(values))
    figure, rows = charts.errors(scores)
    lines = figure.axes[0].lines
    assert [list(line.get_xdata()) for line in lines] == [[1.001, 1.004], [1.01, 1.02]]  # of the middle seed
    assert [list(line.get_ydata()) for line in lines] == [[1.025, 1.1], [1.25, 1.5]]
    assert [text.get_text() for text in figure.axes[0].texts] == ["1", "4", "10", "20"]
    assert len(rows) == 12
    with pytest.raises(Problem, match="no run of images has both"):
        charts.errors(made(by_seed))


def test_what_cannot_be_drawn_is_said() -> None:
    bare = made(by_seed, ("elbo",))
    for draw, why in (
        (charts.plane, "no run has a rate"),
        (charts.trade_off, "no run has a distortion"),
        (relations.correlations, "need three runs"),
        (relations.agreement, "UDR compares seeds"),
        (relations.label_curves, "labels ="),
        (relations.flip_curves, "flips = true"),
    ):
        with pytest.raises(Problem, match=why):
            draw(bare)
    with pytest.raises(Problem, match="several seeds"):
        relations.variance(made(lambda metric, method, strength, seed: strength, seeds=1))
    with pytest.raises(Problem, match="several strengths"):
        charts.strengths(Scores.of([{**r, "strength": None} for r in _rows(bare)], "d"))
    with pytest.raises(Problem, match="no run on other"):
        Scores.of(_rows(bare), "other")


def _rows(scores: Scores) -> list[dict[str, Any]]:
    made_rows = []
    for i, run in enumerate(scores.runs):
        head = {**run, "data": "d", "unit": "", "settings": "{}", "estimator": "made"}
        made_rows += [{**head, "metric": name, "value": float(column[i])} for name, column in scores.columns.items()]
    return made_rows


def test_a_run_without_a_number_is_left_out_of_it_alone() -> None:
    rows = _rows(made(by_seed))
    rows = [r | {"value": None} if r["metric"] == "mig" and r["seed"] == 0 else r for r in rows]
    scores = Scores.of(rows, "d")
    assert len(scores.runs) == 12
    assert np.isnan(scores.columns["mig"]).sum() == 4
    assert scores.of_method("mig", "beta-vae").tolist() == [1, 2, 1, 2]
    assert charts.violins(scores)[1][0]["mig"] is None


def test_the_rate_of_a_log_is_kl_or_its_three_parts() -> None:
    kl = terms([{"step": 1, "nll": 5.0, "kl": 2.0, "loss": 7.0}])
    parts = terms([{"step": 1, "nll": 5.0, "mi_mss": 1.0, "tc_mss": 0.25, "dwkl_mss": 0.5, "loss": 7.0}])
    assert kl["rate"][1].tolist() == [2.0]
    assert parts["rate"][1].tolist() == [1.75]
    assert terms([{"step": 1, "nll": 5.0}]).keys() == {"nll"}
