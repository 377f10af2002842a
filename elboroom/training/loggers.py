"""Loggers: the lines of any run's log in TensorBoard or MLflow as well, `--logger tensorboard,mlflow`."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from elboroom.core.problem import Problem, unknown


class Progress(Protocol):
    """What is told of the steps of a run."""

    def __call__(self, step: int, line: dict[str, float]) -> None:
        """The steps done, and a line of the log where one was due."""

    def close(self) -> None:
        """The run has ended, somehow."""


class TensorBoard:
    """Every term and weight as a scalar, in the folder `tensorboard` of the run."""

    def __init__(self, folder: Path, options: dict[str, Any], start: int) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise Problem("--logger tensorboard needs TensorBoard: pip install 'elboroom[tensorboard]'") from None
        make: Any = SummaryWriter
        self.writer = make(log_dir=str(folder / "tensorboard"), purge_step=start + 1 if start else None)
        if not start:
            self.writer.add_text("options", "\n".join(f"    {name} = {value}" for name, value in options.items()))

    def __call__(self, step: int, line: dict[str, float]) -> None:
        """Writes a line of the log, if one was due."""
        for name, value in line.items():
            if name != "step":
                self.writer.add_scalar(name, value, int(line["step"]))

    def close(self) -> None:
        """Writes what is left."""
        self.writer.close()


class MLflow:
    """A run of MLflow, at $MLFLOW_TRACKING_URI or in the folder `mlflow` of the run; resumed under the same identifier."""

    def __init__(self, folder: Path, options: dict[str, Any], start: int) -> None:
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # a folder will do: nothing has to be served
        try:
            from mlflow.entities import Metric
            from mlflow.exceptions import MlflowException
            from mlflow.tracking import MlflowClient
        except ImportError:
            raise Problem("--logger mlflow needs MLflow: pip install 'elboroom[mlflow]'") from None
        self.metric, kept = Metric, folder / "mlflow.json"
        address = os.environ.get("MLFLOW_TRACKING_URI") or (folder.resolve() / "mlflow").as_uri()
        try:
            self.client = MlflowClient(address)
            if kept.exists():
                self.run = json.loads(kept.read_text())["run"]
                return
            name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "elboroom")
            found = self.client.get_experiment_by_name(name)
            experiment = found.experiment_id if found else self.client.create_experiment(name)
            self.run = self.client.create_run(experiment, run_name=folder.name).info.run_id
            for key, value in options.items():
                self.client.log_param(self.run, key, value)
        except MlflowException as error:
            raise Problem(f"MLflow does not answer at {address}: {str(error).splitlines()[0]}") from error
        kept.write_text(json.dumps({"run": self.run}))

    def __call__(self, step: int, line: dict[str, float]) -> None:
        """Sends a line of the log, if one was due."""
        now = int(1000 * time.time())
        metrics = [self.metric(name, value, now, int(line["step"])) for name, value in line.items() if name != "step"]
        if metrics:
            self.client.log_batch(self.run, metrics)

    def close(self) -> None:
        """Says that nobody writes any more."""
        self.client.set_terminated(self.run)


LOGGERS: dict[str, Callable[[Path, dict[str, Any], int], Progress]] = {"tensorboard": TensorBoard, "mlflow": MLflow}


def names_in(text: str) -> list[str]:
    """The loggers of `tensorboard,mlflow`; refuses others."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in LOGGERS:
            raise unknown("logger", name, LOGGERS)
    return names


def known(text: str) -> str:
    """The same text, if it names loggers; a ValueError, as options have it, if it names others."""
    try:
        names_in(text)
    except Problem as problem:
        raise ValueError(str(problem)) from None
    return text


class Several:
    """Tells several what it is told."""

    def __init__(self, shows: Sequence[Progress]) -> None:
        self.shows = shows

    def __call__(self, step: int, line: dict[str, float]) -> None:
        """The steps done, and a line of the log where one was due."""
        for show in self.shows:
            show(step, line)

    def close(self) -> None:
        """The run has ended, somehow."""
        for show in self.shows:
            show.close()


def logged(show: Progress, text: str, folder: Path, options: dict[str, Any], start: int = 0) -> Progress:
    """The same progress, which tells the loggers named in `text` too."""
    names = names_in(text)
    return Several([show, *(LOGGERS[name](folder, options, start) for name in names)]) if names else show
