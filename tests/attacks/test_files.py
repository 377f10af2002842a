"""Every JSON of ours, damaged: told, set aside and made anew, or refused in a sentence; nothing is written outside a run."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
import torch

import elboroom
from elboroom import Problem
from elboroom.core.files import read_json, refuse_links
from elboroom.evaluate.kept import check_numbers
from elboroom.runs.measure import metrics
from elboroom.studies.store.remote import Store
from elboroom.training import session
from elboroom.training.checkpoint import Checkpoints
from elboroom.training.session import Stopped

SMALL: dict[str, Any] = {"steps": 4, "batch_size": 8, "latent": 2, "checkpoint_every": 2, "threads": 1, "device": "cpu"}


@pytest.fixture(scope="module")
def x(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "x.npz"
    rng = np.random.default_rng(0)
    np.savez(path, x=rng.integers(0, 256, (60, 8, 8)).astype(np.uint8), y=np.arange(60) % 3)
    return path


@pytest.fixture(scope="module")
def measured(x: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    run = elboroom.train("vae", str(x), folder, **SMALL)
    metrics(run, ["likelihood", "mig"], samples=2, most=30, iw_most=10, smaller=True)
    return folder


@pytest.fixture
def run(measured: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(measured, tmp_path / "run"))


def change(path: Path, place: str, value: Any) -> None:
    """Sets, or with `...` removes, one value deep in a JSON file."""
    content = json.loads(path.read_text())
    *way, last = place.split(".")
    inner = content
    for part in way:
        inner = inner[part]
    inner.pop(last) if value is ... else inner.update({last: value})
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("data", {}),
        ("data", []),
        ("data.source", ...),
        ("data.source", 5),
        ("data.hash", ...),
        ("data.splits", ["train"]),
        ("data.size", 10**9),
        ("data.classes", 5),
        ("data.more", 1),
        ("data.about", "x"),
        ("data.about.kind", 5),
        ("data.about.kind", "sounds"),
        ("data.about.shape", [1, -8, 8]),
        ("data.about.shape", [1e999]),
        ("data.about.shape", 8),
        ("data.about.labels", {"y": -1}),
        ("data.about.kinds", {"y": 5}),
        ("data.about.n", "many"),
        ("data.about.sequences", {"context": {"size": 9, "longest": 4, "turns": "many"}}),
        ("data.about.sequences", {"context": {"size": -9}}),
        ("data.about.sequences", {"context": {"words": 9}}),
        ("data.about.sequences", {"context": 9}),
        ("fit.threads", 10**6),
        ("fit.devices", 10**6),
        ("fit.seed", 2**70),
        ("fit.steps", -1),
        ("fit.lr", None),
        ("fit.lr", ...),
        ("until", 10**40),
        ("method", 5),
        ("options", []),
        ("own", "data"),
        ("base", {"folder": 1}),
        ("format", "one"),
        ("versions", None),
    ],
)
def test_a_spec_is_checked_all_through(run: Path, place: str, value: Any) -> None:
    change(run / "spec.json", place, value)
    with pytest.raises(Problem) as caught:
        elboroom.load(run)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "\xff", '{"format": NaN}', "[" * 100_000, '{"a": 1' + "0" * 5000]
)
def test_a_spec_that_is_no_json_is_one_sentence(run: Path, text: str) -> None:
    (run / "spec.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(Problem, match=r"spec\.json"):
        elboroom.load(run)


def test_a_large_or_strange_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(1 << 40)  # holes take no room
    with pytest.raises(Problem, match="more than 256 MB"):
        read_json(tmp_path / "large.json")
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(Problem, match="neither a file nor a folder"):
        refuse_links(tmp_path)


@pytest.mark.parametrize("text", ["", '{"run": {"me', "[1]", '{"elbo": {"value": 1}}', '{"run": {"step": "x"}}'])
def test_damaged_numbers_are_told_set_aside_and_measured_again(run: Path, text: str) -> None:
    (run / "metrics.json").write_text(text)
    with pytest.warns(UserWarning, match=r"set aside as metrics\.json\.damaged and made anew"):
        found = elboroom.load(run).evaluate(samples=2, most=20, iw_most=5)
    check_numbers(found)
    assert (run / "metrics.json.damaged").read_text() == text
    check_numbers(json.loads((run / "metrics.json").read_text()))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("elbo.more", 1),
        ("elbo.value", "high"),
        ("elbo.errors", {"sampling": "small"}),
        ("elbo.settings.n", "many"),
        ("elbo.settings", [1]),
        ("elbo.interval", {"low": 0}),
        ("mig.parts", [1]),
        ("mig.mode", 5),
        ("strange", 5),
        ("strange", {"value": 1}),
        ("x" * 300, {"value": 1, "estimator": "x"}),
    ],
)
def test_numbers_are_checked_all_through(run: Path, place: str, value: Any) -> None:
    change(run / "metrics.json", place, value)
    with pytest.warns(UserWarning, match=r"metrics\.json"):
        assert set(elboroom.load(run).measured) == {"run"}


def test_what_we_write_is_what_we_read(run: Path) -> None:
    check_numbers(json.loads((run / "metrics.json").read_text()))
    assert {"elbo", "mig"} <= elboroom.load(run).measured.keys()


def test_damaged_codes_are_made_again(run: Path) -> None:
    (run / "codes" / "codes.json").write_text("{")
    with pytest.warns(UserWarning, match=r"codes\.json"):
        metrics(elboroom.load(run), ["mig"], smaller=True)
    assert json.loads((run / "codes" / "codes.json").read_text())["arrays"]


def test_damaged_loggers_are_told_anew(run: Path) -> None:
    (run / "loggers.json").write_text('{"tensorboard": {"step": "far"}}')
    with pytest.warns(UserWarning, match=r"loggers\.json"):
        elboroom.resume(run, steps=1, logger="tensorboard")
    assert json.loads((run / "loggers.json").read_text())["tensorboard"]["step"] == 5


def test_what_a_crash_left_is_swept_at_the_next_start(run: Path) -> None:
    left = [run / ".metrics.json.ab12_xyz.part", run / "checkpoints" / ".step-000000004.json.ab12_xyz.part"]
    orphan = run / "checkpoints" / "step-000000001.safetensors"
    for path in (*left, orphan):
        path.write_bytes(b"half")
    elboroom.resume(run, steps=1)
    assert not any(path.exists() for path in (*left, orphan))


def test_an_address_writes_nothing_outside_the_run(tmp_path: Path) -> None:
    there = fsspec.filesystem("memory")
    there.store["/bucket/runs/a/spec.json"] = _file(b"{}")
    there.store["/bucket/runs/a/../../../escaped"] = _file(b"out")
    with pytest.raises(Problem, match="outside its run"):
        Store("memory://bucket").fetch("a", tmp_path / "study" / "runs" / "a")
    assert not [path for path in tmp_path.rglob("*") if path.name == "escaped"]
    there.store.clear()


def _file(content: bytes) -> Any:
    from fsspec.implementations.memory import MemoryFile

    made = MemoryFile(fsspec.filesystem("memory"), "x", content)
    made.commit()
    return made


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_leaves_no_extra_line(x: Path, tmp_path: Path, number: int) -> None:
    """Stopped between two lines of the log and resumed: the same log and the same weights as without."""
    options = {**SMALL, "steps": 20, "log_every": 7, "checkpoint_every": 20, "latent": 3}
    elboroom.train("control-vae", str(x), tmp_path / "alone", **options)

    class At(session.Silence):
        def __call__(self, step: int, line: dict[str, float]) -> None:
            if step == 10:
                os.kill(os.getpid(), number)

    with pytest.raises(Stopped):
        elboroom.train("control-vae", str(x), tmp_path / "stopped", **options, bar=At)
    assert len((tmp_path / "stopped" / "log.jsonl").read_text().splitlines()) == 1
    elboroom.resume(tmp_path / "stopped")
    one, two = (tmp_path / name / "log.jsonl" for name in ("alone", "stopped"))
    assert one.read_text() == two.read_text()
    a, b = (Checkpoints(tmp_path / name / "checkpoints").newest() for name in ("alone", "stopped"))
    assert a is not None
    assert b is not None
    assert all(torch.equal(a.state[name], b.state[name]) for name in a.state)
