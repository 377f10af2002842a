"""TensorBoard and MLflow get the lines of a run's log, each once, also over a resume."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from elboroom.core.problem import Problem
from elboroom.training.fit import Fit
from elboroom.training.loggers import logged, names_in
from elboroom.training.recorder import read_log

is_hooked = pytest.mark.skipif("logger" not in Fit.model_fields, reason="runs have no option --logger yet")


class Seen:
    """What a progress bar is told."""

    def __init__(self) -> None:
        self.told: list[tuple[int, dict[str, float]]] = []
        self.closed = 0

    def __call__(self, step: int, line: dict[str, float]) -> None:
        self.told.append((step, line))

    def close(self) -> None:
        self.closed += 1


def scalars(folder: Path, tag: str) -> list[tuple[int, float]]:
    """What TensorBoard would draw."""
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = reader.EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    return [(event.step, event.value) for event in events.Scalars(tag)]


def values(folder: Path, name: str) -> dict[int, float]:
    """What MLflow keeps of a metric, by step."""
    (path,) = (folder / "mlflow").glob(f"*/*/metrics/{name}")
    return {int(line.split()[2]): float(line.split()[1]) for line in path.read_text().splitlines()}


def test_without_a_logger_nothing_is_wrapped(tmp_path: Path) -> None:
    show = Seen()
    assert logged(show, "", tmp_path, {}) is show


@pytest.mark.parametrize("name", ["tensorboard", "mlflow"])
def test_every_line_arrives_once(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(name, reason=f"not installed: pip install 'elboroom[{name}]'")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    show = Seen()
    for start, steps in ((0, (10, 20, 30)), (20, (30, 40))):  # a run that was cut off after a checkpoint at 20
        both = logged(show, name, tmp_path, {"method": "vae", "beta": 4.0}, start)
        for step in steps:
            both(step, {"step": step, "nll": 100.0 - step + start, "kl.weight": 0.5})
            both(step + 1, {})
        both.close()
    assert [step for step, line in show.told if line] == [10, 20, 30, 30, 40]
    assert show.closed == 2
    expected = {10: 90.0, 20: 80.0, 30: 90.0, 40: 80.0}
    assert (dict(scalars(tmp_path, "nll")) if name == "tensorboard" else values(tmp_path, "nll")) == expected
    if name == "tensorboard":
        assert len(scalars(tmp_path, "kl.weight")) == 4
    else:
        (run,) = (path.parent for path in (tmp_path / "mlflow").glob("*/*/params"))
        assert run.name == json.loads((tmp_path / "mlflow.json").read_text())["run"], "one run, also after a resume"
        assert (run / "params" / "beta").read_text() == "4.0"


def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert names_in(" tensorboard ,mlflow,") == ["tensorboard", "mlflow"]
    with pytest.raises(Problem, match="no logger 'tensorbord'; did you mean 'tensorboard'"):
        names_in("tensorbord")
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    monkeypatch.setitem(sys.modules, "mlflow.entities", None)
    for name in ("tensorboard", "mlflow"):
        with pytest.raises(Problem, match=rf"pip install 'elboroom\[{name}\]'"):
            logged(Seen(), name, tmp_path, {})


@is_hooked
@pytest.mark.parametrize("name", ["tensorboard", "mlflow"])
def test_any_run_has_it_as_an_option(name: str, pixels: Any, tmp_path: Path) -> None:
    pytest.importorskip(name, reason=f"not installed: pip install 'elboroom[{name}]'")
    from elboroom.runs.lifecycle import train

    run = train("vae", pixels, tmp_path / "run", steps=6, log_every=2, batch_size=8, net="mlp-300", logger=name)
    lines = {int(line["step"]): line["nll"] for line in read_log(run.folder / "log.jsonl")}
    found = dict(scalars(run.folder, "nll")) if name == "tensorboard" else values(run.folder, "nll")
    assert found == pytest.approx(lines, rel=1e-6)
    with pytest.raises(Problem, match="no logger 'paper'"):
        train("vae", pixels, tmp_path / "other", steps=6, logger="paper")
    assert not (tmp_path / "other").exists()
