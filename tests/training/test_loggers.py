"""TensorBoard, MLflow and W&B get what a run logs, each line once, and its pictures; and change nothing of it."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract import Killed, act_at, kill
from PIL import Image
from safetensors.numpy import load_file
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from wandb.proto import wandb_internal_pb2
from wandb.sdk.internal.datastore import DataStore

import elboroom
from elboroom import cli
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.loggers import writers
from elboroom.training.recorder import read_log

TINY: dict[str, Any] = {
    "steps": 8, "log_every": 2, "checkpoint_every": 4, "batch_size": 8, "latent": 3, "net": "mlp-300", "threads": 1,
}  # fmt: skip
PICTURES = {"samples", "reconstructions", "traversals"}
History = list[tuple[int, float]]


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent to anybody."""
    monkeypatch.setenv("WANDB_MODE", "offline")
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME", "WANDB_PROJECT"):
        monkeypatch.delenv(name, raising=False)


def events(folder: Path) -> Any:
    found = EventAccumulator(str(folder / "tensorboard"), size_guidance={"scalars": 0, "images": 0, "tensors": 0})
    return found.Reload()


def records(path: Path) -> list[Any]:
    """What a local file of W&B holds so far."""
    store, found = DataStore(), list[Any]()
    with suppress(AssertionError):  # the last record is only half there
        store.open_for_scan(str(path))
        while (data := store.scan_data()) is not None:
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            found.append(record)
    return found


def rows(folder: Path) -> list[dict[str, Any]]:
    """The history of W&B, from its local files, which a process of its own may still be writing when a run has ended."""
    found = []
    for path in sorted((folder / "wandb").glob("offline-run-*/*.wandb")):
        end, whole = time.monotonic() + 30, records(path)
        while not any(record.HasField("exit") for record in whole) and time.monotonic() < end:
            time.sleep(0.1)
            whole = records(path)
        for record in whole:
            items = record.history.item
            found.append({item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in items})
    return [row for row in found if row]


def in_tensorboard(folder: Path, name: str) -> History:
    found = [(event.step, event.value) for event in events(folder).Scalars(name)]
    return sorted(found)  # files of the same second are read in any order


def in_mlflow(folder: Path, name: str) -> History:
    (path,) = (folder / "mlflow").glob(f"*/*/metrics/{name}")
    return [(int(line.split()[2]), float(line.split()[1])) for line in path.read_text().splitlines()]


def in_wandb(folder: Path, name: str) -> History:
    return [(row["step"], row[name]) for row in rows(folder) if name in row]


READ: dict[str, Callable[[Path, str], History]] = {
    "tensorboard": in_tensorboard,
    "mlflow": in_mlflow,
    "wandb": in_wandb,
}


def logged(folder: Path, name: str) -> History:
    return [(int(line["step"]), line[name]) for line in read_log(folder / "log.jsonl")]


def same(found: History, wanted: History) -> bool:
    """Step by step, in the precision of TensorBoard."""
    return [step for step, _ in found] == [step for step, _ in wanted] and np.allclose(
        [value for _, value in found], [value for _, value in wanted], rtol=1e-6
    )


@pytest.mark.parametrize("name", READ)
def test_every_line_arrives_once_over_a_crash_and_two_resumes(name: str, pixels: DataSet, tmp_path: Path) -> None:
    folder, read = tmp_path / "run", READ[name]
    with pytest.raises(Killed):  # after lines at 2, 4 and 6, of which the checkpoint at 4 knows two
        elboroom.train("beta-vae", pixels, folder, logger=name, bar=act_at(7, kill), beta=3.0, **TINY)
    assert [step for step, _ in read(folder, "nll")] == [2, 4, 6]
    elboroom.resume(folder, data=pixels, logger=name)
    elboroom.resume(folder, 4, data=pixels, logger=name)
    assert [step for step, _ in logged(folder, "nll")] == [2, 4, 6, 8, 10, 12]
    for term in ("nll", "kl", "loss"):
        assert same(read(folder, term), logged(folder, term))
    assert [step for step, _ in read(folder, "evidence/elbo")] == [8, 12], "measured at the end of each"
    if name == "mlflow":
        (run,) = (path.parent for path in (folder / "mlflow").glob("*/*/params"))
        assert (run / "params" / "beta").read_text() == "3.0"
    if name == "wandb":
        assert len({path.name for path in (folder / "wandb").glob("offline-run-*/*.wandb")}) == 1, "one identifier"


