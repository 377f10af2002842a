"""What the pages of runs that read a context share: a table of measured values, and what was not run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tables import Records, table


def values(found: Records, names: Iterable[str], columns: Mapping[str, str], prefix: str) -> str:
    """A row for each plan, dashes where nothing was measured."""
    rows = []
    for name in names:
        metrics = found.get(name, {}).get("metrics", {})
        cells = [metrics.get(key, {}).get("value") for key in columns]
        rows.append([name.removeprefix(prefix), *("-" if cell is None else f"{cell:.3g}" for cell in cells)])
    return table(["run", *columns.values()], rows)


def not_yet(found: Records, names: Iterable[str], prefix: str) -> str:
    """Which plans have no record."""
    missing = [name.removeprefix(prefix) for name in names if name not in found]
    return f"Not yet run: {', '.join(missing)}." if missing else ""
