"""The report of a study: one file with every figure, each also as SVG or PNG with its data, and no error in a browser."""

from __future__ import annotations

import base64
import csv
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commanded import Elbo
from matplotlib.figure import Figure
from PIL import Image
from small_studies import Here

from elboroom.core.problem import Problem
from elboroom.plots import Exhibit
from elboroom.plots.style import small_multiples, styled
from elboroom.report import study
from elboroom.report.page import render
from elboroom.studies import Study, results, run_study, write_report
from elboroom.studies.analysis.charts import violins
from elboroom.studies.analysis.scores import Scores
from elboroom.studies.analysis.table import as_csv

CHARTS = {"violins", "strengths", "trade-off", "errors", "plane", "training", "correlations", "udr", "variance", "labels",
          "flips", "best-aggregate", "best-collapse"}  # fmt: skip
PICTURES = {"traversal-beta-vae", "traversal-dip-vae-i", "flipped", "shifted", "best-samples", "best-reconstructions",
            "best-densities"}  # fmt: skip


def measured(folder: Path) -> None:
    """Gives every run the numbers of a longer study."""
    rng = np.random.default_rng(0)
    for path in sorted(folder.glob("runs/*/metrics.json")):
        metrics = json.loads(path.read_text())
        level = float(rng.random())
        for name in ("mig", "beta-vae", "factor-vae", "sap"):
            metrics[name] = {"value": level + float(rng.normal(0, 0.1)), "metric": name, "mode": "dlib"}
        for size in (10, 100, 1000):
            metrics[f"downstream-{size}"] = {"value": 0.3 + 0.1 * level + size / 2000, "mode": "boosting"}
        for share in (0.001, 0.01, 0.05):
            metrics[f"drift-{share:g}"] = {"value": level * share, "estimator": "flips"}
            metrics[f"overlap-{share:g}"] = {"value": 1 - share * level, "estimator": "flips"}
        path.write_text(json.dumps(metrics))


