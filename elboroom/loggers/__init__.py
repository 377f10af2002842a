"""Loggers: what a run logs, measures and shows, in TensorBoard, MLflow or W&B too: `--logger tensorboard,mlflow,wandb`.

They are told of a run and say nothing to it: no number depends on them, and one that fails is left behind.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elboroom.core.files import remade
from elboroom.core.problem import Problem, unknown
from elboroom.core.tongue import spoken
from elboroom.loggers.writers import WRITERS, Writer
from elboroom.training.checkpoint import write_json
from elboroom.training.recorder import read_log
from elboroom.training.session import Bar, Prepared
from elboroom.training.spec import Spec

FILE = "loggers.json"  # in the folder of a run: how far each logger was told, and under which name it knows the run


def named(text: str) -> list[str]:
    """The loggers of `tensorboard,mlflow`; refuses others, and those whose package is not here."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in WRITERS:
            raise unknown("logger", name, WRITERS)
        if find_spec(name) is None:
            raise Problem(f"--logger {name} needs a package that is not installed; pip install 'elboroom[{name}]'")
    return list(dict.fromkeys(names))


def _check(content: dict[str, Any]) -> None:
    """Refuses what is not the content of loggers.json."""
    for name, kept in content.items():
        told = kept if isinstance(kept, dict) else {}
        if not (isinstance(told.get("step"), int) and isinstance(told.get("numbers"), dict)):
            raise Problem(f"{FILE}: {name} does not say how far it was told")


class Logs:
    """The loggers of one run. They are opened by what is told first, and closed at the end of the `with`."""

    def __init__(self, text: str, folder: Path, spec: Spec) -> None:
        self.names, self.folder, self.spec = named(text), folder, spec
        self.process = os.getpid()
        self.kept: dict[str, Any] = {}
        self.writers: dict[str, Writer] = {}

    def __enter__(self) -> Logs:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.close(failed=kind is not None)

    def beside(self, bar: Bar) -> Bar:
        """The same progress, which tells the loggers too."""
        return partial(Both, self, bar) if self.names else bar

    def open(self) -> None:
        """Opens all, and catches up: a logger gets the lines of the log that it has not seen, each once."""
        path = self.folder / FILE  # another process may have told them since
        self.kept = remade(path, _check)
        for name in self.names:
            kept = self.kept.setdefault(name, {"step": 0, "numbers": {}})
            self.writers[name] = WRITERS[name](self.folder, self.spec, kept)
        self.lines(read_log(self.folder / "log.jsonl"))

    def lines(self, lines: Sequence[Mapping[str, float]]) -> None:
        """Lines of the log."""
        for line in lines:
            step, values = int(line["step"]), {name: value for name, value in line.items() if name != "step"}
            for name in [name for name in self.writers if step > self.kept[name]["step"]]:
                if self._tell(name, lambda writer: writer.scalars(values, step)):  # noqa: B023
                    self.kept[name]["step"] = step
        write_json(self.folder / FILE, self.kept)

    def numbers(self, numbers: Mapping[str, float], step: int) -> None:
        """What was measured at a step; what a logger was told before it is not told again."""
        if not self.writers:
            self.open()
        for name in list(self.writers):
            known = self.kept[name]["numbers"]
            new = {key: value for key, value in numbers.items() if known.get(key) != [step, value]}
            if new and self._tell(name, lambda writer: writer.scalars(new, step)):  # noqa: B023
                known.update({key: [step, value] for key, value in new.items()})
        write_json(self.folder / FILE, self.kept)

    def picture(self, name: str, pixels: NDArray[np.uint8], step: int) -> None:
        """A picture, (height, width, 3)."""
        for writer in list(self.writers):
            self._tell(writer, lambda w: w.picture(name, pixels, step))

    def text(self, name: str, lines: Sequence[str], step: int) -> None:
        """Sentences."""
        for writer in list(self.writers):
            self._tell(writer, lambda w: w.text(name, lines, step))

    def close(self, failed: bool = False) -> None:
        """Lets go of all; `failed` if the run was cut off."""
        for name in list(self.writers):
            self._tell(name, lambda writer: writer.close(failed))
        self.writers.clear()

    def _tell(self, name: str, what: Callable[[Writer], None]) -> bool:
        """Whether a logger could be told."""
        try:
            what(self.writers[name])
            return True
        except Exception as error:  # a server that is gone has errors of its own; the run goes on without
            warnings.warn(spoken(f"--logger {name} stopped ({' '.join(str(error).split())[:200]})"), stacklevel=3)
            del self.writers[name]
            return False


class Both:
    """Tells a progress bar and the loggers."""

    def __init__(self, logs: Logs, bar: Bar, ready: Prepared) -> None:
        self.logs = logs
        logs.open()
        self.show = bar(ready)

    def __call__(self, step: int, line: dict[str, float]) -> None:
        """The steps done, and a line of the log where one was due."""
        self.show(step, line)
        if line:
            self.logs.lines([line])

    def close(self) -> None:
        """The training has ended, somehow; in a process of its own nobody else will close the loggers."""
        self.show.close()
        if os.getpid() != self.logs.process:
            self.logs.close()
