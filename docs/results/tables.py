"""Tables of results: numbers of records, one row a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

PIXELS = 64 * 64
Record = dict[str, Any]
Records = dict[str, Record]

SCORES = {
    "beta-vae": "beta-VAE",
    "factor-vae": "FactorVAE",
    "mig": "MIG",
    "sap": "SAP",
    "dci": "DCI D",
    "completeness": "DCI C",
    "informativeness": "DCI I",
    "modularity": "modularity",
    "explicitness": "explicitness",
    "irs": "IRS",
}
OTHERS = {
    "infom": "InfoM",
    "infoc": "InfoC",
    "infoe": "InfoE",
    "sparsity": "sparsity",
    "index-code-mi": "index-code MI",
    "total-correlation": "TC",
    "dimension-wise-kl": "dimension-wise KL",
    "gaussian-tc": "Gaussian TC",
    "gaussian-wasserstein-norm": "Wasserstein / variance",
    "mean-mi": "MI of pairs",
}

NEGATED = {"log_likelihood", "log_likelihood_posthoc", "elbo", "elbo_dual"}  # shown as what is to be small
BOUNDS = {"log_likelihood", "perplexity"}  # whose cells say why they are empty
COUNTS = {"active_units", "dis_1", "dis_2"}
FITTED = "†"  # by a proposal that was fitted to samples of q(z|x)
EFFECTIVE = "effective"  # the column of how many draws of the importance-weighted bound count
OLD_ERROR = """These errors of the draws are by the delta method, as printed when the runs were measured. It is too small where
few weights dominate: where 3 of 100 draws are effective it is less than half of what repeats scatter by
([what was measured](../metrics.md#errors-of-iw-k)). There the bound is loose too, by tenths of a nat or by nats, which no error
says. The weights of these runs are not kept, so neither can be measured again; the effective draws tell which to doubt."""
OF_CODES = "‡"  # under a prior that was fitted to codes


def value(record: Record, name: str) -> float | None:
    """A number of a record; parts of DCI and the error per pixel go by names of their own."""
    metrics = record["metrics"]
    if name in ("completeness", "informativeness"):
        found = metrics.get("dci", {}).get("parts", {}).get(name)
    elif name == "error":
        found = metrics.get("squared_error", {}).get("value")
        found = None if found is None else found / PIXELS
    elif name == EFFECTIVE:
        found = metrics.get("log_likelihood", {}).get("parts", {}).get("effective_samples")
    else:
        found = metrics.get(name, {}).get("value")
    return None if found is None else float(found)


def old_errors(records: Records) -> str:
    """What is to be said of errors of bounds that were measured by the delta method; nothing where none was."""
    found = [record["metrics"].get("log_likelihood", {}) for record in records.values()]
    old = (entry.get("value") is not None and "gain_of_doubling" not in entry.get("parts", {}) for entry in found)
    return OLD_ERROR if any(old) else ""


def shown(number: float | None, name: str = "") -> str:
    """A number as a cell of a table."""
    if number is None:
        return ""
    if name == EFFECTIVE:
        return f"{number:.1f}" if number < 10 else f"{number:.0f}"
    digits = 4 if name == "error" else 0 if name == "active_units" else 2 if abs(number) >= 2 else 3
    return f"{number:.{digits}f}"


def table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *body])


def rounding(found: Records) -> str:
    """Which runs, by what they are called, were trained with rounded products of matrices."""
    exact = [name for name, record in found.items() if record["spec"]["fit"]["precision"] == "32-true"]
    if len(exact) == len(found):
        return "Products of matrices are exact."
    said = "In training, products of matrices are rounded (`--precision 32-fast`)"
    return f"{said}, but for {', '.join(exact)}." if exact else f"{said}."


def rows(records: Records, prefix: str, columns: dict[str, str]) -> str:
    """The table of some numbers of every run."""
    body = ([n.removeprefix(prefix), *(shown(value(r, key), key) for key in columns)] for n, r in records.items())
    return table(["run", *columns.values()], body)


def measured(
    records: Records, names: dict[str, str], prefix: str, more: dict[str, dict[str, str]] | None = None
) -> str:
    """The table of likelihoods and measures, one estimator a column, and columns of `more`: cells by run."""
    _one_estimator(records, names)
    body = [
        [
            short := run.removeprefix(prefix),
            *(shown(value(r, n), n) or "—" if n == EFFECTIVE else _cell(n, r["metrics"].get(n)) for n in names),
            *(cells.get(short, "") for cells in (more or {}).values()),
        ]
        for run, r in records.items()
    ]
    return table(["run", *names.values(), *(more or {})], body)


def _cell(name: str, entry: dict[str, Any] | None) -> str:
    if entry is None or entry["value"] is None:
        return "not a bound" if entry is not None and name in BOUNDS else "—"
    number = -entry["value"] if name in NEGATED else entry["value"]
    if name in COUNTS:
        return f"{number:,.0f}"
    noise = entry.get("errors", {}).get("importance_noise") if name == "log_likelihood" else None
    mark = FITTED if "fitted" in entry["estimator"] else OF_CODES if "prior of codes" in entry["estimator"] else ""
    return f"{round(number, 2) + 0:.2f}" + (f" ({round(noise * 100)})" if noise is not None else "") + mark


def _one_estimator(records: Records, names: dict[str, str]) -> None:
    """Refuses a column of two estimators, but for those that are marked in their cells."""
    for name in names:
        entries = (r["metrics"].get(name, {}) for r in records.values())
        found = {e["estimator"].split(", ")[0] for e in entries if e.get("value") is not None}
        if len(found) > 1:
            raise ValueError(f"the column {name} mixes the estimators {', '.join(sorted(found))}")
