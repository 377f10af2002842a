"""Summaries of a table: median, quartiles, best and n of each setting, never of two estimators in one column."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from elboroom.core.calls import asked
from elboroom.core.problem import Problem, unknown
from elboroom.evaluate.registry import goal
from elboroom.studies.analysis.table import Row

# What a setting says of the run or of the data, not of how the number was made.
RESULTS = {"data", "J", "of", "active", "live", "runs", "factors", "tau", "tokens", "words"}
NEEDED = {"data", "size", "metric", "value", "unit", "estimator", "settings"}  # of a row
PARTS = ("median", "q25", "q75", "best", "n")


def made_by(row: Row) -> tuple[str, str]:
    """How a number was made: its estimator, and the settings that it depends on."""
    settings = json.loads(row["settings"] or "{}")
    return row["estimator"] or "", json.dumps({k: v for k, v in settings.items() if k not in RESULTS}, sort_keys=True)


def place(row: Row) -> str:
    """Where numbers compare: a data set, at one size of its images."""
    return str(row["data"]) if row.get("size") is None else f"{row['data']} at {row['size']}"


def mixed(rows: Iterable[Row]) -> dict[tuple[str, str], str]:
    """By place and metric, why its values do not compare, where two estimators have made them."""
    makers: dict[tuple[str, str], dict[tuple[str, str], None]] = {}
    for row in rows:
        if row["value"] is not None:
            makers.setdefault((place(row), row["metric"]), {})[made_by(row)] = None
    return {
        (where, metric): f"{metric} was measured in {len(found)} ways, which do not compare: {_apart(list(found))}"
        for (where, metric), found in makers.items()
        if len(found) > 1
    }


def unmixed(rows: Iterable[Row], estimator: str | None = None) -> list[Row]:
    """The rows that have a value, of the estimator asked for; refuses a metric that two estimators have made."""
    kept = [row for row in rows if row["value"] is not None]
    if estimator is not None:
        known = {str(row["estimator"]) for row in kept}
        if estimator not in known:
            raise unknown("estimator", estimator, known)
        kept = [row for row in kept if row["estimator"] == estimator]
    for reason in mixed(kept).values():
        raise Problem(f"{reason}; choose one with --estimator NAME, or measure all runs the same way")
    return kept


def _apart(ways: Sequence[tuple[str, str]]) -> str:
    """What tells ways of measuring apart: the estimators, or else the settings that differ."""
    if len({name for name, _ in ways}) > 1:
        return " and ".join(dict.fromkeys(name for name, _ in ways))
    settings = [json.loads(text) for _, text in ways]
    differ = [key for key in {k: 0 for s in settings for k in s} if len({str(s.get(key)) for s in settings}) > 1]
    return " and ".join(", ".join(f"{key} {s.get(key)}" for key in differ) for s in settings)


def best_of(metric: str) -> Callable[[Sequence[float]], float] | None:
    """max or min, as the metric goes; None where neither is better, or nothing says which."""
    return {"max": max, "min": min, None: None}[goal(metric)]


@asked
def summary(
    rows: Iterable[Row], by: Sequence[str] = ("data", "size", "method", "setting"), estimator: str | None = None
) -> list[Row]:
    """Median, quartiles, best and n of every metric in every group."""
    rows = list(rows)
    if not all(isinstance(row, Mapping) and row.keys() >= NEEDED for row in rows):
        raise Problem("rows must be those that elboroom.studies.results gives, or some of them")
    groups: dict[tuple[Any, ...], list[Row]] = {}
    kept = unmixed(rows, estimator)
    for column in by:
        if kept and column not in kept[0]:
            raise unknown("column", column, kept[0])
    grouped = [column for column in by if column in ("data", "size")]
    if len({place(row) for row in kept}) > len({tuple(row[column] for column in grouped) for row in kept}):
        raise Problem("values on different data sets or sizes cannot be compared; keep data and size in --by")
    for row in kept:
        groups.setdefault((*(row[key] for key in by), row["metric"]), []).append(row)
    found = []
    for (*key, metric), group in groups.items():
        values = [float(row["value"]) for row in group]
        q25, median, q75 = (float(q) for q in np.quantile(values, (0.25, 0.5, 0.75)))
        pick = best_of(metric)
        head = dict(zip(by, key, strict=True)) | {"metric": metric, "estimator": group[0]["estimator"]}
        head |= {"median": median, "q25": q25, "q75": q75, "best": None if pick is None else pick(values)}
        found.append(head | {"n": len(values), "unit": group[0]["unit"]})
    return found


def digits(value: Any) -> str:
    """A number of a table: whole ones as they are, three decimals below ten, two below a thousand, three digits if small."""
    if isinstance(value, Decimal):
        value = float(value)
    if not isinstance(value, float | int) or isinstance(value, bool):
        return "" if value is None else str(value)
    if float(value).is_integer() or abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) < 0.01:
        return f"{value:.3g}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.2f}"


def markdown(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Rows as a table in Markdown."""
    lines = [list(columns), ["---"] * len(columns), *([digits(row.get(key)) for key in columns] for row in rows)]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def latex(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Rows as a tabular in LaTeX, for booktabs."""
    numbers = {key for key in columns if any(isinstance(row.get(key), float | int) for row in rows)}
    lines = [" & ".join(map(_tex, columns)), *(" & ".join(_tex(digits(row.get(k))) for k in columns) for row in rows)]
    body = "".join(f"{line} \\\\\n" for line in lines[1:])
    kinds = "".join("r" if key in numbers else "l" for key in columns)
    return (
        f"\\begin{{tabular}}{{{kinds}}}\n\\toprule\n{lines[0]} \\\\\n\\midrule\n{body}\\bottomrule\n\\end{{tabular}}\n"
    )


def _tex(text: str) -> str:
    escapes = {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "_": r"\_",
        "#": r"\#",
        "$": r"\$",
        "{": r"\{",
        "}": r"\}",
    }
    return "".join(escapes.get(letter, letter) for letter in text)


def wide(found: Sequence[Row], metrics: Sequence[str], by: Sequence[str] = ("method", "setting")) -> list[Row]:
    """One row a group, one column a metric: `median [q25, q75]`, with its n where some runs have no value."""
    most: dict[tuple[Any, ...], int] = {}
    for one in found:
        if one["metric"] in metrics:
            key = tuple(one[key] for key in by)
            most[key] = max(most.get(key, 0), one["n"])
    rows: dict[tuple[Any, ...], Row] = {}
    for one in found:
        if one["metric"] in metrics:
            n = most[tuple(one[key] for key in by)]
            row = rows.setdefault(tuple(one[key] for key in by), {key: one[key] for key in by} | {"n": n})
            few = f" (n {one['n']})" if one["n"] < n else ""
            row[one["metric"]] = f"{digits(one['median'])} [{digits(one['q25'])}, {digits(one['q75'])}]{few}"
    return list(rows.values())
