"""The page of a run: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import io
import shlex
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from PIL import Image
from pydantic import BaseModel

from elboroom.data.dataset import About
from elboroom.plots import Exhibit, gallery
from elboroom.plots.curves import series
from elboroom.plots.style import DPI
from elboroom.report import chart, numbers
from elboroom.runs.run import Run
from elboroom.training.spec import Spec

HEAVY = 200_000  # bytes above which a picture is kept in 256 colours


def write_report(run: Run, path: str | Path | None = None, n: int = 10_000) -> Path:
    """Writes the report of a run, by default as report.html in its folder, and its figures beside it in figures/.

    Numbers are those of metrics.json; where there are none, they are measured. n is how many codes and samples are drawn.
    """
    path = run.folder / "report.html" if path is None else Path(path)
    metrics = numbers.measured(run)
    shown = []
    for exhibit in gallery(run, n):
        exhibit.save(run.folder / "figures")
        shown.append(_exhibit(run, exhibit))
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(_page(run, metrics, "".join(shown)), encoding="utf-8")
    part.replace(path)
    return path


def _page(run: Run, metrics: Mapping[str, Any], figures: str) -> str:
    spec = run.spec
    name = f"{spec.title} on {Path(spec.about.name).name or spec.about.name}"
    style, script = (
        (files("elboroom.report") / f"report.{kind}").read_text(encoding="utf-8") for kind in ("css", "js")
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{escape(name)}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>{escape(spec.title)} <span>on {escape(Path(spec.about.name).name or spec.about.name)}</span></h1>
<p class="summary">{escape(_summary(spec))}</p>
<p class="formula"><code>{escape(spec.card.formula)}</code> <cite>{escape(spec.card.paper)}</cite></p>
<ul class="facts">{_facts(run)}</ul>
</header>
<main>
<section class="numbers" aria-label="Key numbers">{numbers.headline(metrics)}</section>
{figures}
<section id="numbers"><h2>All numbers</h2>
<p class="caption">Measured at weight one, whatever weights trained the model; in nats per example where the unit says nats.</p>
{numbers.table(metrics)}</section>
{_scores(metrics)}
<section id="specification"><h2>Specification</h2>
<p class="caption">What departs from its default is in bold.</p>{_specification(spec)}</section>
<section id="reproduce"><h2>How to reproduce</h2>{_reproduce(run)}</section>
</main>
<footer>elboroom {escape(spec.versions.get("elboroom", ""))}</footer>
<script>{script}</script>
</body>
</html>
"""


def _summary(spec: Spec) -> str:
    """What the method is, and what was chosen for this run."""
    chosen = " and ".join(f"{axis} {name}" for axis, name in spec.axes.items())
    return spec.card.summary + (f" Here with {chosen}." if chosen else "")


def _scores(metrics: Mapping[str, Any]) -> str:
    if not numbers.scores(metrics):
        return ""
    return f"""<section id="scores"><h2>Scores of the codes</h2>
<p class="caption">Each by a named protocol on the code table. Intervals, where measured, are of 95 % over evaluation samples;
training seeds spread scores further.</p>
{numbers.score_table(metrics)}</section>"""


def _facts(run: Run) -> str:
    spec, about = run.spec, run.spec.about
    facts = [
        f"{run.step:,} steps",
        f"batch {spec.fit.batch_size}",
        f"seed {spec.fit.seed}",
        f"{run.latent} latent dimension{'s' * (run.latent != 1)}",
        f"{run.parameters:,} parameters",
        f"{about.levels:,} kinds of token" if about.kind == "tokens" else _shape(about),
        f"{about.n:,} training examples",
        *([f"given {', '.join(run.given)}"] if run.given else []),
    ]
    return "".join(f"<li>{escape(fact)}</li>" for fact in facts)


def _shape(about: About) -> str:
    return f"{about.kind} {' × '.join(map(str, about.shape))}"  # noqa: RUF001


