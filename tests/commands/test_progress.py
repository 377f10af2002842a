"""How long a run will take is said once, and measurements are not silent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import elboroom
from elboroom.cli import app
from elboroom.commands import progress
from elboroom.commands.progress import Measuring
from elboroom.report import write_report
from elboroom.runs import measure


def test_the_time_is_said_once_when_the_pace_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    clock, told = progress.Clock(1000), []
    for step in range(1, 101):
        now[0] += 5.0 if step == 1 else 0.5  # the first step is slow
        told.append(clock.told(step))
    (said,) = [text for text in told if text]
    assert said.startswith("time: about 8 min more, at 2 steps a second")
    assert told.index(said) == 10


def test_of_a_run_that_is_soon_done_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    clock = progress.Clock(15)
    for step in range(1, 16):
        now[0] += 0.4
        assert clock.told(step) == ""


def test_a_line_has_the_width_of_the_terminal_and_the_loss_first() -> None:
    line = {"step": 3.0, "lr": 1e-3} | {f"style.{i}.adversary": 0.1234 for i in range(9)} | {"nll": 31.24, "kl": 14.1}
    line = {"kl_style": 2.0, "loss": 45321.7} | line
    said = progress.shown(line, 70)
    assert said.startswith("loss 45322  nll 31.24  kl_style 2  kl 14.1  style.0")
    assert len(said) <= 70
    assert progress.shown(line).count("adversary") == 9
    assert progress.shown(line).endswith("lr 0.001")


def test_a_measurement_is_not_silent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(0).random((60, 5)).astype(np.float32)
    run = elboroom.train("vae", x, tmp_path / "run", steps=2, latent=2, threads=1)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with Measuring():
        measure.metrics(run, "likelihood", samples=8)
    said = capsys.readouterr().err
    assert said.splitlines()[0] == "measuring likelihood"
    assert "measuring likelihood, 8 draws a row" in said
    (run.folder / "metrics.json").unlink()
    with Measuring():
        write_report(run, n=30)
    stages = [line.split(",")[0] for line in capsys.readouterr().err.splitlines()]
    assert list(dict.fromkeys(stages)) == ["measuring numbers", "measuring figures", "measuring sliders"]
    evaluated = CliRunner().invoke(app, ["eval", str(run.folder), "--iw-most", "0"])
    assert "measuring verdicts" in evaluated.stderr.splitlines(), "to the end"
