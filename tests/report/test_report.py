"""The report: one file that needs nothing else, with every number and figure, and no error in a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import elboroom
from elboroom import plots
from elboroom.data.dataset import DataSet
from elboroom.plots import Exhibit
from elboroom.report import run as report
from elboroom.report import write_report
from elboroom.report.chart import short
from elboroom.report.numbers import measured, numbers, rounded, table, two
from elboroom.runs.lifecycle import train
from elboroom.runs.run import Run

TINY: dict[str, Any] = {"steps": 6, "log_every": 1, "batch_size": 32, "latent": 3, "net": "mlp-300", "device": "cpu"}
VOID = {"meta", "link", "img", "br", "path", "polyline", "line", "circle"}
SHOW = """<script>
document.querySelector("svg.curve").dispatchEvent(new PointerEvent("pointermove", {clientX: 300, clientY: 300}));
</script></body>"""


class Outline(HTMLParser):
    """The identifiers, addresses and text of a page; open tags must be closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.sources: list[str] = []
        self.text = ""
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]
        self.open += [tag] if tag not in VOID else []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def run(pixels: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train("control-vae", pixels, tmp_path_factory.mktemp("run"), **TINY)


@pytest.fixture(scope="module")
def path(run: Run) -> Path:
    return write_report(run, n=100)


def test_it_is_one_file_that_needs_no_other(path: Path, run: Run) -> None:
    assert path == run.folder / "report.html"
    page = path.read_text(encoding="utf-8")
    outline = Outline(page)
    assert len(page) < 3_000_000
    assert len(outline.ids) == len(set(outline.ids))
    assert outline.sources
    assert all(source.startswith("data:") for source in outline.sources)
    assert "http" not in re.sub(r"data:[^\"]*", "", page.replace("http://www.w3.org/2000/svg", ""))


def test_it_shows_what_the_run_is_and_how_to_make_it_again(path: Path, run: Run) -> None:
    outline = Outline(path.read_text(encoding="utf-8"))
    card = run.spec.card
    for words in (run.spec.method, card.summary, card.formula, card.paper, run.spec.command, run.spec.data["hash"]):
        assert words in outline.text
    assert all(f"{name} {text}" in outline.text for name, text in run.spec.versions.items())
    wanted = {"curves", "reconstructions", "traversals", "samples", "rates", "aggregate", "numbers", "reproduce"}
    wanted |= {"collapse", "attributes", "flips", "shift"}
    assert wanted <= set(outline.ids)
    assert (run.folder / "figures" / "traversals.png").exists()


def test_every_number_is_there_with_estimator_and_errors(path: Path, run: Run) -> None:
    text = Outline(path.read_text(encoding="utf-8")).text
    metrics = json.loads((run.folder / "metrics.json").read_text())
    found = dict(numbers(metrics))
    assert {"elbo", "rate", "distortion", "log_likelihood", "active_units", "mutual_information"} <= set(found)
    for number in found.values():
        assert number.value is not None
        assert rounded(number.value, number.errors.get("sampling")) in text
        assert number.estimator in text
    assert "importance noise" in text
    assert f"ceiling {found['mutual_information'].parts['ceiling']:.2f}" in text


@pytest.mark.slow
def test_metrics_of_this_step_are_kept_and_those_of_another_measured_again(
    run: Run, path: Path, tmp_path: Path
) -> None:
    kept = run.folder / "metrics.json"
    metrics = json.loads(kept.read_text())
    metrics["elbo"]["value"] = -12345.25
    metrics["mig"] = {"value": 0.125, "estimator": "mig-discrete", "settings": {"bins": 20}}
    kept.write_text(json.dumps(metrics))
    again = write_report(run, tmp_path / "deep" / "again.html", n=50)
    text = Outline(again.read_text(encoding="utf-8")).text
    assert rounded(-12345.25, metrics["elbo"]["errors"]["sampling"]) in text
    assert "mig-discrete" in text
    metrics["run"]["step"] = 3
    kept.write_text(json.dumps(metrics))
    measured(run)
    assert json.loads(kept.read_text())["run"]["step"] == run.step


@pytest.mark.slow
def test_scores_are_shown_with_their_intervals_where_measured(run: Run, path: Path, tmp_path: Path) -> None:
    kept = run.folder / "metrics.json"
    before = kept.read_text()
    spread = {"how": "Wilson", "over": "evaluation sample", "level": 0.95, "low": 0.7312, "high": 0.7568, "n": 5000}
    said = {"settings": {"n": 15000, "seed": 0}, "parts": {"ceiling": 0.902}}
    scores = {
        "mig": {"value": 0.125, "metric": "mig", "mode": "dlib", **said},
        "beta-vae": {"value": 0.7442, "metric": "beta-vae", "mode": "dlib", "interval": spread, **said},
        "total-correlation": {"value": -0.25, "metric": "total-correlation", "mode": "full"},
        "infoc": {"value": None, "metric": "infoc", "mode": "paper", "reason": "there is one <dimension>"},
    }
    kept.write_text(json.dumps(json.loads(before) | scores))
    page = write_report(run, tmp_path / "scores.html", n=50).read_text(encoding="utf-8")
    kept.write_text(before)
    outline = Outline(page)
    assert "scores" in outline.ids
    assert "0.744 0.731 to 0.757Wilson, n = 5,000 dlib" in " ".join(outline.text.split())
    assert "at most 0.902" in outline.text
    assert "\N{MINUS SIGN}0.250" in outline.text
    assert "there is one <dimension>" in outline.text
    assert page.count('class="meter"') == 2
    assert outline.text.index("BetaVAE score") < outline.text.index("Mutual information gap")
    assert "scores" not in Outline(path.read_text(encoding="utf-8")).ids, "no section for scores that were not measured"


def test_what_a_model_cannot_have_is_said(pixels: DataSet, tmp_path: Path) -> None:
    page = write_report(train("ae", pixels, tmp_path / "ae", **TINY), n=50).read_text(encoding="utf-8")
    outline = Outline(page)
    assert "<h3>Log-likelihood, post hoc</h3>" in page
    assert "<h3>Log-likelihood</h3>" not in page
    assert "Not shown: q(z|x) has no density, so there is no KL per dimension." in outline.text
    assert "—" in outline.text


@pytest.mark.slow
def test_a_log_of_one_line_is_a_point_in_every_curve(vectors: DataSet, tmp_path: Path) -> None:
    run = train("vae", vectors, tmp_path / "v", **{**TINY, "steps": 1})
    page = write_report(run, n=50).read_text(encoding="utf-8")
    assert page.count('<circle class="line"') == 4  # lr, nll, kl, loss


def test_vectors_have_a_report_without_pictures(vectors: DataSet, tmp_path: Path) -> None:
    outline = Outline(write_report(train("vae", vectors, tmp_path / "v", **TINY), n=50).read_text(encoding="utf-8"))
    assert "reconstructions" not in outline.ids
    assert "pairs" in outline.ids


def script(place: str) -> str:
    """A name that would run in a browser if it was not escaped."""
    return f'<script>alert("{place}")</script>'


@pytest.mark.usefixtures("path")  # the report that leaves metrics.json
def test_names_from_outside_are_escaped(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = run.spec.model_copy(deep=True)
    spec.data["about"]["name"] = script("name").replace("/", "")
    spec.data["source"] = script("source")
    spec.data["splits"] = {script("split"): 3}
    spec.options[spec.card.options[0].name] = script("option")
    spec.versions[script("package")] = script("version")
    spec.versions["elboroom"] = script("own")
    spec.warm = script("warm")
    odd = Run(tmp_path, spec, run.method, run.step, run._own)
    odd.data = run.data
    metrics = json.loads((run.folder / "metrics.json").read_text())
    metrics["elbo"]["unit"] = script("unit")
    metrics["elbo"]["errors"][script("error")] = 0.5
    metrics[script("metric")] = {"value": None, "estimator": script("estimator"), "reason": script("reason")}
    metrics["rate"]["settings"][script("setting")] = script("value")
    spread = {"how": script("how"), "low": 0.1, "high": 0.3, "n": 10}
    metrics[script("score")] = {"value": 0.2, "mode": script("mode"), "interval": spread}
    (tmp_path / "metrics.json").write_text(json.dumps(metrics))
    (tmp_path / "log.jsonl").write_text(json.dumps({"step": 1, script("term"): 0.5}) + "\n")

    def shown(one: Run, n: int) -> Iterator[Exhibit]:
        yield next(plots.gallery(one, n))
        yield Exhibit(
            "said", script("title"), script("caption"), sentences=((script("sentence"), script("other"), ""),)
        )
        yield Exhibit("none", "None", "", reason=script("why"))

    monkeypatch.setattr(report, "gallery", shown)
    page = write_report(odd, n=50).read_text(encoding="utf-8")
    assert "(empty)" in Outline(page).text, "a sentence of no words is seen"
    assert "<script>alert" not in page
    escaped = set(re.findall(r"&lt;script&gt;alert\(&#34;(\w+)&#34;\)", page))
    assert escaped == {
        *("name", "source", "split", "option", "package", "version", "own", "warm", "unit", "error", "metric"),
        *("estimator", "reason", "setting", "value", "how", "score", "mode", "term", "title", "caption", "sentence"),
        *("other", "why"),
    }


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (-226.4432, 2.13, "\N{MINUS SIGN}226.4"),
        (11.2219, 0.0243, "11.222"),
        (1234567.0, 5000, "1,234,600"),
        (-7331.2309, 640.0, "\N{MINUS SIGN}7,330"),
        (7, None, "7"),
        (0.079318, None, "0.07932"),
    ],
)
def test_a_value_has_the_digits_that_its_error_leaves(value: float, error: float | None, shown: str) -> None:
    assert rounded(value, error) == shown


