"""Every mistake that a user can make with the command ends in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commanded import TINY, Elbo, reals, refused
from PIL import Image


def write(path: Path, content: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def npz(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def with_nan(path: Path) -> Path:
    values = np.random.default_rng(0).random((30, 5))
    values[7, 2] = np.nan
    np.save(path, values)
    return path


def array(path: Path, *shape: int) -> Path:
    np.save(path, np.zeros(shape, np.uint8))
    return path


def truncated_png(folder: Path) -> Path:
    folder.mkdir()
    for i in range(3):
        Image.fromarray(np.full((16, 16), 40 * i, np.uint8)).save(folder / f"{i}.png")
    whole = (folder / "1.png").read_bytes()
    (folder / "1.png").write_bytes(whole[: len(whole) // 2])
    return folder


# what is wrong -> (the words of the command, what the sentence must hold); t is a folder, x a good data file
MISTAKES: dict[str, tuple[Callable[[Path, Path], list[object]], str]] = {
    "unknown method": (lambda t, x: ["train", "beta-va"], "did you mean 'beta-vae'?"),
    "unknown data": (lambda t, x: ["train", "vae", "--data", "dsprite"], "did you mean 'dsprites'?"),
    "option of another method": (
        lambda t, x: ["train", "vae", "--data", x, "--beta", 4],
        "train vae has no option --beta, which is an option of beta-vae, beta-tcvae, ",
    ),
    "no such option": (lambda t, x: ["train", "vae", "--betta", 4], "train vae has no option --betta\n"),
    "unknown option": (lambda t, x: ["train", "beta-vae", "--bet", 3], "did you mean '--beta'?"),
    "option of other programs": (lambda t, x: ["train", "vae", "--learning-rate", 1], "did you mean '--lr'?"),
    "epochs of other programs": (lambda t, x: ["train", "vae", "--num-epochs", 1], "did you mean '--epochs'?"),
    "batches of other programs": (lambda t, x: ["train", "vae", "--batchsize", 1], "did you mean '--batch-size'?"),
    "latent of other programs": (lambda t, x: ["train", "vae", "--latent_dim", 1], "did you mean '--latent'?"),
    "steps and epochs": (
        lambda t, x: ["train", "vae", "--data", x, "--epochs", 1, "--steps", 3],
        "--steps and --epochs both say how long to train; give one of them",
    ),
    "folder of another name": (
        lambda t, x: ["train", "vae", "--data", f"{write(t / 'photos/a.png').parent.parent}/photo/"],
        "/photo/ does not exist; did you mean ",
    ),
    "no such folder": (lambda t, x: ["train", "vae", "--data", "photo/"], "photo/ does not exist"),
    "unknown command": (lambda t, x: ["trian"], "trian"),
    "unknown net": (lambda t, x: ["train", "vae", "--data", x, "--net", "burges"], "did you mean 'burgess'?"),
    "unknown label": (lambda t, x: ["train", "vae", "--data", "dsprites", "--given", "shap"], "did you mean 'shape'?"),
    "negative beta": (lambda t, x: ["train", "beta-vae", "--data", x, "--beta", -3], "--beta -3"),
    "beta no number": (lambda t, x: ["train", "beta-vae", "--data", x, "--beta", "much"], "--beta"),
    "zero steps": (lambda t, x: ["train", "vae", "--data", x, "--steps", 0], "--steps 0"),
    "one example a batch": (lambda t, x: ["train", "factor-vae", "--data", x, "--batch-size", 1], "use 2 or more"),
    "looks without patience": (
        lambda t, x: ["train", "vae", "--data", x, "--look-every", 5],
        "--look-every has no effect",
    ),
    "no kind of picture": (lambda t, x: ["compare", x, x, "--out", t / "w.txt"], "a .png, .svg or .pdf file"),
    "wrong shape": (lambda t, x: ["train", "vae", "--data", array(t / "a.npy", 9, 3, 3, 3, 3)], "(9, 3, 3, 3, 3)"),
    "too large images": (lambda t, x: ["train", "vae", "--data", array(t / "a.npy", 99, 200, 200)], "128"),
    "vectors in a conv net": (
        lambda t, x: ["train", "vae", "--net", "burgess", "--data", reals(t / "a.npy")],
        "for vectors use one of mlp-300",
    ),
    "several arrays": (lambda t, x: ["train", "vae", "--data", npz(t / "a.npz", a=np.ones(3), b=np.ones(3))], "a, b"),
    "empty folder": (lambda t, x: ["train", "vae", "--data", t], "no image"),
    "truncated image": (lambda t, x: ["train", "vae", "--data", truncated_png(t / "pictures")], "1.png"),
    "truncated npz": (lambda t, x: ["train", "vae", "--data", write(t / "a.npz", b"PK\x03\x04 not much")], "a.npz"),
    "truncated npy": (lambda t, x: ["train", "vae", "--data", write(t / "a.npy", x.read_bytes()[:500])], "a.npy"),
    "NaN in data": (lambda t, x: ["train", "vae", "--data", with_nan(t / "a.npy")], "row 7"),
    "no such file": (lambda t, x: ["train", "vae", "--data", t / "nothing.npy"], "nothing.npy"),
    "illegal pair": (lambda t, x: ["train", "vae", "--data", x, "--posterior", "point"], "--posterior gaussian"),
    "logistic on binary": (
        lambda t, x: ["train", "vae", "--data", "dsprites", "--likelihood", "logistic"],
        "use bernoulli",
    ),
    "bernoulli on reals": (
        lambda t, x: ["train", "vae", "--likelihood", "bernoulli", "--data", reals(t / "a.npy")],
        "needs values in [0, 1], and",
    ),
    "no run": (lambda t, x: ["eval", t / "nowhere"], "does not exist"),
    "not a run": (lambda t, x: ["eval", t], "is not a run"),
    "nothing to start from": (lambda t, x: ["train", "vae", "--data", x, "--from", t / "nowhere"], "nowhere"),
    "missing argument": (lambda t, x: ["eval"], "DIR"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence(mistake: str, elbo: Elbo, images: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t").mkdir()
    words, expected = MISTAKES[mistake]
    code, out, err = elbo(*words(tmp_path / "t", images))
    assert code == 2, err
    assert out == ""
    assert err.startswith("elbo: ")
    assert len(err.splitlines()) == 1, err
    assert expected in err
    assert not (tmp_path / "runs").exists(), "nothing is written for a run that cannot be"


def test_a_folder_that_holds_another_run(elbo: Elbo, run: Path, images: Path) -> None:
    before = (run / "spec.json").read_text()
    refused(elbo("train", "vae", "--data", images, "--out", run, *TINY), "already has a run")
    assert (run / "spec.json").read_text() == before


def test_damaged_checkpoints(elbo: Elbo, run: Path) -> None:
    newest, older = sorted((run / "checkpoints").glob("*.safetensors"), reverse=True)
    newest.write_bytes(newest.read_bytes()[:-100])
    code, _, err = elbo("resume", run)
    assert code == 0, err
    assert "step-000000012.safetensors is damaged" in err
    assert "using the one before it" in err
    older = min((run / "checkpoints").glob("*.safetensors"))
    for file in (run / "checkpoints").glob("*.safetensors"):
        file.write_bytes(b"nonsense")
    code, _, err = elbo("eval", run)
    assert code == 2
    assert "every checkpoint" in err
    assert older.exists()


def test_a_run_of_a_newer_format(elbo: Elbo, run: Path) -> None:
    spec = json.loads((run / "spec.json").read_text()) | {"format": 99, "what_is_this": 1}
    (run / "spec.json").write_text(json.dumps(spec))
    refused(elbo("eval", run), "has format 99, newer than")
    (run / "spec.json").write_text("{")
    refused(elbo("eval", run), "cannot be read")


def test_a_complete_run_asks_how_much_more(elbo: Elbo, run: Path) -> None:
    refused(elbo("resume", run), "--steps MORE")
    refused(elbo("resume", run, "--steps", 0), "--steps 0")


def test_data_that_changed(elbo: Elbo, run: Path, images: Path, tmp_path: Path) -> None:
    spec = json.loads((run / "spec.json").read_text())
    other = tmp_path / "other.npy"
    np.save(other, np.zeros((200, 16, 16), np.uint8))
    spec["data"]["source"] = str(other)
    (run / "spec.json").write_text(json.dumps(spec))
    refused(elbo("resume", run, "--steps", 4), "its hash differs")


def test_bad_pictures(elbo: Elbo, run: Path, tmp_path: Path) -> None:
    refused(elbo("sample", run, "--out", tmp_path / "a.txt"), ".png or .gif")
    refused(elbo("sample", run, "--out", run / "spec.json" / "a.png"), "spec.json")
    refused(elbo("encode", run, "--out", tmp_path / "no" / "a.npy"), "cannot write")
    refused(elbo("eval", run, "--split", "tset"), "did you mean 'test'?")


def test_divergence_is_diagnosed(elbo: Elbo, images: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ["train", "vae", "--data", images, "--out", out, "--steps", 400, "--lr", 1e6, *TINY]
    code, _, err = elbo(*words)
    assert code == 2
    assert "training stopped: " in err
    assert "--lr" in err.splitlines()[-1]
    for checkpoint in (out / "checkpoints").glob("step-*.json"):
        import elboroom

        assert checkpoint
        state = elboroom.load(out).model.state_dict()
        assert all(np.isfinite(value).all() for value in state.values()), "a bad state is never kept"


def test_no_space(elbo: Elbo, images: Path, disk: Callable[[str], Path]) -> None:
    """Checkpoints of 1.9 MB fit once: the second write fails, the first is kept."""
    out = disk("size=3m") / "run"
    words = ["train", "vae", "--data", images, "--out", out, "--steps", 100, "--net", "mlp-300", *TINY]
    code, _, err = elbo(*words)
    assert code == 2
    assert "no space left" in err.splitlines()[-1]
    assert not list((out / "checkpoints").glob(".*part"))
    assert elbo("eval", out, "--samples", 2)[0] in (0, 2)
    assert elboroom_step(out) >= 4


def elboroom_step(folder: Path) -> int:
    import elboroom

    return elboroom.load(folder).step


def test_no_permission(elbo: Elbo, images: Path, disk: Callable[[str], Path]) -> None:
    refused(elbo("train", "vae", "--data", images, "--out", disk("ro") / "run"), "Read-only file system")
