"""elbo study presets, plan, run, status, table, query, report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from elboroom.commands.output import Json, Logger, print_json, print_table, say
from elboroom.core.problem import Problem, unknown

study_app = typer.Typer(
    help="Studies: many runs, one table, one report.", add_completion=False, no_args_is_help=True, rich_markup_mode=None
)  # fmt: skip

What = Annotated[str, typer.Argument(metavar="STUDY", help="a .toml file, a preset, or the folder of a study")]
Where = Annotated[Path, typer.Argument(metavar="DIR", help="the folder of a study")]
Out = Annotated[Path | None, typer.Option("--out", help="its folder", show_default="studies/NAME")]
Steps = Annotated[
    int | None, typer.Option("--steps", help="number of steps; runs of other lengths are scaled in proportion")
]
Seeds = Annotated[int | None, typer.Option("--seeds", help="number of seeds of every setting")]
Workers = Annotated[int | None, typer.Option("--workers", help="runs at a time", show_default="by cores")]
Yes = Annotated[bool, typer.Option("--yes", help="do not ask before many runs")]


@study_app.command("presets")
def presets(json: Json = False) -> None:
    """List the built-in studies."""
    from elboroom.studies.along import presets as there

    print_json(there()) if json else print_table(["study", "what it is"], [[k, v] for k, v in there().items()])


@study_app.command("plan")
def plan(what: What, out: Out = None, steps: Steps = None, seeds: Seeds = None, workers: Workers = None, yes: Yes = False,
         json: Json = False) -> None:  # fmt: skip
    """Show how many runs a study has, and what time (measured on three short runs) and disk space they need."""
    from elboroom.studies.engines.pool import Pool
    from elboroom.studies.plan import estimate, validate
    from elboroom.studies.progress import duration
    from elboroom.studies.run import place, threads_of
    from elboroom.studies.store.disk import bytes_shown
    from elboroom.studies.study import Study

    study = Study.read(what).scaled(steps, seeds)
    _ask(study, yes)
    validate(study)
    found = estimate(study, place(study, what, out), Pool(workers, threads_of(study)).width)
    if json:
        told = {"runs": found.runs, "seconds": found.seconds, "workers": found.workers, "disk": found.disk}
        return print_json(told | {"free": found.free, "probes": [vars(probe) for probe in found.probes]})
    rows: list[list[object]] = [
        ["runs", f"{found.runs:,}"],
        ["time of one worker", f"about {duration(found.seconds)}"],
        [f"on {found.workers} workers", f"about {duration(found.seconds / found.workers)}"],
        ["disk", f"about {bytes_shown(found.disk)}; {bytes_shown(found.free)} are free"],
        ["to measure a run", duration(found.probes[0].measure)],
    ]
    rows += [[f"a step of {p.method}", f"{1000 * p.step:.1f} ms"] for p in found.probes]
    print_table(["", study.name], rows)


def _ask(study: Any, yes: bool) -> None:
    """A study of very many runs is begun on purpose."""
    from elboroom.studies.plan import MANY

    if study.count > MANY and not yes:
        if not sys.stdin.isatty():
            raise Problem(f"{study.where} has {study.count:,} runs; use --yes to run them all")
        typer.confirm(f"{study.where} has {study.count:,} runs. Continue?", abort=True, err=True)


@study_app.command("run")
def run(
    what: What,
    out: Out = None,
    steps: Steps = None,
    seeds: Seeds = None,
    engine: Annotated[str, typer.Option("--engine", help="pool (this machine) or ray")] = "pool",
    workers: Workers = None,
    address: Annotated[
        str | None, typer.Option("--address", help="address of a Ray cluster: HOST:PORT or auto")
    ] = None,
    gpus: Annotated[float, typer.Option("--gpus", help="GPUs per run on Ray; may be a fraction")] = 0.0,
    to: Annotated[str | None, typer.Option("--to", help="an fsspec address to copy finished runs to")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="try failed runs again")] = False,
    search: Annotated[str | None, typer.Option("--search", help="optuna: search the ranges of the study")] = None,
    metric: Annotated[str | None, typer.Option("--metric", help="the metric that a search optimises")] = None,
    goal: Annotated[str | None, typer.Option("--goal", help="max or min")] = None,
    trials: Annotated[int | None, typer.Option("--trials", help="number of settings that a search tries")] = None,
    logger: Logger = "",
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Run what is not done of a study; after an interruption, run it again to continue."""
    from elboroom.studies.run import place, run_study
    from elboroom.studies.study import Study

    study = Study.read(what).scaled(steps, seeds)
    if search not in (None, "optuna"):
        raise unknown("search", search, ["optuna"])
    if (search or study.search) and (search or metric or goal or trials):
        study = study.searching(metric=metric, goal=goal, trials=trials)
    elif metric or goal or trials:
        raise Problem("--metric, --goal and --trials need --search optuna")
    if address is not None and engine != "ray":
        raise Problem("--address needs --engine ray")
    _ask(study, yes)
    folder = place(study, what, out)
    counts = run_study(
        study, folder, engine, workers=workers, address=address, gpus=gpus, to=to, retry=retry, logger=logger, yes=True
    )  # fmt: skip
    if json:
        print_json({"folder": str(folder), "runs": study.count, "done": counts["done"], "failed": counts["failed"]})
    else:
        say(f"{counts['done']:,} of {study.count:,} runs done: {folder}/table.csv")
        if counts["failed"]:
            say(f"{counts['failed']:,} failed: elbo study status {folder} shows the errors, --retry runs them again")
        else:
            say(f"next: elbo study table {folder}, elbo study report {folder}")
    if counts["failed"]:
        raise typer.Exit(1)


