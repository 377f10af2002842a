"""Whether the machine does something else."""

from __future__ import annotations

import os
import time
from pathlib import Path

STAT = Path("/proc/stat")
IDLE = 0.1  # processors that others may use


def busy(seconds: float = 2.0) -> float:
    """How many processors are at work, on average over a short while in which this process sleeps."""
    if not STAT.exists():
        return os.getloadavg()[0]
    before, start = _ticks(), time.perf_counter()
    time.sleep(seconds)
    return (_ticks() - before) / os.sysconf("SC_CLK_TCK") / (time.perf_counter() - start)


def _ticks() -> int:
    user, nice, system, _idle, _wait, *interrupts = (int(n) for n in STAT.read_text().splitlines()[0].split()[1:])
    return user + nice + system + sum(interrupts[:3])  # with those that another guest took
