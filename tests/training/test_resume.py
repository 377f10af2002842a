"""A run that is killed at any moment and resumed ends with the weights of a run that was left alone."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from processes import equal, flags
from shell import elbo

import elboroom
from elboroom.training.recorder import read_log

STEPS = 60
OPTIONS: dict[str, dict[str, Any]] = {
    "vae": {},
    "control-vae": {"target": 3.0, "ki": 0.01, "ramp": 0.2},
    "factor-vae": {"critic_lr": 1e-3},
    "beta-vae": {
        **{"optimiser": "sgd", "lr": 1.0, "momentum": 0.5, "clip": 1.0, "average": 0.9, "accumulate": 2},
        **{"decay": "plateau", "look_every": 3, "decay_patience": 1, "decay_times": 99, "warmup_steps": 9},
    },
    "bn-vae": {"optimiser": "adamw", "weight_decay": 0.1, "decay": "cosine", "warmup_steps": 9, "average": 0.9},
}
SMALL: dict[str, Any] = {"batch_size": 16, "checkpoint_every": 7, "log_every": 5, "latent": 4, "lr": 1e-3, "threads": 1}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "x.npy"
    np.save(path, (np.random.default_rng(0).random((300, 16, 16)) > 0.7).astype(np.uint8) * 255)
    return path


def final(folder: Path) -> dict[str, torch.Tensor]:
    newest = max((folder / "checkpoints").glob("step-*.safetensors"))
    assert newest.stem == f"step-{STEPS:09d}"
    return safetensors.torch.load(newest.read_bytes())


def logged(folder: Path) -> float:
    """The step that the log has come to."""
    lines = read_log(folder / "log.jsonl")
    return lines[-1]["step"] if lines else 0


def forked(work: Callable[[], Any]) -> Any:
    """A process of its own that has torch loaded already."""
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    return process


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
@pytest.mark.parametrize("method", OPTIONS)
def test_kill_and_resume(method: str, data: Path, tmp_path: Path) -> None:
    """Ten kill -9 at random moments of training, whatever was being done then."""
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    options = {**SMALL, **OPTIONS[method], "steps": STEPS}
    elboroom.train(method, data, alone, **options)
    rng, kills = random.Random(method), 0

    def work() -> None:
        elboroom.resume(killed) if (killed / "spec.json").exists() else elboroom.train(method, data, killed, **options)

    for moment in sorted(rng.random() for _ in range(10)):
        process = forked(work)
        while process.is_alive() and logged(killed) < moment * STEPS:
            time.sleep(0.001)
        time.sleep(rng.random() * 0.05)
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.join()
        if process.exitcode == 0:
            break
    if logged(killed) < STEPS or not (killed / "checkpoints" / f"step-{STEPS:09d}.json").exists():
        elboroom.resume(killed)
    assert kills >= 5
    expected, result = final(alone), final(killed)
    assert result.keys() == expected.keys()
    for name in expected:
        assert torch.equal(result[name], expected[name]), name
    assert (killed / "log.jsonl").read_text() == (alone / "log.jsonl").read_text()


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "elboroom.cli", *map(str, words)]


@pytest.mark.slow
def test_interrupt_saves_and_says_how_to_go_on(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = command("train", "vae", *flags(data=data, out=out, **{**SMALL, "steps": 100_000}))
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    while logged(out) < 5:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert f"continue with: elbo resume {out}" in said
    assert list((out / "checkpoints").glob("step-*.json"))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["beta-tcvae", "factor-vae", "beta-vae-capacity", "control-vae", "bn-vae"])
def test_two_processes_equal_one(method: str, data: Path, tmp_path: Path) -> None:
    """The same global batch and noise over two processes: the same weights and log, to rounding."""
    equal(method, data, tmp_path, {**SMALL, "steps": 5, "log_every": 1, "device": "cpu"})


@pytest.mark.slow
def test_two_processes_equal_one_on_text(tmp_path: Path) -> None:
    """Each of the two reads other words, and rows of the embeddings that neither reads stay put in both."""
    sentences = {"embed": 8, "hidden": 8, "dropout": 0.0, "clip": 1.0}
    equal("vae", "sentences", tmp_path, {**SMALL, **sentences, "steps": 5, "log_every": 1, "device": "cpu"})


@pytest.mark.slow
def test_a_batch_that_two_cannot_share_is_refused(data: Path, tmp_path: Path) -> None:
    done = elbo("train", "vae", *flags(data=data, out=tmp_path / "r", **{**SMALL, "batch_size": 15}, devices=2))
    assert done.returncode == 2
    assert "--batch-size 15 cannot be shared by 2 devices" in done.stderr
