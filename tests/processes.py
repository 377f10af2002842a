"""A run in one process and in two, compared."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch

import elboroom
from elboroom.training.recorder import read_log

# A bias that normalisation over the batch takes out again has no gradient but rounding, which Adam makes much of.
TAKEN_OUT = ("model.posterior.posterior.net.dense.4.bias", "model.posterior.norm.running_mean")


def flags(**options: Any) -> list[str]:
    return [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def equal(method: str, data: Path | str, tmp_path: Path, options: dict[str, Any]) -> None:
    """Trains in one process and in two, and compares."""
    elboroom.train(method, data, tmp_path / "one", **options)
    words = [
        sys.executable,
        "-m",
        "elboroom",
        "train",
        method,
        *flags(data=data, out=tmp_path / "two", **options, devices=2),
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    files = (next((tmp_path / name / "checkpoints").glob("*.safetensors")) for name in ("one", "two"))
    one, two = (safetensors.torch.load(file.read_bytes()) for file in files)
    for name in one.keys() - set(TAKEN_OUT):
        distance, size = (one[name].float() - two[name].float()).norm(), one[name].float().norm()
        assert distance <= 1e-5 * size + 1e-6, name
    for a, b in zip(*(read_log(tmp_path / name / "log.jsonl") for name in ("one", "two")), strict=True):
        assert a == pytest.approx(b, rel=1e-4, abs=1e-5)
