"""The blind sheet: outputs of several runs, shuffled, for people to judge; read back with agreement and intervals."""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elboroom.core.cells import as_csv
from elboroom.core.files import write as whole
from elboroom.core.files import write_json
from elboroom.core.problem import Problem
from elboroom.evaluate.result import Result

JUDGED = ("fluency", "meaning", "style")
COLUMNS = ("id", "input", "style wanted", "output", *JUDGED)
LOW, HIGH = 1, 5  # of a judgement
DRAWS = 2000  # of the bootstrap
Floats = NDArray[np.float64]


def write(
    path: Path, inputs: Sequence[str], wanted: Sequence[str], outputs: Mapping[str, Sequence[str]], seed: int = 0
) -> Path:
    """Writes the sheet, and beside it the key that says whose each output is; returns where the key is."""
    if path.suffix != ".csv":
        raise Problem(f"--sheet {path}: must be a .csv file")
    rows = [(name, i) for name in outputs for i in range(len(inputs))]
    order = np.random.default_rng(seed).permutation(len(rows))
    mark = hashlib.sha256(repr((list(outputs.items()), list(inputs), seed)).encode()).hexdigest()[:8]
    key = {}
    table: list[tuple[str, ...]] = [COLUMNS]
    for number, place in enumerate(order.tolist(), 1):
        name, i = rows[place]
        key[f"{mark}-{number}"] = name
        table.append((f"{mark}-{number}", inputs[i], wanted[i], outputs[name][i], *[""] * len(JUDGED)))
    whole(path, as_csv(table))
    beside = path.with_suffix(".key.json")
    write_json(beside, key)
    return beside


def score(paths: Sequence[Path]) -> dict[str, Result]:
    """What people said of each run, `JUDGEMENT RUN`: the mean over outputs, a 95 % interval, and the agreement of raters.

    paths: the sheets as they came back, one a rater.
    """
    sheets = [_read(path) for path in paths]
    ids = sorted(sheets[0])
    for path, sheet in zip(paths, sheets, strict=True):
        if sorted(sheet) != ids:
            raise Problem(f"{path} is another sheet than {paths[0]}: its rows have other ids")
    key, results = _key(paths[0], ids), {}
    for place, what in enumerate(JUDGED):
        said = np.array([[sheet[i][place] for i in ids] for sheet in sheets])  # (raters, outputs)
        if np.isnan(said).all():
            continue
        agreed = alpha(said)
        for name in dict.fromkeys(key.values()):
            mine = said[:, [key[i] == name for i in ids]]
            results[f"{what} {name}"] = _one(what, mine, agreed, len(sheets))
    if not results:
        raise Problem(f"{paths[0]} has no judgement yet: fill in {', '.join(JUDGED)} with numbers from {LOW} to {HIGH}")
    return results


def _one(what: str, said: Floats, agreed: float | None, raters: int) -> Result:
    counted = (~np.isnan(said)).sum(0)
    each = np.nansum(said, 0)[counted > 0] / counted[counted > 0]
    how = f"mean of {raters} rater{'s' * (raters != 1)}, {LOW} to {HIGH}"
    if not len(each):
        return Result(None, how, reason="nobody judged it")
    drawn = np.random.default_rng(0).choice(each, (DRAWS, len(each))).mean(1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    interval = {"low": float(low), "high": float(high), "level": 0.95, "method": "bootstrap over outputs"}
    parts: dict[str, Any] = {"judged": len(each)} | ({} if agreed is None else {"alpha": agreed})
    how += "" if agreed is None else f"; Krippendorff's alpha of {what} {agreed:.2f}"
    return Result(float(each.mean()), how, f"of {HIGH}", {"raters": raters}, interval=interval, parts=parts)


def alpha(said: Floats) -> float | None:
    """Krippendorff's alpha for intervals, 1 - observed / expected squared difference; None without two judgements of one thing.

    said: a row a rater, nan where nothing was said, (raters, things).
    """
    both = said[:, (~np.isnan(said)).sum(0) >= 2]
    if not both.size:
        return None
    pool = both[~np.isnan(both)]
    if np.ptp(pool) == 0:
        return 1.0
    return 1 - sum(_apart(column[~np.isnan(column)]) for column in both.T) / _apart(pool)


def _apart(values: Floats) -> float:
    """The squared differences of all pairs, sum_ij (x_i - x_j)^2 / (n - 1) = 2 n sum_i (x_i - mean)^2 / (n - 1)."""
    return 2 * len(values) * float(values.var(ddof=1))


def _read(path: Path) -> dict[str, list[float]]:
    """The judgements of one sheet by id, nan where a cell is empty."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise Problem(f"--score {path}: cannot be read ({error})") from error
    if not rows or not {"id", *JUDGED} <= rows[0].keys():
        raise Problem(f"--score {path}: is no sheet; it needs the columns {', '.join(COLUMNS)}")
    found = {}
    for number, row in enumerate(rows, 2):
        found[row["id"]] = [_number(row[what] or "", f"line {number} of {path}, {what}") for what in JUDGED]
    return found


def _number(cell: str, where: str) -> float:
    if not cell.strip():
        return math.nan
    try:
        value = float(cell.replace(",", "."))
    except ValueError:
        value = math.nan
    if not LOW <= value <= HIGH:
        raise Problem(f"{where}: '{cell}' is no number from {LOW} to {HIGH}")
    return value


def _key(path: Path, ids: Sequence[str]) -> dict[str, str]:
    """Whose each output is: the key in the folder of a sheet that has these ids."""
    for beside in sorted(path.resolve().parent.glob("*.key.json")):
        try:
            key = json.loads(beside.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(key, dict) and set(ids) <= key.keys():
            return {i: str(key[i]) for i in ids}
    raise Problem(f"there is no .key.json beside {path} that says whose outputs these are")
