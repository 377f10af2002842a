"""The table of a study: a row for each run and metric, with the estimator that made it; timings in a table of their own."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from elboroom.core import cells
from elboroom.core.calls import asked
from elboroom.core.problem import Problem, unknown
from elboroom.data.archives import archive
from elboroom.evaluate.disentanglement.udr import udr
from elboroom.evaluate.result import Result
from elboroom.methods import card
from elboroom.studies.engines.work import CODES, numbers_of, readable
from elboroom.studies.space import Cell, shown
from elboroom.studies.store.index import Entry, Index
from elboroom.studies.study import Study, axes
from elboroom.training.checkpoint import write

RESULTS, TIMINGS = "table", "timings"
ROWS = 1_000_000  # of an answer
TABLES = (
    "the tables are results (a row for each run and metric: run, method, setting, seed, metric, value, ...) and timings"
)
Row = dict[str, Any]

COLUMNS: dict[str, dict[str, str]] = {
    RESULTS: {
        "run": "VARCHAR", "method": "VARCHAR", "data": "VARCHAR", "size": "INTEGER", "setting": "VARCHAR",
        "strength": "DOUBLE", "seed": "BIGINT", "options": "VARCHAR", "metric": "VARCHAR", "value": "DOUBLE",
        "unit": "VARCHAR", "estimator": "VARCHAR", "settings": "VARCHAR", "error": "DOUBLE",
        "importance_noise": "DOUBLE", "effective_samples": "DOUBLE", "low": "DOUBLE", "high": "DOUBLE", "reason": "VARCHAR",
    },
    TIMINGS: {
        "run": "VARCHAR", "state": "VARCHAR", "engine": "VARCHAR", "host": "VARCHAR", "train": "DOUBLE",
        "measure": "DOUBLE", "from": "BIGINT", "to": "BIGINT", "error": "VARCHAR",
    },
}  # fmt: skip


def finished(folder: Path, entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """The entries of runs that are done and still there."""
    return {
        name: entry for name, entry in entries.items() if entry.state == "done" and readable(folder / "runs" / name)
    }


def planned(folder: Path, study: Study, entries: Mapping[str, Entry]) -> list[Cell]:
    """The cells of a study, in the order of its file; those of a search in the order in which they were tried."""
    return [entry.cell for entry in entries.values()] if study.search else study.cells()


@asked
def results(folder: Path) -> list[Row]:
    """Every number of every finished run: the same rows in the same order, whatever engine did the runs, and when."""
    study, entries = Study.read(folder), Index(folder).read()
    cells, done = planned(folder, study, entries), finished(folder, entries)
    named, rows = axes(cells), list[Row]()
    agreed = agreement(folder, [cell for cell in cells if cell.name in done])
    for cell in cells:
        if cell.name in done:
            names = named[cell.method]
            numbers = [cell.options.get(name) for name in names]
            head = {
                "run": cell.name,
                "method": cell.method,
                "data": cell.data,
                "size": cell.size,
                "setting": ", ".join(f"{name} {shown(x)}" for name, x in zip(names, numbers, strict=True)),
                "strength": _strength(cell, names),
                "seed": cell.seed,
                "options": json.dumps(cell.options, sort_keys=True),
            }
            kept = numbers_of(folder / "runs" / cell.name)
            found = {name: Result.from_json(name, entry) for name, entry in kept.items() if name != "run"}
            found |= {"udr": agreed[cell.name]} if cell.name in agreed else {}
            rows += [head | _number(name, found[name]) for name in sorted(found)]
    return rows


def _strength(cell: Cell, names: Sequence[str]) -> float | None:
    """The first number among the options that tell settings apart, those of the method itself before all others."""
    own = {option.name for option in card(cell.method).options}
    found = [cell.options.get(name) for name in sorted(names, key=lambda name: name not in own)]
    return next((float(x) for x in found if isinstance(x, int | float) and not isinstance(x, bool)), None)


def _number(metric: str, result: Result) -> Row:
    span, effective = result.interval or {}, result.parts.get("effective_samples")
    return {
        "metric": metric,
        "value": result.value,
        "unit": result.unit,
        "estimator": result.estimator,
        "settings": json.dumps(result.settings, sort_keys=True),
        "error": result.errors.get("sampling"),
        "importance_noise": result.errors.get("importance_noise"),  # of IW-K, whose weights are few
        "effective_samples": effective if isinstance(effective, float) else None,
        "low": span.get("low"),
        "high": span.get("high"),
        "reason": result.reason,
    }


def agreement(folder: Path, cells: Sequence[Cell]) -> dict[str, Result]:
    """UDR of the runs of each setting, from the codes that they kept."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        if (folder / "runs" / cell.name / CODES).exists():
            groups.setdefault(cell.setting, []).append(cell)
    found: dict[str, Result] = {}
    with threadpool_limits(1):  # so that a table has the same bytes on any number of threads
        for group in (group for group in groups.values() if len(group) > 1):
            try:
                scores = udr([_codes(folder / "runs" / cell.name / CODES) for cell in group])
            except Problem:  # some of them were measured otherwise or are damaged, and are to be measured again
                continue
            settings = {name: value for name, value in scores.settings.items() if name != "live"}
            for cell, result in zip(group, scores.results, strict=True):
                found[cell.name] = replace(result, settings=settings)
    return found


