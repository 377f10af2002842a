"""How the rows of a page were made: the command, when it was kept, by which commit, on what, and how long it took."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tables import table

from elboroom.evaluate import verdicts
from elboroom.training.spec import Spec

HERE = Path(__file__).parent
KEPT = HERE / "runs"
FILE = "made.json"
UNKNOWN = "x86-64, 2 cores"  # of rows from before a record told how it was made
HEAD = ["run", "command", "kept", "commit", "processor", "core-hours", "its loss at the end"]


def here() -> dict[str, str]:
    """Today, the commit that is checked out and whether its code was changed, where git is there to tell, and the machine."""
    try:
        said = subprocess.run(
            ["git", "rev-parse", "--short=7", "HEAD"], cwd=HERE, capture_output=True, text=True, check=True
        )
        clean = subprocess.run(
            ["git", "diff", "--quiet", "HEAD", "--", HERE.parents[1] / "elboroom"], cwd=HERE, check=False
        )
        commit = said.stdout.strip() + (", changed" if clean.returncode else "")
    except (OSError, subprocess.CalledProcessError):
        commit = "not kept"
    return {"date": f"{datetime.now(UTC):%Y-%m-%d}", "commit": commit, "processor": processor()}


def processor() -> str:
    """What kind of machine this is: `AMD EPYC, 2 cores`."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    found = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{found}, {os.cpu_count()} cores"


def hours(folder: Path) -> float | None:
    """Core-hours of training; what was resumed counts at the pace of its last part."""
    timing, log = folder / "timing.json", folder / "log.jsonl"
    if not timing.exists() or not log.exists():
        return None
    told = json.loads(timing.read_text())
    steps, last = told["to"] - told["from"], json.loads(log.read_text().splitlines()[-1])["step"]
    return None if steps <= 0 else told["seconds"] / steps * last * _threads(folder) / 3600


def _threads(folder: Path) -> int:
    return json.loads((folder / "spec.json").read_text())["fit"].get("threads") or 2


def section(page: str, names: Iterable[str]) -> str:
    """The last section of a page, of the runs of these names, in their order."""
    there = [name for name in names if (KEPT / name / "spec.json").exists()]
    if not there:
        return ""
    body = [[name.removeprefix(f"{page}-"), *_row(KEPT / name)] for name in there]
    known = [spent for name in there if (spent := hours(KEPT / name)) is not None]
    missing = f", without {len(there) - len(known)} that were not timed" if len(known) < len(there) else ""
    return f"""
## How each row was made

The command trains a row; `python docs/results/{page.replace("-", "_")}.py train` trains, measures and keeps what has no record.
In all {sum(known):.1f} core-hours of training{missing}. A loss that fell clearly in the last quarter of a run, as `elbo doctor`
tells it, falls still. Where the processor is "{UNKNOWN}", nothing was written down when the row was kept: the date is that
of the last change of its record, the commit the one before.

{table(HEAD, body)}
"""


def _row(folder: Path) -> list[str]:
    made: dict[str, Any] = json.loads((folder / FILE).read_text()) if (folder / FILE).exists() else {}
    took = hours(folder)
    spec = Spec.read(folder)
    command = f"`{spec.command}`".replace("|", "\\|")
    told = [made.get(key, "not kept") for key in ("date", "commit", "processor")]
    return [command, *told, "not kept" if took is None else f"{took:.2f}", _end(folder)]


def _end(folder: Path) -> str:
    losses = [
        line["loss"] for line in map(json.loads, (folder / "log.jsonl").read_text().splitlines()) if "loss" in line
    ]
    found = verdicts.slope(losses)
    if found is None:
        return "too short to tell"
    if found.rises:
        return "rises, with the weight of a term"
    return "still falls" if found.falls else "settled"
