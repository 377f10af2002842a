"""The report of a study: one HTML file that needs nothing else, and every figure beside it with its data."""

from __future__ import annotations

import base64
import io
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from PIL import Image

from elboroom.core.problem import Problem
from elboroom.plots.style import DPI
from elboroom.studies.results import charts
from elboroom.studies.results.exhibits import Exhibit, exhibits
from elboroom.studies.results.scores import Scores
from elboroom.studies.results.summary import PARTS, digits, latex, markdown, place, summary, wide
from elboroom.studies.results.table import Row, as_csv, results
from elboroom.studies.store.index import Index
from elboroom.studies.study import Study
from elboroom.training.checkpoint import write

HEAVY = 150_000  # bytes above which a picture is kept in 256 colours


def write_report(folder: str | Path, out: str | Path | None = None, score: str | None = None, n: int = 2000) -> Path:
    """Writes the report of a study, by default as report.html in its folder, with figures/ and tables/ beside it.

    score: the metric by which runs are called best. n: how many codes and samples the figures of the best run show.
    """
    folder = Path(folder)
    path = folder / "report.html" if out is None else Path(out)
    study, rows = Study.read(folder), results(folder)
    sets = list(dict.fromkeys(map(place, rows)))
    if not sets:
        raise Problem(f"no run of {folder} is finished yet: elbo study run {folder}")
    body, contents = [], []
    for data in sets:
        scores = Scores.of(rows, data)
        shown = Path(data).name
        tail = _tail(data, sets)
        if len(sets) > 1:
            body.append(f'<h2 class="set" id="set{tail}">{escape(shown)}</h2>')
        for exhibit in exhibits(scores, folder, tail, score, n):
            exhibit.save(path.parent / "figures")
            body.append(_exhibit(exhibit, path.parent / "figures"))
            contents.append((exhibit.name, exhibit.title + ("" if len(sets) == 1 else f", {shown}")))
        body.append(_tables(scores, rows, path.parent / "tables", tail))
        contents.append((f"tables{tail}", "Tables" + ("" if len(sets) == 1 else f", {shown}")))
    page = _page(study, folder, rows, sets, "".join(body), contents)
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, page.encode())
    return path


def _tail(data: str, sets: list[str]) -> str:
    """What tells the figures of a data set apart where there are several."""
    stems = ["".join(c if c.isalnum() else "-" for c in Path(one).stem) for one in sets]
    at = sets.index(data)
    number = f"-{stems[: at + 1].count(stems[at])}" if stems.count(stems[at]) > 1 else ""
    return "" if len(sets) == 1 else f"-{stems[at]}{number}"


def _exhibit(exhibit: Exhibit, folder: Path) -> str:
    head = f"<h2>{escape(exhibit.title)}</h2>"
    if exhibit.figure is None:
        body = f'<p class="absent">Not shown: {escape(exhibit.reason)}.</p>'
    else:
        source, width = _inline(exhibit, folder)
        data = base64.b64encode(exhibit.csv.encode()).decode()
        body = (
            f'<p class="caption">{escape(exhibit.caption)}</p><div class="paper">'
            f'<img src="{source}" width="{width}" alt="{escape(exhibit.title)}"></div>'
            f'<p class="data"><a download="{exhibit.name}.csv" href="data:text/csv;base64,{data}">data as CSV</a></p>'
        )
    return f'<section id="{exhibit.name}">{head}{body}</section>\n'


def _inline(exhibit: Exhibit, folder: Path) -> tuple[str, int]:
    """The figure as a data address, and the width in which it is shown."""
    assert exhibit.figure is not None
    width = exhibit.figure.get_figwidth() * DPI
    if exhibit.is_chart:
        content, kind, width = (folder / f"{exhibit.name}.svg").read_bytes(), "svg+xml", 0.85 * width
    else:
        content, kind, width = (folder / f"{exhibit.name}.png").read_bytes(), "png", 0.67 * width
        if len(content) > HEAVY:
            light = io.BytesIO()
            Image.open(io.BytesIO(content)).convert("RGB").quantize(256).save(light, "PNG", optimize=True)
            content = light.getvalue()
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}", round(width)