def test_a_logger_that_comes_late_is_told_what_it_missed(pixels: DataSet, tmp_path: Path) -> None:
    elboroom.train("vae", pixels, tmp_path / "run", **TINY)
    elboroom.resume(tmp_path / "run", 4, data=pixels, logger="tensorboard")
    assert same(in_tensorboard(tmp_path / "run", "nll"), logged(tmp_path / "run", "nll"))


def test_pictures(rgb: DataSet, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    elboroom.train("vae", rgb, folder, logger=" tensorboard, mlflow,wandb,", **TINY)
    found = events(folder)
    assert set(found.Tags()["images"]) == PICTURES
    (event,) = found.Images("traversals")
    sheet = np.asarray(Image.open(io.BytesIO(event.encoded_image_string)))
    assert (event.step, sheet.shape) == (8, (3 * 17, 9 * 17, 3)), "three dimensions, nine points each"
    (event,) = found.Images("reconstructions")
    sheet = np.asarray(Image.open(io.BytesIO(event.encoded_image_string)))
    run = elboroom.load(folder, data=rgb)
    first = np.moveaxis(run.examples(10).x.numpy()[0], 0, -1)
    assert np.array_equal(sheet[:16, :16], np.rint(255 * first)), "the input, pixel for pixel"
    made = np.moveaxis(run.reconstruct(run.examples(10))[0], 0, -1)
    assert np.abs(sheet[17:33, :16] - 255 * made).max() <= 1
    artifacts = {path.name for path in (folder / "mlflow").glob("*/*/artifacts/*")}
    assert artifacts == {f"{name}-8.png" for name in PICTURES}
    assert {name.split(".")[0] for row in rows(folder) for name in row} >= PICTURES
    assert len(list((folder / "wandb").glob("offline-run-*/files/media/images/*.png"))) == 3


def test_sentences_are_shown_as_text(sentences: DataSet, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    small = {"embed": 6, "hidden": 7, "latent": 4, "steps": 2, "batch_size": 8, "threads": 1}
    run = elboroom.train("vae", sentences, folder, logger="tensorboard,mlflow,wandb", **small)
    (event,) = events(folder).Tensors("reconstructions/text_summary")
    shown = [line.strip() for line in event.tensor_proto.string_val[0].decode().split("\n")]
    made = run.reconstruct(run.sentences(10))
    assert shown == [" | ".join(pair).strip() for pair in zip(run.sentences(10), made, strict=True)]
    texts = {path.name: path.read_text() for path in (folder / "mlflow").glob("*/*/artifacts/*.txt")}
    assert set(texts) == {f"{name}-2.txt" for name in PICTURES}
    assert texts["samples-2.txt"].splitlines() == run.sample(25)
    assert {name.split(".")[0] for row in rows(folder) for name in row} >= PICTURES


@pytest.mark.parametrize("method", ["ae", "vae"])
def test_vectors_have_numbers_and_no_pictures(method: str, vectors: DataSet, tmp_path: Path) -> None:
    elboroom.train(method, vectors, tmp_path / "run", logger="tensorboard", **TINY)
    tags = events(tmp_path / "run").Tags()
    assert "nll" in tags["scalars"]
    assert not tags["images"]


@pytest.mark.slow
def test_a_logger_changes_no_number(pixels: DataSet, tmp_path: Path) -> None:
    for name, logger in (("with", ",".join(READ)), ("without", "")):
        run = elboroom.train("factor-vae", pixels, tmp_path / name, logger=logger, **TINY)
        elboroom.resume(run.folder, 2, data=pixels, logger=logger).evaluate(samples=2, most=50)
    one, other = tmp_path / "with", tmp_path / "without"
    for file in ("log.jsonl", "spec.json", "metrics.json"):
        assert (one / file).read_bytes() == (other / file).read_bytes()
    kept, wanted = (load_file(folder / "checkpoints" / "step-000000010.safetensors") for folder in (one, other))
    assert kept.keys() == wanted.keys()
    assert all(np.array_equal(kept[key], wanted[key]) for key in wanted)
    assert not (other / "loggers.json").exists()


def test_a_logger_that_fails_is_left_behind_and_catches_up(
    pixels: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = writers.TensorBoard.scalars

    def gone(self: Any, values: Any, step: int) -> None:
        if step > 4:
            raise ConnectionError("the server\nis gone")
        whole(self, values, step)

    with monkeypatch.context() as patch:
        patch.setattr(writers.TensorBoard, "scalars", gone)
        with pytest.warns(UserWarning, match=r"--logger tensorboard stopped \(the server is gone\)"):
            run = elboroom.train("vae", pixels, tmp_path / "run", logger="tensorboard", **TINY)
    assert run.step == 8
    assert [step for step, _ in in_tensorboard(run.folder, "nll")] == [2, 4]
    elboroom.resume(run.folder, 2, data=pixels, logger="tensorboard")
    assert same(in_tensorboard(run.folder, "nll"), logged(run.folder, "nll"))


@pytest.mark.slow
def test_two_processes_log_once(pixels: DataSet, tmp_path: Path) -> None:
    run = elboroom.train("vae", pixels, tmp_path / "run", logger="tensorboard", device="cpu", devices=2, **TINY)
    assert same(in_tensorboard(run.folder, "nll"), logged(run.folder, "nll"))
    assert set(events(run.folder).Tags()["images"]) == PICTURES


def test_mistakes_are_told_before_anything_is_written(
    pixels: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Problem, match="unknown logger 'tensorbord'; did you mean 'tensorboard'"):
        elboroom.train("vae", pixels, tmp_path / "run", logger="tensorbord", **TINY)
    for name in READ:
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(Problem, match=rf"pip install 'elboroom\[{name}\]'"):
            elboroom.train("vae", pixels, tmp_path / "run", logger=name, **TINY)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_the_commands_have_it(pixels: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def elbo(*words: object) -> None:
        monkeypatch.setattr(sys, "argv", ["elbo", *map(str, words)])
        cli.main()

    data, folder = tmp_path / "x.npy", tmp_path / "run"
    np.save(data, (255 * pixels.x(np.arange(100)).numpy()[:, 0]).astype(np.uint8))
    said = [word for name, value in TINY.items() for word in (f"--{name.replace('_', '-')}", value)]
    elbo("train", "vae", "--data", data, "--out", folder, "--logger", "tensorboard", *said)
    elbo("resume", folder, "--steps", 2, "--logger", "tensorboard")
    assert same(in_tensorboard(folder, "nll"), logged(folder, "nll"))
    study = tmp_path / "study.toml"
    every = "\n".join(f"{name} = {json.dumps(value)}" for name, value in TINY.items())
    measure = "[measure]\nsamples = 2\nmost = 20"
    study.write_text(f'data = "{data}"\nseeds = 2\n[every]\n{every}\n[[runs]]\nmethod = "vae"\n{measure}\n')
    elbo("study", "run", study, "--out", tmp_path / "study", "--workers", 1, "--logger", "tensorboard")
    folders = list((tmp_path / "study" / "runs").iterdir())
    assert len(folders) == 2
    for folder in folders:
        assert same(in_tensorboard(folder, "nll"), logged(folder, "nll"))
        ((step, value),) = in_tensorboard(folder, "measured/elbo")
        measured = json.loads((folder / "metrics.json").read_text())
        assert (step, value) == (8, pytest.approx(measured["elbo"]["value"], rel=1e-6))
        assert set(events(folder).Tags()["images"]) == PICTURES
