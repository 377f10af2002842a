"""The table: one row a run and metric, the same bytes whoever did the runs, and never two estimators in one column."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from commanded import Elbo
from small_studies import Here

from elboroom.core.problem import Problem
from elboroom.evaluate.result import Result
from elboroom.runs import load, measure
from elboroom.studies import Study, query, results, run_study, summarise
from elboroom.studies.analysis.summary import digits, latex, made_by, markdown, wide
from elboroom.studies.analysis.table import COLUMNS, _number, as_csv, asked_for, timings, write_tables


def row(value: float | None, metric: str = "mig", **other: Any) -> dict[str, Any]:
    head = {"data": "d", "size": None, "method": "m", "setting": "", "estimator": "dlib", "settings": "{}", "unit": ""}
    return {**head, "metric": metric, "value": value, **other}


def test_every_number_of_every_run_is_a_row(whole: Path, tables: dict[str, Any]) -> None:
    found = results(whole)
    for cell in Study.of(tables).cells():
        kept = json.loads((whole / "runs" / cell.name / "metrics.json").read_text())
        mine = {r["metric"]: r for r in found if r["run"] == cell.name}
        assert mine.keys() == kept.keys() - {"run"} | {"udr"}
        for name in kept.keys() - {"run"}:
            assert mine[name]["value"] == kept[name]["value"]
            assert mine[name]["estimator"] == kept[name].get("estimator", kept[name].get("mode"))
            assert json.loads(mine[name]["settings"]) == kept[name].get("settings", {})
        assert {(r["method"], r["seed"], r["strength"]) for r in mine.values()} == {
            (cell.method, cell.seed, float(cell.options.get("beta", cell.options.get("off", 0))))
        }
        assert list(mine) == sorted(mine), "in an order that does not depend on what was measured when"
    assert {r["setting"] for r in found} == {"beta 1", "beta 8", "off 1, diag 10", "off 10, diag 100"}
    assert [r["run"] for r in found] == sorted(
        (r["run"] for r in found), key=[c.name for c in Study.of(tables).cells()].index
    )


def test_udr_is_that_of_the_runs_of_one_setting(whole: Path, tables: dict[str, Any]) -> None:
    cells = Study.of(tables).cells()[:2]
    expected = measure.agreement([load(whole / "runs" / cell.name) for cell in cells], n=50)
    found = {r["run"]: r["value"] for r in results(whole) if r["metric"] == "udr"}
    assert len(found) == 8
    for cell, entry in zip(cells, expected.values(), strict=True):
        assert found[cell.name] == pytest.approx(entry.value, rel=1e-6)


def test_udr_compares_seeds_of_one_setting_only(finished: Path, tables: dict[str, Any]) -> None:
    rng, cells = np.random.default_rng(0), Study.of(tables).cells()
    alike = rng.normal(size=(50, 3)).astype(np.float32)
    for cell in cells:
        codes = alike if cell.options.get("beta") == 1 else rng.normal(size=(50, 3)).astype(np.float32)
        np.savez(finished / "runs" / cell.name / "agreement.npz", codes=codes, rates=np.ones(3))
    found = {r["run"]: r["value"] for r in results(finished) if r["metric"] == "udr"}
    for cell in cells:
        assert (
            found[cell.name] == pytest.approx(0.9, abs=0.02)
            if cell.options.get("beta") == 1
            else found[cell.name] < 0.5
        )


@pytest.mark.parametrize(
    "content", [b"", b"PK\3\4", {}, {"codes": np.ones((9, 3)), "rates": np.ones(2)}, "text", "nan"]
)
def test_codes_that_are_damaged_have_no_agreement(finished: Path, content: Any) -> None:
    for path in finished.glob("runs/*/agreement.npz"):
        codes = np.full((9, 3), np.nan) if content == "nan" else np.full((9, 3), "a")
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            np.savez(path, **(content if isinstance(content, dict) else {"codes": codes, "rates": np.ones(3)}))
    found = results(finished)
    assert found
    assert not [r for r in found if r["metric"] == "udr"]


def test_csv_and_parquet_hold_the_same_and_floats_survive(whole: Path) -> None:
    with (whole / "table.csv").open() as file:
        lines = list(csv.DictReader(file))
    found = results(whole)
    assert list(lines[0]) == list(COLUMNS["table"])
    assert len(lines) == len(found)
    for line, r in zip(lines, found, strict=True):
        assert (float(line["value"]) if line["value"] else None) == r["value"]
    read = duckdb.connect().execute(f"SELECT run, metric, value, seed FROM '{whole / 'table.parquet'}'").fetchall()
    assert read == [(r["run"], r["metric"], r["value"], r["seed"]) for r in found]


def test_a_weighted_likelihood_has_its_noise_and_effective_draws_beside_it() -> None:
    bound = Result(
        -5.0, "iw-100", "nats", {"K": 100}, {"sampling": 0.1, "importance_noise": 0.2}, parts={"effective_samples": 3.5}
    )
    row = _number("log_px", bound)
    assert {**row}.keys() <= COLUMNS["table"].keys()
    assert [row[key] for key in ("error", "importance_noise", "effective_samples")] == [0.1, 0.2, 3.5]
    assert [_number("elbo", Result(-6.0, "elbo"))[key] for key in ("importance_noise", "effective_samples")] == [
        None
    ] * 2


def test_timings_are_no_part_of_the_table(finished: Path) -> None:
    before = {name: (finished / name).read_bytes() for name in ("table.csv", "table.parquet", "timings.csv")}
    index = finished / "index.jsonl"
    index.write_text(index.read_text().replace('"train": ', '"train": 9'))
    write_tables(finished)
    after = {name: (finished / name).read_bytes() for name in before}
    assert after["table.csv"] == before["table.csv"]
    assert after["table.parquet"] == before["table.parquet"]
    assert after["timings.csv"] != before["timings.csv"]
    assert all(t["train"] >= 9 and t["engine"] == "here" for t in timings(finished))


def test_a_question_in_sql(whole: Path, elbo: Elbo) -> None:
    sql = "SELECT method, median(value), count(*) FROM results WHERE metric = 'elbo' GROUP BY method ORDER BY method"
    columns, rows = query(whole, sql)
    expected = {
        m: [r["value"] for r in results(whole) if r["metric"] == "elbo" and r["method"] == m]
        for m in ("beta-vae", "dip-vae-i")
    }
    assert columns == ["method", 'median("value")', "count_star()"]
    assert rows == [(m, pytest.approx(float(np.median(v)), rel=1e-12), 4) for m, v in expected.items()]
    code, out, _ = elbo("study", "query", whole, "SELECT count(*) AS n FROM timings", "--json")
    assert (code, json.loads(out)) == (0, [{"n": 8}])
    assert query(whole, "SELECT options->>'beta' FROM results WHERE strength = 8 LIMIT 1")[1] == [("8",)]
    for sql, expected_words in {
        "SELEC 1": "the query failed: Parser Error",
        "SELECT nothing FROM results": "nothing",
        "SELECT * FROM read_csv('/etc/passwd')": "the query failed",
    }.items():
        code, _, err = elbo("study", "query", whole, sql)
        assert (code, len(err.splitlines())) == (2, 1), err
        assert expected_words in err


def test_median_quartiles_best_and_n() -> None:
    rows = [row(v) for v in (0.1, 0.2, 0.3, 0.4, 0.9)] + [row(v, "distortion", method="other") for v in (5.0, 3.0)]
    one, two = summarise(rows)
    assert (one["median"], one["q25"], one["q75"], one["best"], one["n"]) == (0.3, 0.2, 0.4, 0.9, 5)
    assert (two["median"], two["best"], two["n"]) == (4.0, 3.0, 2), "less distortion is better"
    assert summarise([row(3.0, "rate")])[0]["best"] is None, "no rate is better than another"
    for name in ("gaussian-tc", "mean-mi", "total-correlation", "drift-0.01"):
        assert summarise([row(0.1, name), row(5.0, name)])[0]["best"] == 0.1, name
    assert summarise([row(None, reason="none"), row(0.5)])[0]["n"] == 1
    assert [s["n"] for s in summarise([row(1.0, seed=0), row(2.0, seed=1)], ("seed",))] == [1, 1]


def test_two_estimators_in_one_column_are_refused() -> None:
    mixed = [row(0.1), row(0.2, estimator="modern")]
    with pytest.raises(Problem, match="mig was measured in 2 ways, which do not compare: dlib and modern"):
        summarise(mixed)
    assert summarise(mixed, estimator="modern")[0]["median"] == 0.2
    with pytest.raises(Problem, match="unknown estimator 'modren'; did you mean 'modern'"):
        summarise(mixed, estimator="modren")
    with pytest.raises(Problem, match="n 1000 and n 500"):
        summarise([row(0.1, settings='{"n": 1000, "J": 3}'), row(0.2, settings='{"n": 500, "J": 3}')])
    same = [row(0.1, settings='{"n": 9, "J": 3, "active": 2}'), row(0.2, settings='{"n": 9, "J": 5, "active": 1}')]
    assert summarise(same)[0]["n"] == 2, "how many dimensions a run has says nothing of how it was measured"
    assert summarise([row(0.1), row(0.2, data="e", estimator="modern")])[0]["n"] == 1, (
        "data sets have columns of their own"
    )
    assert made_by(row(0.1, settings='{"n": 9, "J": 5}')) == made_by(row(0.2, settings='{"J": 3, "n": 9}'))


@pytest.mark.slow
def test_a_run_measured_otherwise_by_hand_is_noticed(finished: Path, elbo: Elbo) -> None:
    run = next((finished / "runs").iterdir())
    metrics = json.loads((run / "metrics.json").read_text())
    metrics["log_likelihood"] |= {"estimator": "iw-500"}
    (run / "metrics.json").write_text(json.dumps(metrics))
    code, out, err = elbo("study", "table", finished, "--format", "csv")
    assert code == 0
    assert "left out: log_likelihood was measured in 2 ways" in err
    assert "log_likelihood" not in out
    assert "elbo" in out, "one metric that does not compare costs no other"
    code, _, err = elbo("study", "table", finished, "--metric", "log_likelihood")
    assert (code, len(err.splitlines())) == (2, 1), err
    assert "choose one with --estimator NAME" in err
    assert elbo("study", "report", finished)[0] == 0
    page = (finished / "report.html").read_text(encoding="utf-8")
    assert "Left out: log_likelihood was measured in 2 ways" in page
    code, out, _ = elbo("study", "table", finished, "--metric", "elbo", "--json")
    assert code == 0
    assert {r["metric"] for r in json.loads(out)} == {"elbo"}


@pytest.mark.slow
def test_every_metric_names_its_estimator_in_settings_that_compare(tables: dict[str, Any], tmp_path: Path) -> None:
    """Runs of other methods and latent sizes are measured alike: no metric is taken for two."""
    from elboroom.evaluate.disentanglement import metrics

    names = [name for name in metrics() if name not in ("dci", "sap", "explicitness")]  # which take a while
    runs = [{"method": "beta-vae", "zip": {"beta": [1, 30], "latent": [2, 4]}}]
    measure = {**tables["measure"], "metrics": names, "labels": [10], "flips": True}
    study = Study.of({**tables, "runs": runs, "measure": measure, "seeds": 1})
    run_study(study, tmp_path / "out", Here(), quiet=True)
    found = summarise(results(tmp_path / "out"), ("data",))
    assert {s["metric"] for s in found} >= {
        "elbo",
        "log_likelihood",
        "mig",
        "gaussian-tc",
        "downstream-10",
        "drift-0.01",
    }


def test_tables_in_markdown_and_latex(whole: Path, elbo: Elbo) -> None:
    rows = [{"method": "a_b & c|d", "n": 3, "x": 0.12345}, {"method": "e", "n": 12000, "x": 123.456}]
    assert markdown(rows, ["method", "n", "x"]).splitlines() == [
        "| method | n | x |", "| --- | --- | --- |", r"| a_b & c\|d | 3 | 0.123 |", "| e | 12,000 | 123.46 |",
    ]  # fmt: skip
    text = latex(rows, ["method", "n", "x"])
    assert r"\begin{tabular}{lrr}" in text
    assert r"a\_b \& c|d & 3 & 0.123 \\" in text
    assert [digits(x) for x in (None, 2.0, "x", -0.5, 15.4, 12345.6)] == ["", "2", "x", "-0.500", "15.40", "12,346"]
    one = wide(summarise([row(v) for v in (1.0, 2.0, 3.0)]), ["mig"], ("method",))
    assert one == [{"method": "m", "n": 3, "mig": "2 [1.500, 2.500]"}]
    for style, word in (("markdown", "| beta-vae |"), ("latex", "toprule"), ("csv", "beta-vae,"), ("text", "beta-vae")):
        code, out, _ = elbo("study", "table", whole, "--format", style, "--metric", "elbo,mig")
        assert code == 0
        assert word in out
    code, _, err = elbo("study", "table", whole, "--metric", "elob")
    assert code == 2
    assert "did you mean 'elbo'?" in err
    assert elbo("study", "table", whole, "--format", "pdf")[0] == 2
    assert as_csv([{"a": None, "b": 0.1}], ["a", "b"]) == "a,b\n,0.1\n"


def test_a_query_for_a_metric_that_there_is_not_is_told(whole: Path, elbo: Elbo) -> None:
    for sql in (
        "SELECT * FROM results WHERE metric = 'log likelihood'",
        "SELECT * FROM results WHERE metric IN ('elbo', 'log-likelihood')",
    ):
        with pytest.raises(Problem, match=r"this study has no metric 'log.likelihood'; did you mean 'log_likelihood'"):
            query(whole, sql)
    assert asked_for("select 1 from results where metric='mig' and method = 'vae'") == ["mig"]
    with pytest.raises(Problem, match=r"the tables are results \(.*metric, value.*\) and timings"):
        query(whole, "SELECT * FROM tables")


def test_numbers_of_a_query_have_sensible_digits(whole: Path, elbo: Elbo) -> None:
    _, out, _ = elbo(
        "study", "query", whole, "SELECT 1.23456789 AS a, 0.000123456 AS b, 12345.678 AS c, 7 AS d, 'x' AS e"
    )
    for shown in ("1.235", "0.000123", "12,346", " 7 ", " x "):
        assert shown in out
    assert "456789" not in out
