"""The page of a study, and every figure and table beside it as files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from elboroom.core.calls import asked
from elboroom.core.problem import Problem
from elboroom.report.frame import Framed, framed
from elboroom.report.page import page_at, write_page
from elboroom.studies.analysis.charts import main_metrics
from elboroom.studies.analysis.exhibits import exhibits
from elboroom.studies.analysis.scores import Scores
from elboroom.studies.analysis.summary import PARTS, digits, latex, markdown, place, summary, wide
from elboroom.studies.analysis.table import Row, as_csv, results
from elboroom.studies.store.index import Index
from elboroom.studies.study import Study


@dataclass(frozen=True)
class Table:
    """A table, as it is shown and as it is copied."""

    name: str
    caption: str
    columns: list[str]
    rows: list[list[str]]
    markdown: str
    latex: str
    is_long: bool  # so shown when asked for


@dataclass(frozen=True)
class Part:
    """What a page shows of one data set."""

    name: str
    tail: str  # of the names of its figures, where there are several data sets
    exhibits: list[Framed]
    tables: list[Table]
    left_out: tuple[str, ...]


@asked
def write_report(folder: str | Path, out: str | Path | None = None, score: str | None = None, n: int = 2000) -> Path:
    """Writes the report of a study, by default as report.html in its folder, with figures/ and tables/ beside it.

    score: the metric by which runs are called best. n: how many codes and samples the figures of the best run show.
    """
    folder = Path(folder)
    path = page_at(out, folder)
    study, rows = Study.read(folder), results(folder)
    sets = list(dict.fromkeys(map(place, rows)))
    if not sets:
        raise Problem(f"no run of {folder} is finished; run: elbo study run {folder}")
    parts = []
    for data in sets:
        scores, tail, shown = Scores.of(rows, data), _tail(data, sets), []
        for exhibit in exhibits(scores, folder, tail, score, n):
            exhibit.save(path.parent / "figures")
            shown.append(framed(exhibit, path.parent / "figures", scale=0.85))
        tables = list(_tables(scores, rows, path.parent / "tables", tail))
        parts.append(Part(Path(data).name, tail, shown, tables, scores.left_out))
    entries = Index(folder).read()
    failed = {name: entry.told["error"] for name, entry in entries.items() if entry.state == "failed"}
    counts = {kind: len({row[kind] for row in rows}) for kind in ("run", "method", "seed")}
    facts = [f"{count:,} {kind}{'s' * (count != 1)}" for kind, count in counts.items()]
    facts += [", ".join(part.name for part in parts)]
    facts += [f"{len(failed)} failed"] if failed else []
    title = subject(rows)
    return write_page(
        path,
        "study.html",
        name=study.name,
        title=title,
        facts=facts,
        parts=parts,
        failed=failed,
        version=version("elboroom"),
    )


def subject(rows: Sequence[Row]) -> str:
    """What was studied: the methods, the data, and what differs between settings: `vae and beta-vae on mnist, by beta`."""
    methods, places = (list(dict.fromkeys(row[key] for row in rows)) for key in ("method", "data"))
    named = " and ".join(methods) if len(methods) <= 3 else f"{len(methods)} methods"
    data = " and ".join(Path(place).name for place in places) if len(places) <= 3 else f"{len(places)} data sets"
    settings = dict.fromkeys(row["setting"] for row in rows)
    options = dict.fromkeys(part.rpartition(" ")[0] for some in settings for part in some.split(", ") if some)
    by = f", by {' and '.join(name.replace('_', ' ') for name in options)}" if options else ""
    return f"{named} on {data}{by}"


def _tail(data: str, sets: list[str]) -> str:
    """What tells the figures of a data set apart where there are several."""
    stems = ["".join(c if c.isalnum() else "-" for c in Path(one).stem) for one in sets]
    at = sets.index(data)
    number = f"-{stems[: at + 1].count(stems[at])}" if stems.count(stems[at]) > 1 else ""
    return "" if len(sets) == 1 else f"-{stems[at]}{number}"


def _tables(scores: Scores, rows: list[Row], folder: Path, tail: str) -> Iterator[Table]:
    """The tables of a data set, written as Markdown, LaTeX and CSV too."""
    here = [row for row in rows if place(row) == scores.data and row["metric"] in scores.columns]
    found = summary(here, ("data", "size", "method", "setting"))
    more = [name for name in ("elbo", "distortion", "rate", "active_units") if name in scores.columns]
    names = list(dict.fromkeys([*main_metrics(scores), *more]))
    made = {
        "overview": (wide(found, names), ["method", "setting", "n", *names], "Medians with quartiles, by setting."),
        "selection": (scores.selection() if scores.supervised else [], ["rule", "picks", *scores.supervised],
                      "The run that a rule without factors selects, and the rank of that run by each metric."),
        "summary": (found, ["method", "setting", "metric", "estimator", *PARTS], "Every number: median, quartiles, best, n."),
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    for name, (content, columns, caption) in made.items():
        if content:
            texts = {"md": markdown(content, columns), "tex": latex(content, columns), "csv": as_csv(content, columns)}
            for suffix, text in texts.items():
                (folder / f"{name}{tail}.{suffix}").write_text(text, encoding="utf-8")
            cells = [[digits(row.get(column)) for column in columns] for row in content]
            yield Table(name, caption, columns, cells, texts["md"], texts["tex"], is_long=name == "summary")
