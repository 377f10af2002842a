"""Progress: a bar with every term on a terminal, plain lines elsewhere. Written to stderr, so stdout stays for results."""

from __future__ import annotations

import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from elboroom.commands.output import say
from elboroom.core.progress import heard_by
from elboroom.studies.progress import duration
from elboroom.training.opening import opening
from elboroom.training.session import Prepared

STEPS, SECONDS = 10, 3.0  # after which the pace of a run is known
WORTH = 10.0  # seconds that are worth a word
PATIENCE = 5.0  # seconds of a measurement without a word
BAR = 42  # columns of a bar, its slash, the two times and the spaces between
EVERY = 10.0  # seconds between two lines on how far a measurement is


def shown(line: dict[str, float], room: int = 1000) -> str:
    """A line of the log in as many words as there is room for: `loss 45.3  nll 31.2  kl 14.1`."""
    said, sep = "", "  "
    for name in sorted(line.keys() - {"step"}, key=lambda name: (_place(name), list(line).index(name))):
        part = f"{sep if said else ''}{name} {_written(line[name])}"
        if len(said) + len(part) > room:
            break
        said += part
    return said


def _place(name: str) -> int:
    """Where a term stands in a line: the loss and its parts first, the learning rate last."""
    places = (name == "loss", name == "nll", name.startswith("kl"), name != "lr", True)
    return places.index(True)


def _written(value: float) -> str:
    """Four digits, and those before the point all of them."""
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"


class Measuring:
    """Shows how far a measurement is: a bar on a terminal, elsewhere, if it takes long, a line now and again."""

    def __init__(self) -> None:
        self.console = Console(stderr=True)
        self.shown, self.at, self.began = "", 0.0, time.monotonic()
        self.progress: Progress | None = None
        if self.console.is_terminal:
            columns = (TextColumn("{task.description}", markup=False), BarColumn(20), TimeRemainingColumn())
            self.progress = Progress(*columns, console=self.console, transient=True)
            self.task = self.progress.add_task("", total=None)
        self.heard = heard_by(self)

    def __call__(self, what: str, done: int, of: int) -> None:
        what = what or "the run"
        now, rows = time.monotonic(), f", {done:,} of {of:,}" if done < of else ""
        if self.progress is not None:
            if what != self.shown:
                self.progress.reset(self.task, total=of or None, description=what)
            self.progress.update(self.task, total=of or None, completed=done, description=what + rows)
        elif now - self.began >= PATIENCE and (
            what != self.shown or now - self.at > EVERY
        ):  # a mistake is told before, and alone
            self.at = now
            say(f"measuring {what}{rows}")
        else:
            return
        self.shown = what

    def __enter__(self) -> Measuring:
        self.heard.__enter__()
        if self.progress is not None:
            self.progress.start()
        return self

    def __exit__(self, *error: Any) -> None:
        if self.progress is not None:
            self.progress.stop()
        self.heard.__exit__(*error)


class Clock:
    """Says once how long a run will take, by its pace after the first steps; nothing of one that is soon done."""

    def __init__(self, until: int) -> None:
        self.until, self.start, self.began, self.done = until, 0, 0.0, False

    def told(self, step: int) -> str:
        """The sentence, when it is due."""
        now = time.monotonic()
        if not self.began:  # the first step has other work to do
            self.start, self.began = step, now
        if self.done or step - self.start < STEPS or now - self.began < SECONDS:
            return ""
        self.done = True
        pace = (step - self.start) / (now - self.began)
        left = (self.until - step) / pace
        if left < WORTH:
            return ""
        shown = f"{pace:.0f} steps a second" if pace >= 2 else f"{1 / pace:.1f} seconds a step"
        return f"time: about {duration(left)} more, at {shown} (Ctrl-C saves, elbo resume goes on)"


class Bar:
    """Shows the steps of a run; called with the steps done and, where one is due, a line of the log."""

    def __init__(self, ready: Prepared) -> None:
        for line in opening(ready):
            say(line)
        self.until = ready.spec.until
        self.clock = Clock(self.until)
        self.console = Console(stderr=True)
        self.every = max(1, self.until // 10)
        self.next, self.seen, self.drawn = 0, "", 0.0
        self.steps = len(f"{self.until:,}")
        self.room = self.console.width - len("step /  ") - max(7, self.steps) - self.steps
        self.progress: Progress | None = None
        if self.console.is_terminal:
            columns = (BarColumn(20), TextColumn("{task.completed:,}/{task.total:,}"), TimeElapsedColumn(),
                       TimeRemainingColumn(), TextColumn("{task.description}", markup=False))  # fmt: skip
            self.room = self.console.width - BAR - 2 * self.steps
            self.progress = Progress(*columns, console=self.console)
            self.task = self.progress.add_task("", total=self.until)
            self.progress.start()

    def __call__(self, step: int, line: dict[str, float]) -> None:
        if told := self.clock.told(step):
            self.progress.console.print(told, markup=False, highlight=False) if self.progress else say(told)
        self.seen = shown(line, self.room) or self.seen
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
