"""A run folder is a stranger's: what was put into it decides neither what runs nor where anything is written."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors import torch as tensors
from shell import elbo
from small_studies import Here

import elboroom
from elboroom.core.files import refuse_links, write
from elboroom.core.locks import LOCK, is_free, one_process
from elboroom.core.problem import Problem
from elboroom.runs import samplers
from elboroom.studies import Study, run_study
from elboroom.studies.engines.work import attempt
from elboroom.studies.schema import Measure
from elboroom.studies.space import Cell
from elboroom.studies.store.index import driven, holding
from elboroom.studies.store.remote import files_of
from elboroom.training.recorder import cut_log, read_log

SMALL = {"steps": 4, "batch_size": 8, "latent": 2, "checkpoint_every": 2, "threads": 1, "device": "cpu"}
OF = {"pixels": {}, "tokens": {"embed": 6, "hidden": 7}}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    np.save(folder / "x.npy", rng.integers(0, 256, (60, 8, 8)).astype(np.uint8))
    (folder / "words.txt").write_text("".join(f"w{i % 7} w{i % 5} w{i % 3}\n" for i in range(60)))
    return {"pixels": folder / "x.npy", "tokens": folder / "words.txt"}


@pytest.fixture(scope="module", params=["pixels", "tokens"])
def trained(request: pytest.FixtureRequest, data: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "run"
    elboroom.train("vae", str(data[request.param]), folder, **SMALL, **OF[request.param])
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy, to be damaged."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


def newest(run: Path) -> Path:
    return max((run / "checkpoints").glob("step-*.safetensors"))


def forge(run: Path, **changed: torch.Tensor | None) -> None:
    """Puts other tensors, or none, into the newest checkpoint and corrects its checksum, as an attacker would."""
    path = newest(run)
    state = tensors.load(path.read_bytes()) | changed
    content = tensors.save({name: tensor for name, tensor in state.items() if tensor is not None})
    path.write_bytes(content)
    vouch = json.loads(path.with_suffix(".json").read_text())
    alias = {name: kept for name, kept in vouch["alias"].items() if state.get(kept) is not None}
    said = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content), "alias": alias}
    path.with_suffix(".json").write_text(json.dumps(vouch | said))


def a_moment(run: Path) -> str:
    return next(name for name in sorted(tensors.load(newest(run).read_bytes())) if name.endswith("exp_avg"))


def refused(run: Path) -> str:
    """What `resume` says. In a process of its own: this once was a segmentation fault."""
    words = [sys.executable, "-m", "elboroom", "resume", str(run), "--steps", "2"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.slow
def test_a_moment_of_another_shape_is_refused(run: Path) -> None:
    forge(run, **{a_moment(run): torch.zeros(2)})
    assert "has shape (2,); this run needs" in refused(run)


@pytest.mark.parametrize("wrong", ["type", "value", "unknown", "group"])
def test_other_tensors_are_refused(run: Path, wrong: str) -> None:
    name = a_moment(run)
    like = tensors.load(newest(run).read_bytes())[name]
    changed, said = {
        "type": ({name: like.double()}, "has type torch.float64"),
        "value": ({name: torch.full_like(like, torch.nan)}, "NaN or infinite"),
        "unknown": ({"model.more": torch.zeros(1)}, "unknown tensor 'model.more'"),
        "group": ({"optimiser/model/9999/exp_avg": torch.zeros(1)}, "unknown tensor"),
    }[wrong]
    forge(run, **changed)
    with pytest.raises(Problem, match=said):
        elboroom.resume(run, steps=2)


def a_weight(run: Path) -> tuple[str, torch.Tensor]:
    state = tensors.load(newest(run).read_bytes())
    return next((name, state[name]) for name in sorted(state) if name.startswith("model.") and state[name].ndim > 1)


@pytest.mark.parametrize("wrong", ["type", "shape", "nan", "infinite", "lacking", "unknown"])
def test_whatever_reads_weights_compares_them(run: Path, data: dict[str, Path], tmp_path: Path, wrong: str) -> None:
    name, like = a_weight(run)
    changed, said = {
        "type": ({name: like.double()}, "has type torch.float64"),
        "shape": ({name: like[:1].contiguous()}, "has shape"),
        "nan": ({name: torch.full_like(like, torch.nan)}, "NaN or infinite"),
        "infinite": ({name: torch.full_like(like, torch.inf)}, "NaN or infinite"),
        "lacking": ({name: None}, f"lacks '{name}'"),
        "unknown": ({"model.more": torch.zeros(1)}, "unknown tensor 'model.more'"),
    }[wrong]
    forge(run, **changed)
    with pytest.raises(Problem, match=said):
        elboroom.load(run)
    done = elbo("eval", run)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr


def test_a_base_or_a_start_is_compared_too(keeping: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(keeping, tmp_path / "run"))
    name, like = a_weight(run)
    forge(run, **{name: torch.full_like(like, torch.nan)})
    data, few = elboroom.load(keeping).spec.data["source"], {k: v for k, v in SMALL.items() if k != "latent"}
    with pytest.raises(Problem, match="NaN or infinite"):
        elboroom.train("probe", data, tmp_path / "new", **few, base=run)
    with pytest.raises(Problem, match="NaN or infinite"):
        elboroom.train("vae", data, tmp_path / "newer", **SMALL, net="mlp-300", warm=run)


def test_weights_that_are_no_numbers_are_not_kept(data: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"a weight is NaN or infinite after step 1.*no checkpoint yet"):
        elboroom.train("vae", str(data["pixels"]), tmp_path / "run", **{**SMALL, "steps": 1}, optimiser="sgd", lr=1e38)
    assert not list((tmp_path / "run").glob("checkpoints/*"))


@pytest.mark.parametrize("beside", ["controller", "average"])
def test_what_stands_beside_the_model_is_not_begun_anew(data: dict[str, Path], tmp_path: Path, beside: str) -> None:
    method, options = ("control-vae", {}) if beside == "controller" else ("vae", {"average": 0.9})
    run = elboroom.train(method, str(data["pixels"]), tmp_path / "run", **SMALL, **options).folder
    state = tensors.load(newest(run).read_bytes())
    start = "objectives." if beside == "controller" else "average.weights."
    forge(run, **{next(name for name in sorted(state) if name.startswith(start)): None})
    with pytest.raises(Problem, match=r"lacks|has no average of"):
        elboroom.load(run)


def test_memory_of_an_optimiser_is_whole(run: Path) -> None:
    moment = a_moment(run)
    forge(run, **{moment: None})
    with pytest.raises(Problem, match=f"lacks '{moment}'"):
        elboroom.resume(run, steps=2)


def test_a_checkpoint_of_another_size_is_not_read(run: Path) -> None:
    with newest(run).open("ab") as file:
        file.truncate(1 << 40)  # holes take no room
    with pytest.warns(UserWarning, match="it has 1,099,511,627,776 bytes"):
        elboroom.load(run)
    vouch = newest(run).with_suffix(".json")
    vouch.write_text(json.dumps(json.loads(vouch.read_text()) | {"bytes": 1 << 40}))
    with pytest.warns(UserWarning, match="GB of memory"):
        elboroom.load(run)


def test_weights_without_a_measure_end_in_a_sentence(run: Path) -> None:
    name, like = a_weight(run)
    forge(run, **{name: torch.full_like(like, 1e38)})
    done = elbo("eval", run, "--samples", 2, "--most", 10, "--iw-most", 5)
    assert done.returncode in (0, 2), done.stderr
    assert "Traceback" not in done.stderr


def test_weights_of_another_run_are_refused(run: Path, data: dict[str, Path], tmp_path: Path) -> None:
    kind = "tokens" if (run / "tokeniser.json").exists() else "pixels"
    elboroom.train("vae", str(data[kind]), tmp_path / "other", **SMALL, **OF[kind], seed=1)
    shutil.rmtree(run / "checkpoints")
    shutil.copytree(tmp_path / "other" / "checkpoints", run / "checkpoints")
    with pytest.warns(UserWarning, match="belongs to another run"), pytest.raises(Problem, match="every checkpoint"):
        elboroom.load(run)


def test_a_run_of_before_identifiers_goes_on(run: Path) -> None:
    spec = json.loads((run / "spec.json").read_text())
    del spec["id"]
    (run / "spec.json").write_text(json.dumps(spec))
    for path in (run / "checkpoints").glob("*.json"):
        vouch = json.loads(path.read_text())
        del vouch["run"]
        path.write_text(json.dumps(vouch))
    assert elboroom.resume(run, steps=2).step == 6


@pytest.fixture(scope="module")
def keeping(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with labels that keeps every sampler, and an attribute."""
    folder, rng = tmp_path_factory.mktemp("keeping"), np.random.default_rng(0)
    np.savez(folder / "x.npz", x=rng.integers(0, 256, (60, 8, 8)).astype(np.uint8), y=np.arange(60) % 2)
    run = elboroom.train("vae", str(folder / "x.npz"), folder / "run", **SMALL, net="mlp-300")
    run.attribute()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samplers.Couplings, "steps", 2)
        for name, components in (("gmm", 2), ("kmeans", 2), ("flow", None)):
            run.sample(1, sampler=name, components=components)
    return run.folder