@study_app.command("status")
def status(folder: Where, json: Json = False) -> None:
    """Show what is done, running, failed and left, and the errors of failed runs."""
    from elboroom.studies.driver import whole
    from elboroom.studies.store.index import Index, driven
    from elboroom.studies.study import Study

    study, entries, at_work = Study.read(folder), Index(folder).read(), driven(folder)
    done = whole(folder, entries, study.measure)
    failed = {name: entry.told.get("error", "") for name, entry in entries.items() if entry.state == "failed"}
    begun = [name for name, entry in entries.items() if name not in done and name not in failed]
    left = max(0, study.count - len(done) - len(failed) - len(begun))
    told = {"done": len(done), "running" if at_work else "cut off": len(begun), "failed": len(failed), "left": left}
    if json:
        return print_json(told | {"driven": at_work, "errors": failed})
    print_table(["runs", "count"], [[key, value] for key, value in told.items()], study.name)
    if failed:
        print_table(["failed", "why"], [[name, error] for name, error in failed.items()])


@study_app.command("table")
def table(
    folder: Where,
    by: Annotated[str, typer.Option("--by", help="columns to group by, comma-separated")] = "data,size,method,setting",
    metric: Annotated[str | None, typer.Option("--metric", help="names of metrics, comma-separated")] = None,
    estimator: Annotated[str | None, typer.Option("--estimator", help="which one, if a metric has several")] = None,
    format: Annotated[str, typer.Option("--format", help="text, markdown, latex or csv")] = "text",
    json: Json = False,
) -> None:  # fmt: skip
    """Print median, quartiles, best and n of every metric in every setting."""
    from elboroom.studies.analysis import summary
    from elboroom.studies.analysis.table import as_csv, results

    names = _words(metric) if metric else None
    rows = results(folder)
    known = sorted({row["metric"] for row in rows})
    for name in names or ():
        if name not in known:
            raise unknown("metric", name, known, "this table")
    groups = _words(by)
    if names is None and estimator is None:  # what was not asked for by name is left out where it does not compare
        lost = summary.mixed(rows)
        rows = [row for row in rows if (summary.place(row), row["metric"]) not in lost]
        for reason in lost.values():
            say(f"left out: {reason}; choose with --metric and --estimator")
    found = summary.summary([r for r in rows if names is None or r["metric"] in names], groups, estimator)
    columns = [*groups, "metric", "estimator", *summary.PARTS]
    for same in ("data", "size"):
        if same in columns and len({row.get(same) for row in found}) < 2:
            columns.remove(same)
    formats = {"markdown": summary.markdown, "latex": summary.latex, "csv": as_csv}
    if json:
        return print_json(found)
    if format in formats:
        return print(formats[format](found, columns), end="")
    if format != "text":
        raise unknown("format", format, ["text", *formats])
    print_table(columns, [[summary.digits(row[key]) for key in columns] for row in found])


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


@study_app.command("query")
def query(
    folder: Where,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="a query over the tables results and timings")],
    json: Json = False,
) -> None:
    """Query a study in SQL: SELECT method, median(value) FROM results WHERE metric = 'mig' GROUP BY method."""
    from elboroom.studies.analysis.summary import digits
    from elboroom.studies.analysis.table import query as ask
    from elboroom.studies.study import Study

    Study.read(folder)
    columns, rows = ask(folder, sql)
    if json:
        return print_json([dict(zip(columns, row, strict=True)) for row in rows])
    print_table(columns, [[digits(cell) for cell in row] for row in rows])


@study_app.command("report")
def report(
    folder: Where,
    out: Annotated[Path | None, typer.Option("--out", show_default="DIR/report.html")] = None,
    score: Annotated[str | None, typer.Option("--score", help="the metric that chooses the best runs")] = None,
    json: Json = False,
) -> None:
    """Write report.html: one file, with every figure and table of a study."""
    from elboroom.report.study import write_report

    path = write_report(folder, out, score)
    print_json({"out": str(path)}) if json else say(str(path))
