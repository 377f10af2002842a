"""Watching a study: done, running, failed and the time that remains; a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from elboroom.studies.engines.pool import Told
from elboroom.studies.space import Cell
from elboroom.training.fit import Fit
from elboroom.training.recipe import find

STEPS = Fit().steps


def steps_of(cell: Cell) -> int:
    """How long a run is."""
    known = find(cell.options["recipe"]) if "recipe" in cell.options else None
    of_recipe = (known.method.get(cell.method, {}) | known.options).get("steps", STEPS) if known else STEPS
    return int(cell.options.get("steps", of_recipe))


def duration(seconds: float) -> str:
    """3700 as 1 h 02 min."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days:,} d {hours} h"
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min"


class Board:
    """Counts what becomes of the runs of a study, and says how long the rest will take at the pace so far."""

    def __init__(self, total: int, left: Sequence[Cell], done: int, failed: int = 0) -> None:
        self.total, self.done, self.failed = total, done, failed
        self.left = {cell.name: steps_of(cell) for cell in left}  # steps still to do
        self.running: dict[str, int | None] = {}  # the step that each is at, once it is known
        self.began, self.walked = time.monotonic(), 0  # steps done since
        self.console = Console(stderr=True)
        self.progress: Progress | None = None
        if self.console.is_terminal:
            columns = (BarColumn(24), TextColumn("{task.description}", markup=False))
            self.progress = Progress(*columns, console=self.console)
            self.task = self.progress.add_task(self.line, total=max(1, total), completed=done)
            self.progress.start()

    def __call__(self, cell: Cell, told: Told) -> None:
        """Counts one event, and shows the new state."""
        name, state = cell.name, told["state"]
        if state == "started":
            self.running[name] = None
            self.left.setdefault(name, steps_of(cell))
        elif state == "step":
            self._walk(name, told["step"])
        else:
            self._walk(name, steps_of(cell), ended=True)
            self.running.pop(name, None)
            self.left.pop(name, None)
            self.done += state == "done"
            self.failed += state == "failed"
        if self.progress is not None:
            self.progress.update(self.task, description=self.line, completed=self.done)
        elif state in ("done", "failed"):
            how = f": {told['error']}" if state == "failed" else ""
            print(f"{self.line}  {name} {state}{how}", file=sys.stderr, flush=True)

    def _walk(self, name: str, step: int, ended: bool = False) -> None:
        """Takes note of the step that a run has come to; the first word on it may be of a run that is taken up again."""
        before = self.running.get(name)
        self.walked += step - before if before is not None else step if ended else 0
        self.running[name] = step

    @property
    def remaining(self) -> float | None:
        """Seconds that are left at the pace so far; None while there is none."""
        steps = sum(max(0, total - (self.running.get(name) or 0)) for name, total in self.left.items())
        elapsed = time.monotonic() - self.began
        if not steps:
            return 0.0
        return elapsed * steps / self.walked if self.walked else None

    @property
    def line(self) -> str:
        """`12/24 done  2 running  0 failed  about 3 min left`."""
        left = self.remaining
        time_left = "" if left is None else f"  about {duration(left)} left"
        return f"{self.done:,}/{self.total:,} done  {len(self.running)} running  {self.failed} failed{time_left}"

    def close(self) -> None:
        """Leaves the terminal as it was."""
        if self.progress is not None:
            self.progress.stop()