State = dict[str, torch.Tensor]
FORGED: dict[str, Callable[[State], State]] = {
    "nothing": lambda _: {},
    "names": lambda state: {f"{name}.more": tensor for name, tensor in state.items()},
    "one more": lambda state: state | {"more": torch.ones(1)},
    "shape": lambda state: {name: tensor[..., None].contiguous() for name, tensor in state.items()},
    "smaller": lambda state: {name: tensor[:1].contiguous() for name, tensor in state.items()},
    "whole numbers": lambda state: {name: tensor.long() for name, tensor in state.items()},
    "nan": lambda state: {name: torch.full_like(tensor, torch.nan) for name, tensor in state.items()},
    "below zero": lambda state: {name: -tensor.abs() for name, tensor in state.items()},
    "huge": lambda state: {
        name: torch.full_like(tensor, torch.finfo(tensor.dtype).max) for name, tensor in state.items()
    },
}


@pytest.mark.filterwarnings("ignore:.*is damaged.*it is fitted anew")
@pytest.mark.parametrize("how", FORGED)
@pytest.mark.parametrize("which", ["samplers/gmm-2", "samplers/kmeans-2", "samplers/flow", "attribute-*"])
def test_what_is_kept_of_codes_may_be_forged(
    keeping: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str, how: str
) -> None:
    """It is checked tensor by tensor, and fitted anew; or the command ends in a sentence."""
    monkeypatch.setattr(samplers.Couplings, "steps", 2)
    run = Path(shutil.copytree(keeping, tmp_path / "run"))
    (path,) = run.glob(f"{which}.safetensors")
    with safe_open(path, "pt") as file:
        about = file.metadata()
    content = tensors.save(FORGED[how](tensors.load(path.read_bytes())), about)
    path.write_bytes(content)
    if path.with_suffix(".json").exists():
        vouch = json.loads(path.with_suffix(".json").read_text())
        path.with_suffix(".json").write_text(json.dumps(vouch | {"sha256": hashlib.sha256(content).hexdigest()}))
    name, _, count = which.removeprefix("samplers/").partition("-")
    sample = ["sample", run, "--sampler", name, *(["--components", count] if count else [])]
    edit = ["edit", run, "--to", "1", "--n", 2, "--by", "fgim"]
    done = elbo(*(edit if which == "attribute-*" else sample), "--out", tmp_path / "x.png")
    assert done.returncode in (0, 2), done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 0 or done.stderr.startswith("elbo: "), done.stderr
    if how not in ("below zero", "huge"):  # what these are in place of is known to be wrong, and made anew
        assert done.returncode == 0, done.stderr
        assert path.read_bytes() != content


