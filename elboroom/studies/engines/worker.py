"""A worker of the pool: reads jobs from its standard input, a line each, and answers with what becomes of them.

When the input ends its driver is gone, and it leaves at once with all that it has started.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from queue import SimpleQueue
from typing import Any

EVERY = 0.5  # seconds between two words on how far a run is


def main() -> None:
    """Works until it is told to stop."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no answer
    jobs: SimpleQueue[dict[str, Any]] = SimpleQueue()
    threading.Thread(target=_listen, args=(jobs,), daemon=True).start()
    from elboroom.studies.engines.work import attempt
    from elboroom.studies.schema import Measure
    from elboroom.studies.space import Cell

    def say(told: dict[str, Any]) -> None:
        answers.write(json.dumps(told) + "\n")

    class Steps:
        """Tells, now and then, the step that a run is at."""

        def __init__(self, spec: Any) -> None:
            self.last = 0.0

        def __call__(self, step: int, line: dict[str, float]) -> None:
            if time.monotonic() - self.last > EVERY:
                self.last = time.monotonic()
                say({"state": "step", "step": step})

        def close(self) -> None: ...

    say({"state": "ready"})
    while True:
        job = jobs.get()
        cell, measure = Cell.from_json(job["cell"]), Measure(**job["measure"])
        told = attempt(cell, Path(job["root"]), measure, Steps, job["logger"])
        if told["state"] == "stopped":
            return
        say(told)


def _listen(jobs: SimpleQueue[dict[str, Any]]) -> None:
    for line in sys.stdin:
        jobs.put(json.loads(line))
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main()