def test_an_error_is_written_out_and_a_ceiling_is_told() -> None:
    assert [two(error) for error in (640.0, 128.0, 6.44, 0.064, 0.0)] == ["640", "130", "6.4", "0.064", "0"]
    entry = {"value": 3.7, "estimator": "split", "unit": "nats", "parts": {"ceiling": 3.784}}
    (row,) = table({"mutual_information": entry})
    assert row.notes == ("at its ceiling (log n): too few rows",)
    (row,) = table({"mutual_information": entry | {"value": 2.0}})
    assert row.notes == ()


def test_numbers_beside_an_axis_have_room() -> None:
    values = [0.0009, 0.0, 0.25, -138000.0, 16.0, 2.4e-5]
    assert [short(v).replace("\N{MINUS SIGN}", "-") for v in values] == ["9e-4", "0", "0.25", "-138k", "16", "2.4e-5"]


PANEL = """
class Part {{ parts = []; style = {{}}; append(...more) {{ this.parts.push(...more); }} setAttribute() {{}}
  get text() {{ return this.parts.map((part) => part.text ?? String(part)).join(" "); }} }}
globalThis.document = {{ createElement: () => new Part() }};
const {{ Numbers }} = await import("{file}");
console.log(new Numbers({{ numbers: {{ rate: {{ value: 1 }}, rate_per_dim: {{ value: 38.7 }} }} }}).element.text);
"""


def test_the_panel_of_the_explorer_does_not_show_the_rate_twice() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node here")
    file = Path(elboroom.__path__[0]) / "explorer" / "static" / "collapse.js"
    program = PANEL.format(file=file.as_uri())
    done = subprocess.run([node, "--input-type=module", "-e", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["Numbers", "rate", "1"]


@pytest.mark.slow
def test_a_browser_opens_it_without_an_error_and_shows_values_under_the_pointer(path: Path, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium here to open the report in")
    page = tmp_path / "pointed.html"
    page.write_text(path.read_text(encoding="utf-8").replace("</body>", SHOW), encoding="utf-8")
    quiet = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-sync"]
    quiet += ["--disable-component-update", f"--user-data-dir={tmp_path / 'profile'}"]
    command = [
        browser,
        "--headless",
        "--no-sandbox",
        *quiet,
        "--enable-logging=stderr",
        "--v=0",
        "--dump-dom",
        page.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "CONSOLE" not in done.stderr
    values = re.findall(r'class="value"[^>]*>([^<]*)<', done.stdout)
    assert any(re.fullmatch(r"\S+ at \d", value) for value in values), values