def _exhibit(run: Run, exhibit: Exhibit) -> str:
    head = f"<h2>{escape(exhibit.title)}</h2>"
    if exhibit.sentences:
        rows = "".join(f"<li>{'<br>'.join(map(escape, row))}</li>" for row in exhibit.sentences)
        body = f'<p class="caption">{escape(exhibit.caption)}</p><ol class="sentences">{rows}</ol>'
    elif exhibit.figure is None:
        body = f'<p class="absent">Not shown: {escape(exhibit.reason)}.</p>'
    elif exhibit.name == "curves":
        body = f'<p class="caption">{escape(exhibit.caption)}</p>{chart.interactive(series(run.log))}'
    else:
        source, width = _inline(run.folder / "figures", exhibit)
        body = (
            f'<p class="caption">{escape(exhibit.caption)}</p><div class="paper">'
            f'<img src="{source}" width="{width}" alt="{escape(exhibit.title)}"></div>'
        )
    return f'<section id="{exhibit.name}">{head}{body}</section>\n'


def _inline(folder: Path, exhibit: Exhibit) -> tuple[str, int]:
    """The figure as a data address, and the width in which it is shown."""
    assert exhibit.figure is not None
    width = round(exhibit.figure.get_figwidth() * DPI)
    if exhibit.chart:
        content, kind, width = (folder / f"{exhibit.name}.svg").read_bytes(), "svg+xml", round(width * 0.8)
    else:
        content, kind, width = (folder / f"{exhibit.name}.png").read_bytes(), "png", round(width / 1.5)
        if len(content) > HEAVY:
            light = io.BytesIO()
            Image.open(io.BytesIO(content)).convert("RGB").quantize(256).save(light, "PNG", optimize=True)
            content = light.getvalue()
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}", width


def _specification(spec: Spec) -> str:
    data = {
        "source": spec.data["source"],
        "size": spec.data["size"],
        "splits": ", ".join(f"{name} {count:,}" for name, count in spec.data["splits"].items()),
        "hash": spec.data["hash"],
    }
    method = {o.name: (spec.options[o.name], o.default_for(spec.about.kind), o.help) for o in spec.card.options}
    tables = [
        ("Method", method),
        ("Model", _fields(spec.model)),
        ("Training", _fields(spec.fit)),
        ("Data", {name: (value, value, "") for name, value in data.items() if value is not None}),
    ]
    return '<div class="specification">' + "".join(_options(head, rows) for head, rows in tables if rows) + "</div>"


def _fields(model: BaseModel) -> dict[str, tuple[Any, Any, str]]:
    fields = type(model).model_fields
    return {name: (value, fields[name].default, fields[name].description or "") for name, value in model}


def _options(head: str, rows: Mapping[str, tuple[Any, Any, str]]) -> str:
    lines = []
    for name, (value, default, meaning) in rows.items():
        shown = escape("—" if value in (None, "") else f"{value:g}" if isinstance(value, float) else str(value))
        strong = f"<strong>{shown}</strong>" if value != default else shown
        cells = (
            f"<td class='meant'>{strong}</td><td class='muted'>{escape(meaning)}</td>"
            if meaning
            else f"<td>{strong}</td>"
        )
        lines.append(f"<tr><th scope='row'>{escape(name.replace('_', ' '))}</th>{cells}</tr>")
    return f"<div><h3>{head}</h3><table>{''.join(lines)}</table></div>"


def _reproduce(run: Run) -> str:
    spec = run.spec
    lines = [spec.command]
    if spec.until > spec.fit.steps:
        folder = shlex.quote(run.folder.name)
        lines = [f"{spec.command} --out {folder}", f"elbo resume {folder} --steps {spec.until - spec.fit.steps}"]
    notes = [
        f"Seed {spec.fit.seed}, {spec.fit.threads} thread{'s' * (spec.fit.threads != 1)}: on the same processor with the "
        "same versions this gives the same weights, bit for bit.",
        "Versions: " + ", ".join(f"{name} {text}" for name, text in spec.versions.items()) + ".",
    ]
    if spec.own:
        notes.append(f"This run was handed its own {' and '.join(spec.own)}: hand the same in again from Python.")
    if spec.warm:
        notes.append(f"It started from the weights of {spec.warm}.")
    said = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"<pre><code>{escape(chr(10).join(lines))}</code></pre>{said}"
