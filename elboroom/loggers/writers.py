"""What writes to TensorBoard, MLflow and W&B; each goes on with the run that `kept` names, and names it there."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from elboroom.core.problem import Problem
from elboroom.training.spec import Spec

PROJECT = "elboroom"


class Writer(Protocol):
    """One place where a run is shown."""

    def scalars(self, values: Mapping[str, float], step: int) -> None:
        """Terms, weights, numbers."""

    def picture(self, name: str, pixels: NDArray[np.uint8], step: int) -> None:
        """A picture, (height, width, 3)."""

    def text(self, name: str, lines: Sequence[str], step: int) -> None:
        """Sentences."""

    def close(self, failed: bool) -> None:
        """Nobody writes any more."""


def options_of(spec: Spec) -> dict[str, Any]:
    """What a run was asked for: its method, its data and every option."""
    own = {"method": spec.method, "data": spec.data["source"], **spec.options}
    return own | spec.model.model_dump() | spec.fit.model_dump()


class TensorBoard:
    """Event files in the folder `tensorboard` of the run: `tensorboard --logdir runs` shows all runs beside one another."""

    def __init__(self, folder: Path, spec: Spec, kept: dict[str, Any]) -> None:
        from torch.utils.tensorboard import SummaryWriter

        make: Any = SummaryWriter
        self.writer = make(log_dir=str(folder / "tensorboard"))
        if not kept["step"]:
            rows = (f"    {name} = {value}" for name, value in options_of(spec).items())
            self.writer.add_text("options", "\n".join(rows), 0)

    def scalars(self, values: Mapping[str, float], step: int) -> None:
        """On the disk when this returns."""
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()

    def picture(self, name: str, pixels: NDArray[np.uint8], step: int) -> None:
        """Under Images."""
        self.writer.add_image(name, pixels, step, dataformats="HWC")

    def text(self, name: str, lines: Sequence[str], step: int) -> None:
        """Under Text, where four spaces keep lines as they are."""
        self.writer.add_text(name, "\n".join(f"    {line}" for line in lines), step)

    def close(self, failed: bool) -> None:
        """Writes what is left."""
        self.writer.close()


class MLflow:
    """A run of MLflow, at $MLFLOW_TRACKING_URI or in the folder `mlflow` of the run."""

    def __init__(self, folder: Path, spec: Spec, kept: dict[str, Any]) -> None:
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # a folder will do: nothing has to be served
        from mlflow.entities import Metric, Param
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient

        self.metric = Metric
        address = os.environ.get("MLFLOW_TRACKING_URI") or (folder.resolve() / "mlflow").as_uri()
        try:
            self.client = MlflowClient(address)
            if "run" in kept:
                self.run = kept["run"]
                self.client.update_run(self.run, status="RUNNING")
                return
            name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
            found = self.client.get_experiment_by_name(name)
            experiment = found.experiment_id if found else self.client.create_experiment(name)
            self.run = kept["run"] = self.client.create_run(experiment, run_name=folder.name).info.run_id
            params = [Param(key, str(value)) for key, value in options_of(spec).items()]
            self.client.log_batch(self.run, params=params)
        except MlflowException as error:
            raise Problem(f"MLflow does not answer at {address}: {str(error).splitlines()[0]}") from error

    def scalars(self, values: Mapping[str, float], step: int) -> None:
        """All at once."""
        now = int(1000 * time.time())
        self.client.log_batch(self.run, [self.metric(name, value, now, step) for name, value in values.items()])

    def picture(self, name: str, pixels: NDArray[np.uint8], step: int) -> None:
        """Among the artifacts."""
        self.client.log_image(self.run, pixels, artifact_file=f"{name}-{step}.png")

    def text(self, name: str, lines: Sequence[str], step: int) -> None:
        """Among the artifacts."""
        self.client.log_text(self.run, "\n".join(lines) + "\n", f"{name}-{step}.txt")

    def close(self, failed: bool) -> None:
        """Says how it ended."""
        self.client.set_terminated(self.run, "FAILED" if failed else "FINISHED")


class WandB:
    """A run of W&B, its files in the folder `wandb` of the run; WANDB_MODE=offline keeps it on this machine."""

    def __init__(self, folder: Path, spec: Spec, kept: dict[str, Any]) -> None:
        import wandb

        self.wandb: Any = wandb
        identifier = kept.setdefault("run", uuid4().hex[:8])
        try:
            self.run = self.wandb.init(
                project=os.environ.get("WANDB_PROJECT", PROJECT),
                id=identifier,
                name=folder.name,
                dir=str(folder.resolve()),
                config=options_of(spec),
                resume=None if os.environ.get("WANDB_MODE") == "offline" else "allow",  # there the identifier says it
                settings=self.wandb.Settings(silent=True, console="off"),
            )
        except Exception as error:  # it has many kinds of its own
            raise Problem(
                f"W&B does not answer ({' '.join(str(error).split())[:200]}); run wandb login, or set WANDB_MODE=offline"
            ) from error
        self.run.define_metric("*", step_metric="step")  # steps of its own count what was sent, also over a resume

    def scalars(self, values: Mapping[str, float], step: int) -> None:
        """A row of its history."""
        self.run.log({**values, "step": step})

    def picture(self, name: str, pixels: NDArray[np.uint8], step: int) -> None:
        """Under Media."""
        self.run.log({name: self.wandb.Image(pixels), "step": step})

    def text(self, name: str, lines: Sequence[str], step: int) -> None:
        """A table of one column."""
        table = self.wandb.Table(columns=[name], data=[[line] for line in lines])
        self.run.log({name: table, "step": step})

    def close(self, failed: bool) -> None:
        """Waits until all is sent."""
        self.run.finish(exit_code=int(failed))


WRITERS: dict[str, Callable[[Path, Spec, dict[str, Any]], Writer]] = {
    "tensorboard": TensorBoard,
    "mlflow": MLflow,
    "wandb": WandB,
}