def _tables(scores: Scores, rows: list[Row], folder: Path, tail: str) -> str:
    """The tables of a data set, on the page and as files in Markdown, LaTeX and CSV."""
    here = [row for row in rows if place(row) == scores.data and row["metric"] in scores.columns]
    found = summary(here, ("data", "size", "method", "setting"))
    names = charts.main_metrics(scores)
    names = [
        *names,
        *(n for n in ("elbo", "distortion", "rate", "active_units") if n in scores.columns and n not in names),
    ]
    made = {
        "overview": (wide(found, names), ["method", "setting", "n", *names], "Medians with quartiles, by setting."),
        "selection": (scores.selection(), ["rule", "picks", *scores.supervised], "What a rule that knows no factor picks, "
                      "and the rank of that run by each metric."),
        "summary": (found, ["method", "setting", "metric", "estimator", *PARTS], "Every number: median, quartiles, best, n."),
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for name, (content, columns, caption) in made.items():
        if not content or (name == "selection" and not scores.supervised):
            continue
        texts = {"md": markdown(content, columns), "tex": latex(content, columns), "csv": as_csv(content, columns)}
        for suffix, text in texts.items():
            (folder / f"{name}{tail}.{suffix}").write_text(text, encoding="utf-8")
        sources = "".join(
            f"<details><summary>{label}</summary><pre><code>{escape(texts[suffix])}</code></pre></details>"
            for suffix, label in (("md", "Markdown"), ("tex", "LaTeX"))
        )
        shown = _html(content, columns)
        shown = f"<details><summary>show</summary>{shown}</details>" if name == "summary" else shown
        parts.append(f'<h3>{name.capitalize()}</h3><p class="caption">{caption}</p>{shown}{sources}')
    lost = "".join(f'<p class="absent">Left out: {escape(reason)}.</p>' for reason in scores.left_out)
    return f'<section id="tables{tail}"><h2>Tables</h2>{"".join(parts)}{lost}</section>\n'


def _html(rows: list[Row], columns: list[str]) -> str:
    head = "".join(f"<th scope='col'>{escape(column)}</th>" for column in columns)
    lines = ("".join(f"<td>{escape(digits(row.get(column)))}</td>" for column in columns) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<div class='wide'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _page(
    study: Study, folder: Path, rows: list[Row], sets: list[str], body: str, contents: list[tuple[str, str]]
) -> str:
    style = (files("elboroom.report") / "report.css").read_text(encoding="utf-8")
    own = (files("elboroom.report") / "study.css").read_text(encoding="utf-8")
    entries = Index(folder).read()
    failed = {name: entry.told["error"] for name, entry in entries.items() if entry.state == "failed"}
    runs, methods = {row["run"] for row in rows}, {row["method"] for row in rows}
    seeds = {row["seed"] for row in rows}
    facts = [
        f"{len(runs):,} runs",
        f"{len(methods)} methods",
        f"{len(seeds)} seeds",
        ", ".join(Path(d).name for d in sets),
    ]
    facts += [f"{len(failed)} failed"] if failed else []
    links = "".join(f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title in contents)
    lost = "".join(f"<li><code>{escape(name)}</code> {escape(error)}</li>" for name, error in failed.items())
    lost = f'<section id="failed"><h2>Failed runs</h2><ul>{lost}</ul></section>' if failed else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{escape(study.name)}</title>
<style>{style}{own}</style>
</head>
<body>
<header>
<h1>{escape(study.name)} <span>a study</span></h1>
<ul class="facts">{"".join(f"<li>{escape(fact)}</li>" for fact in facts)}</ul>
<nav aria-label="Contents"><ul>{links}</ul></nav>
</header>
<main>
{body}{lost}
</main>
<footer>elboroom {escape(version("elboroom"))}</footer>
</body>
</html>
"""
