"""The measurements, by name or all: `python -m benchmarks.run [--force] [NAME ...]`.

What counts is written into benchmarks/latest.json and, from there, into the table of docs/benchmarks.md.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.machine import IDLE, busy
from benchmarks.measure import MEASUREMENTS, THREADS, Result
from elboroom.core.problem import Problem, unknown

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "docs"))

import pages  # noqa: E402 docs/pages.py

LATEST = HERE / "latest.json"


def main(arguments: list[str]) -> int:
    """Measures, prints a table, writes what counts."""
    torch.set_num_threads(THREADS)
    for file in sorted(HERE.glob("*.py")):
        if not file.stem.endswith(("_peer", "run")):  # a file with a @measurement in it is all that one more needs
            import_module(f"benchmarks.{file.stem}")
    force = "--force" in arguments
    names = [name for name in arguments if name != "--force"] or list(MEASUREMENTS)
    console = Console()
    results: dict[str, Result] = {}
    try:
        for name in names:
            if name not in MEASUREMENTS:
                raise unknown("measurement", name, MEASUREMENTS)
        for name in names:
            quiet(force)
            with console.status(name):
                result = MEASUREMENTS[name]()
            quiet(force)
            results[name] = result
            if not force:
                keep(name, result)
    except Problem as problem:
        if results:
            console.print(table(results))
        print(problem, file=sys.stderr)
        return 2
    console.print(table(results))
    if force:
        console.print("--force: these numbers do not count and were not written")
    return 0


def keep(name: str, result: Result) -> None:
    """Writes a result beside those of other measurements, and the table of all of them into docs/benchmarks.md."""
    kept = json.loads(LATEST.read_text()) if LATEST.exists() else {}
    LATEST.write_text(json.dumps({**kept, name: asdict(result)}, indent=2, sort_keys=True) + "\n")
    pages.BENCH.write_text(pages.bench_page(), encoding="utf-8")


def quiet(force: bool) -> None:
    """Refuses a machine on which others work."""
    if not force and (others := busy()) > IDLE:
        raise Problem(f"other processes keep {others:.1f} processors busy, so that times mean nothing: try again later")


def table(results: dict[str, Result]) -> Table:
    """The results, one line each."""
    shown = Table("measurement", "value", "reference", "unit", "ratio", "target", "of sgemm", "what")
    for name, result in results.items():
        share = "" if result.fraction_of_sgemm is None else f"{result.fraction_of_sgemm:.0%}"
        target = "" if result.target is None else f"{result.target:g}"
        what = (MEASUREMENTS[name].__doc__ or "").splitlines()[0]
        values = (f"{result.value:,.0f}", f"{result.reference:,.0f}", result.unit, f"{result.ratio:.2f}")
        shown.add_row(name, *values, target, share, what)
    return shown


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
