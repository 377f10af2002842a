"""Progress: a bar with every term on a terminal, plain lines elsewhere. Written to stderr, so stdout stays for results."""

from __future__ import annotations

import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


def shown(line: dict[str, float]) -> str:
    """A line of the log in a few words: `nll 31.2  kl 14.1  loss 45.3`."""
    return "  ".join(f"{name} {value:.4g}" for name, value in line.items() if name != "step")


class Bar:
    """Shows the steps of a run; called with the steps done and, where one is due, a line of the log."""

    def __init__(self, spec: Any) -> None:
        self.until = spec.until
        self.console = Console(stderr=True)
        self.every = max(1, self.until // 10)
        self.next, self.seen, self.drawn = 0, "", 0.0
        self.progress: Progress | None = None
        if self.console.is_terminal:
            columns = (BarColumn(20), TextColumn("{task.completed:,}/{task.total:,}"), TimeElapsedColumn(),
                       TimeRemainingColumn(), TextColumn("{task.description}"))  # fmt: skip
            self.progress = Progress(*columns, console=self.console)
            self.task = self.progress.add_task("", total=self.until)
            self.progress.start()

    def __call__(self, step: int, line: dict[str, float]) -> None:
        self.seen = shown(line) or self.seen
        if self.progress is not None:
            if line or step == self.until or time.monotonic() - self.drawn > 0.2:
                self.drawn = time.monotonic()
                self.progress.update(self.task, completed=step, description=self.seen)
        elif line and (step >= self.next or step == self.until):
            self.next = step - step % self.every + self.every
            print(f"step {step:>7,}/{self.until:,}  {self.seen}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leaves the terminal as it was."""
        if self.progress is not None:
            self.progress.stop()