@pytest.mark.parametrize("name", ["metrics.json", ".metrics.json.part", "report.html", "figures", "checkpoints", "a/b"])
def test_links_inside_a_run_are_refused_and_nothing_is_written_through_them(
    run: Path, tmp_path: Path, name: str
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "precious").write_text("mine")
    path = run / name
    path.parent.mkdir(exist_ok=True)
    if path.is_dir():
        shutil.rmtree(path)
    path.symlink_to(mine if name in ("figures", "checkpoints") else mine / "precious")
    for use in (elboroom.load, elboroom.resume):
        with pytest.raises(Problem, match="is a symbolic link"):
            use(run)
    assert [p.name for p in mine.iterdir()] == ["precious"]
    assert (mine / "precious").read_text() == "mine"


def test_writing_replaces_a_link_and_does_not_follow_it(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    for name in ("metrics.json", ".metrics.json.part"):
        (tmp_path / name).symlink_to(tmp_path / "precious")
    write(tmp_path / "metrics.json", b"{}")
    assert (tmp_path / "precious").read_text() == "mine"
    assert (tmp_path / "metrics.json").read_text() == "{}"
    assert not (tmp_path / "metrics.json").is_symlink()
    assert not [p for p in tmp_path.iterdir() if p.name.endswith(".part") and not p.is_symlink()]


def test_what_is_written_has_the_permissions_that_the_user_gives(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write(tmp_path / "x", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640


@pytest.mark.slow
def test_workers_import_nothing_from_the_current_folder(tmp_path: Path, data: dict[str, Path]) -> None:
    (tmp_path / "json.py").write_text("open('imported', 'w').close()\nraise SystemExit(1)\n")
    (tmp_path / "study.toml").write_text(
        f'data = "{data["pixels"]}"\nseeds = 1\n[every]\nsteps = 2\nbatch_size = 8\nlatent = 2\n[[runs]]\nmethod = "vae"\n'
        "[measure]\nsamples = 2\nmost = 10\n"
    )
    elbo = "from elboroom.cli import main; main()"
    words = [sys.executable, "-P", "-c", elbo, "study", "run", "study.toml", "--out", "out", "--workers", "1"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "imported").exists()


def test_a_damaged_line_of_the_log_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 1}\n{"st\n[2]\n{"step": 3}\n{"step": 4')
    with pytest.warns(UserWarning, match="line [23] is damaged"):
        assert [line["step"] for line in read_log(path)] == [1, 3]
    with pytest.warns(UserWarning, match="is damaged"):
        cut_log(path, 1)
    assert path.read_text() == '{"step": 1}\n'


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("use", ["train", "one_process", "is_free", "holding", "driven", "study"])
def test_no_lock_is_taken_through_a_link(data: dict[str, Path], tmp_path: Path, use: str, there: bool) -> None:
    """A file elsewhere is neither made nor locked, whatever comes first."""
    (folder := tmp_path / "folder").mkdir()
    mine = tmp_path / "mine"
    if there:
        mine.write_text("mine")
    (folder / "spec.json").write_text("{}")
    lock = folder / ("lock" if use in ("driven", "study") else LOCK)
    lock.symlink_to(mine)
    study = Study.of({"data": str(data["pixels"]), "runs": [{"method": "vae"}]})
    uses: dict[str, Callable[[], object]] = {
        "train": lambda: elboroom.train("vae", str(data["pixels"]), folder, **SMALL),
        "one_process": lambda: one_process(folder).__enter__(),
        "is_free": lambda: is_free(folder),
        "holding": lambda: holding(lock).__enter__(),
        "driven": lambda: driven(folder),
        "study": lambda: run_study(study, folder, Here(), quiet=True),
    }
    with pytest.raises(Problem, match="is a symbolic link"):
        uses[use]()
    assert mine.exists() == there
    assert not there or mine.read_text() == "mine"


@pytest.mark.parametrize("name", ["workers.log", "index.jsonl", "runs", "study.json.damaged"])
@pytest.mark.parametrize("kept", [None, "{"])
def test_nothing_is_appended_through_a_link_of_a_study(
    data: dict[str, Path], tmp_path: Path, name: str, kept: str | None
) -> None:
    """Nor where study.json is gone or damaged, so that the study is written anew."""
    (folder := tmp_path / "folder").mkdir()
    (mine := tmp_path / "mine").mkdir()
    (mine / "precious").write_text("mine")
    (folder / "index.jsonl").touch()
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(mine if name == "runs" else mine / "precious")
    if kept is not None:
        (folder / "study.json").write_text(kept)
    study = Study.of({"data": str(data["pixels"]), "every": {"steps": 2}, "runs": [{"method": "vae"}]})
    with pytest.raises(Problem, match="is a symbolic link"):
        run_study(study, folder, Here(), quiet=True)
    assert [p.name for p in mine.iterdir()] == ["precious"]
    assert (mine / "precious").read_text() == "mine"
    assert not (folder / "lock").exists()


def test_the_folder_of_a_run_of_a_study_is_no_link(data: dict[str, Path], tmp_path: Path) -> None:
    cell, mine = Cell("vae", str(data["pixels"]), None, 0, {"steps": 2}), tmp_path / "mine"
    mine.mkdir()
    (tmp_path / "root" / "runs").mkdir(parents=True)
    (tmp_path / "root" / "runs" / cell.name).symlink_to(mine)
    told = attempt(cell, tmp_path / "root", Measure())
    assert told["state"] == "failed"
    assert "is a symbolic link" in told["error"]
    assert not list(mine.iterdir())


@pytest.mark.parametrize(
    ("place", "fine"),
    [("wandb", True), ("runs/a/wandb", True), ("a/wandb", False), ("checkpoints/wandb", False)],
)
def test_links_of_weights_and_biases_are_at_the_top_of_a_run(tmp_path: Path, place: str, fine: bool) -> None:
    folder = tmp_path / "run"
    (folder / place).mkdir(parents=True)
    (folder / place / "latest-run").symlink_to(tmp_path)
    if fine:
        assert refuse_links(folder) is None  # type: ignore[func-returns-value]
        assert files_of(folder) == []
    else:
        with pytest.raises(Problem, match="is a symbolic link"):
            refuse_links(folder)