@pytest.fixture(scope="module")
def path(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a study with all there is to show; one of its runs has failed."""
    folder = Path(shutil.copytree(whole, tmp_path_factory.mktemp("report") / "small"))
    measured(folder)
    lost = {"run": "vae-s9-b", "state": "failed", "error": "a <script> of sorts",
            "cell": {"method": "vae", "data": "x", "size": None, "seed": 9, "options": {}}}  # fmt: skip
    with (folder / "index.jsonl").open("a") as file:
        file.write(json.dumps(lost) + "\n")
    return write_report(folder, n=100)


def test_it_is_one_file_that_needs_no_other(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    sources = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert sources
    assert all(source.startswith(("data:", "#")) for source in sources)
    assert "http" not in re.sub(r"data:[^\"]*", "", page)
    ids = re.findall(r'<section id="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in sources if link.startswith("#")} <= set(ids)
    assert "a &lt;script&gt; of sorts" in page
    assert "<b>" not in page


def test_every_figure_is_there_and_beside_it_as_a_file_with_its_data(path: Path) -> None:
    page, figures = path.read_text(encoding="utf-8"), path.parent / "figures"
    shown = dict(re.findall(r'<section id="([^"]*)"><h2>[^<]*</h2>\s*(<p class="(?:caption|absent)">)', page))
    assert shown.keys() >= CHARTS | PICTURES
    assert not [name for name, kind in shown.items() if "absent" in kind], "nothing is missing"
    for name in CHARTS | PICTURES:
        assert Image.open(figures / f"{name}.png").size[0] > 100
        assert (figures / f"{name}.svg").exists() == (name in CHARTS)
        text = (figures / f"{name}.csv").read_text()
        assert len(text.splitlines()) > 1, name
        assert base64.b64encode(text.encode()).decode() in page, "the page holds the same data"
    assert {p.stem for p in figures.glob("*.png")} == {p.stem for p in figures.glob("*.csv")}


def test_the_data_of_a_figure_are_the_numbers_of_the_table(path: Path) -> None:
    with (path.parent / "figures" / "plane.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8
    for row in rows:
        kept = json.loads((path.parent / "runs" / row["run"] / "metrics.json").read_text())
        assert float(row["rate"]) == kept["rate"]["value"]
    with (path.parent / "figures" / "training.csv").open() as file:
        points = list(csv.DictReader(file))
    last = [float(p["value"]) for p in points if p["run"] == rows[0]["run"] and p["term"] == "nll"][-1]
    log = (path.parent / "runs" / rows[0]["run"] / "log.jsonl").read_text().splitlines()
    assert last == json.loads(log[-1])["nll"]


def test_tables_in_three_formats(path: Path) -> None:
    tables = path.parent / "tables"
    assert {p.name for p in tables.iterdir()} == {
        f"{name}.{kind}" for name in ("overview", "selection", "summary") for kind in ("md", "tex", "csv")
    }
    with (tables / "summary.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == "mig"]
    assert {row["setting"] for row in rows} == {"beta 1", "beta 8", "off 1, diag 10", "off 10, diag 100"}
    assert all(row["n"] == "2" and row["estimator"] == "dlib" for row in rows)
    page = path.read_text(encoding="utf-8")
    assert r"\begin{tabular}" in page
    assert "| method | setting |" in page


def test_the_same_figure_gives_the_same_bytes(path: Path, tmp_path: Path) -> None:
    rows = results(path.parent)
    figure, shown = violins(Scores.of(rows, rows[0]["data"]))
    Exhibit("violins", "", "", True, figure, data=as_csv(shown, list(shown[0]))).save(tmp_path)
    for suffix in ("svg", "png", "csv"):
        assert (tmp_path / f"violins.{suffix}").read_bytes() == (
            path.parent / "figures" / f"violins.{suffix}"
        ).read_bytes()


@pytest.mark.slow
def test_what_a_study_cannot_show_is_said(finished: Path, elbo: Elbo) -> None:
    for folder in (finished / "runs").iterdir():
        shutil.rmtree(folder / "checkpoints")
    code, _, err = elbo("study", "report", finished, "--score", "elbo")
    assert code == 0, err
    page = (finished / "report.html").read_text(encoding="utf-8")
    assert "Not shown: no factors were predicted" in page
    assert "has no checkpoint yet" in page
    code, _, err = elbo("study", "report", finished, "--score", "elob")
    assert code == 2
    assert "did you mean 'elbo'?" in err


@pytest.mark.slow
def test_names_from_outside_are_escaped(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def script(place: str) -> str:
        return f'<script>alert("{place}")'

    tables = json.loads((finished / "study.json").read_text())
    (finished / "study.json").write_text(json.dumps(tables | {"name": script("study")}))
    for number, folder in enumerate(sorted((finished / "runs").iterdir())):
        shutil.rmtree(folder / "checkpoints")
        metrics = json.loads((folder / "metrics.json").read_text())
        metrics[script("metric")] = {"value": 1.0, "estimator": script("estimator")}
        metrics[script("mixed")] = {"value": 1.0, "estimator": f"{script('way')} {number}"}
        (folder / "metrics.json").write_text(json.dumps(metrics))
    lost = {"run": "lost", "state": "failed", "error": script("error"),
            "cell": {"method": "vae", "data": "x", "size": None, "seed": 9, "options": {}}}  # fmt: skip
    with (finished / "index.jsonl").open("a") as file:
        file.write(json.dumps(lost) + "\n")

    def told(folder: Path) -> list[dict[str, Any]]:
        rows = results(folder)
        return [{**row, "data": f"{script('data')} {row['seed']}", "setting": script("setting")} for row in rows]

    monkeypatch.setattr(study, "results", told)
    page = write_report(finished, n=50).read_text(encoding="utf-8")
    assert "<script" not in page
    escaped = set(re.findall(r"&lt;script&gt;alert\(&#34;(\w+)&#34;\)", page))
    assert escaped == {"study", "metric", "estimator", "mixed", "way", "error", "data", "setting"}


@pytest.mark.slow
def test_two_data_sets_have_figures_of_their_own(tables: dict[str, Any], squares: Path, tmp_path: Path) -> None:
    other = tmp_path / "other squares.npz"
    shutil.copy(squares, other)
    runs = [{"method": "beta-vae", "beta": [1, 4]}]
    two = Study.of({**tables, "data": [str(squares), str(other)], "runs": runs, "seeds": 1})
    run_study(two, tmp_path / "out", Here(), quiet=True)
    page = write_report(tmp_path / "out", n=50).read_text(encoding="utf-8")
    for tail in ("-squares", "-other-squares"):
        assert f'<section id="plane{tail}">' in page
        assert (tmp_path / "out" / "figures" / f"plane{tail}.csv").read_text().count("\n") == 3
    nothing = Study.of({**tables, "runs": [{"method": "vae", "lr": 1e9, "steps": 40}], "seeds": 1})
    run_study(nothing, tmp_path / "none", Here(), quiet=True)
    with pytest.raises(Problem, match=r"no run of .* is finished; run"):
        write_report(tmp_path / "none")


@pytest.mark.slow
def test_a_browser_opens_it_without_an_error_and_shows_every_figure(path: Path, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium here to open the report in")
    count = """<script>addEventListener("load", () => { document.title = [...document.images].map(
      (i) => i.complete && i.naturalWidth > 50 ? i.alt : "MISSING " + i.alt).join("; ") });</script></body>"""
    page = tmp_path / "page.html"
    page.write_text(path.read_text(encoding="utf-8").replace("</body>", count), encoding="utf-8")
    quiet = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-sync"]
    quiet += [
        "--disable-component-update",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--enable-logging=stderr",
        "--v=0",
    ]
    words = [browser, "--headless", "--no-sandbox", *quiet, "--virtual-time-budget=5000", "--dump-dom", page.as_uri()]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in done.stderr
    found = re.search(r"<title>(.*?)</title>", done.stdout)
    assert found is not None
    drawn = found.group(1).split("; ")
    assert len(drawn) == len(CHARTS | PICTURES)
    assert not [name for name in drawn if name.startswith("MISSING")]


def test_the_title_says_what_was_studied(path: Path) -> None:
    page = path.read_text()
    title = re.search(r"<h1>(.*?) <span>", page)
    assert title is not None
    assert title[1].startswith("beta-vae and dip-vae-i on ")
    assert title[1].endswith(", by beta and off and diag")


def test_axes_without_data_are_not_drawn() -> None:
    @styled
    def half() -> Figure:
        figure, axes = small_multiples(2, 2)
        axes[0].plot([1, 2])
        axes[1].set_title("nothing")
        return figure

    assert [axes.axison for axes in half().axes] == [True, False]


@pytest.mark.parametrize(
    ("name", "head"),
    [("study", "vae on x"), ("my-study", "vae on x <span>my-study</span>"), ("b", "vae on x <span>the study b</span>")],
)
def test_a_study_of_no_other_name_is_not_called_study_study(name: str, head: str) -> None:
    page = render("study.html", name=name, title="vae on x", facts=[], parts=[], failed={}, version="")
    assert f"<h1>{head}</h1>" in page