def _codes(path: Path) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """The codes that a run kept and the rate of each dimension, (n, J) and (J,)."""
    with archive(path) as file:
        codes, rates = file["codes"], file["rates"]
    numbers = all(array.dtype.kind == "f" and np.isfinite(array).all() for array in (codes, rates))
    if not numbers or codes.ndim != 2 or rates.shape != codes.shape[1:]:
        raise Problem(f"{path} has no codes")
    return codes, rates


def timings(folder: Path) -> list[Row]:
    """How long every run took, where, and what became of those that failed."""
    rows = []
    for name, entry in Index(folder).read().items():
        told = entry.told
        row = {"run": name, "state": entry.state, "engine": told.get("engine", ""), "host": told.get("host", "")}
        row |= {key: told.get("seconds", {}).get(key) for key in ("train", "measure")}
        rows.append(row | {key: told.get(key) for key in ("from", "to", "error")})
    return rows


def write_tables(folder: Path) -> None:
    """Writes table.csv, table.parquet, timings.csv and timings.parquet."""
    for name, rows in ((RESULTS, results(folder)), (TIMINGS, timings(folder))):
        write(folder / f"{name}.csv", as_csv(rows, list(COLUMNS[name])).encode())
        part = folder / f".{name}.parquet"
        try:
            with _connected() as database:
                database.execute(f"COPY ({_reads(folder, name)}) TO '{_quoted(part)}' (FORMAT parquet)")
            write(folder / f"{name}.parquet", part.read_bytes())
        except duckdb.Error as error:
            raise Problem(f"cannot write {folder / name}.parquet: {' '.join(str(error).split())}") from None
        finally:
            part.unlink(missing_ok=True)


def as_csv(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Rows as CSV; a float is written so that it reads back as itself."""
    return cells.as_csv([columns, *([row.get(key) for key in columns] for row in rows)], "\n").decode()


@asked
def query(folder: Path, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The answer to a question in SQL; the tables are `results` and `timings`."""
    rows = {RESULTS: results(folder), TIMINGS: timings(folder)}
    if not rows[RESULTS]:
        raise Problem(f"no run of {folder} is finished; run: elbo study run {folder}")
    known = sorted({row["metric"] for row in rows[RESULTS]})
    for name in asked_for(sql):
        if name not in known:
            raise unknown("metric", name, known, "this study")
    with _connected() as database, tempfile.TemporaryDirectory() as made:
        for name, table in ((RESULTS, "results"), (TIMINGS, "timings")):
            write(Path(made) / f"{name}.csv", as_csv(rows[name], list(COLUMNS[name])).encode())
            database.execute(f"CREATE TABLE {table} AS {_reads(Path(made), name)}")
        database.execute("SET enable_external_access = false")  # a question reads the two tables and nothing else
        try:
            answer = database.execute(sql)
            columns = [column[0] for column in answer.description or ()] if answer is not None else []
            found = answer.fetchmany(ROWS + 1) if columns else []
        except (duckdb.Error, UnicodeError, RuntimeError) as error:
            raise Problem(f"the query failed: {_said(error)}; {TABLES}") from None
        if not columns:
            raise Problem("the query has no answer; ask with SELECT")
        if len(found) > ROWS:
            raise Problem(f"the answer has more than {ROWS:,} rows; add LIMIT")
        return columns, found


def asked_for(sql: str) -> list[str]:
    """The metrics that a query names, as in metric = 'mig' or metric IN ('mig', 'sap')."""
    lists = re.findall(r"\bmetric\s*(?:=|==|in\s*\()\s*((?:'[^']*'\s*,?\s*)+)", sql, re.IGNORECASE)
    return [name for some in lists for name in re.findall(r"'([^']*)'", some)]


def _said(error: Exception) -> str:
    """The first line of an error of the database, without the place that it draws below."""
    return " ".join(str(error).split("LINE ")[0].split())


def _connected() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1, "memory_limit": "4GB", "temp_directory": ""})


def _reads(folder: Path, name: str) -> str:
    kinds = ", ".join(f"'{column}': '{kind}'" for column, kind in COLUMNS[name].items())
    return (
        f"SELECT * FROM read_csv('{_quoted(folder / f'{name}.csv')}', columns = {{{kinds}}}, header = true, "
        "delim = ',', quote = '\"', escape = '\"', nullstr = '', auto_detect = false)"
    )


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def values(rows: Sequence[Row], metric: str) -> Iterator[float]:
    """The values of one metric."""
    return (row["value"] for row in rows if row["metric"] == metric and row["value"] is not None)
