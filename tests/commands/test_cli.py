"""The command from end to end, and every mistake that a user can make with it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from elboroom import cli

TINY = ["--batch-size", "8", "--latent", "3", "--threads", "1", "--log-every", "2", "--checkpoint-every", "4"]
Elbo = Callable[..., tuple[int, str, str]]


@pytest.fixture
def elbo(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Elbo:
    """Runs the command in this process: (exit code, stdout, stderr)."""

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["elbo", *map(str, words)])
        code: Any = 0
        try:
            cli.main()
        except SystemExit as leave:
            code = leave.code or 0
        out, err = capsys.readouterr()
        return int(code), out, err

    return run


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("images") / "x.npy"
    np.save(path, (np.random.default_rng(0).random((200, 16, 16)) * 255).astype(np.uint8))
    return path


@pytest.mark.slow
def test_what_was_chosen_is_in_the_title_and_the_folder(
    images: Path, elbo: Elbo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = ["--data", images, "--posterior", "vmf", "--net", "mlp-300", "--steps", 2, *TINY]
    assert elbo("train", "vae", *said)[0] == 0
    run = tmp_path / "runs" / "vae-vmf-x-0"
    _, out, _ = elbo("eval", run, "--samples", 2, "--most", 10)
    assert "vae --posterior vmf, step 2" in out
    assert elbo("report", run)[0] == 0
    page = (run / "report.html").read_text()
    assert "<h1>vae --posterior vmf " in page
    assert "Here with posterior vmf." in page
    code, _, err = elbo("interpolate", run, "--spherical")
    assert (code, "--spherical has no effect" in err) == (2, True)
    code, _, err = elbo("encode", run, "--out", tmp_path / "codes.txt")
    assert (code, "a .npy file" in err) == (2, True)


def test_a_recipe_stands_for_what_is_not_said(images: Path, elbo: Elbo, tmp_path: Path) -> None:
    few = ["--data", images, "--steps", 2, *TINY, "--json"]
    code, out, _ = elbo("train", "--recipe", "burgess-dsprites", *few, "--out", tmp_path / "named")
    assert (code, json.loads(out)["method"]) == (0, "beta-vae-capacity")
    spec = json.loads((tmp_path / "named" / "spec.json").read_text())
    assert (spec["recipe"], spec["model"]["net"], spec["fit"]["batch_size"]) == ("burgess-dsprites", "burgess", 8)
    mine = tmp_path / "mine.toml"
    mine.write_text("[options]\nnet = 'mlp-300'\nlr = 0.25\n")
    assert elbo("train", "vae", "--recipe", mine, *few, "--out", tmp_path / "mine")[0] == 0
    assert json.loads((tmp_path / "mine" / "spec.json").read_text())["fit"]["lr"] == 0.25
    for words, sentence in (
        (["train", "--recipe", "fast"], "the recipe fast names no method: say which"),
        (["train", f"--recipe={mine}"], "names no method"),
        (["train", "--recipe", "fats"], "unknown recipe 'fats'; did you mean 'fast'?"),
        (["train", "vae", "--recipe", "lagging-ptb", *few], "the recipe lagging-ptb is for text, and x.npy is images"),
        (["recipes", "fats"], "unknown recipe 'fats'"),
    ):
        code, _, err = elbo(*words)
        assert code == 2
        assert sentence in err
        assert err.count("\n") == 1


def test_recipes_are_listed_and_shown(elbo: Elbo) -> None:
    assert "tomczak-mnist" in elbo("recipes")[1]
    shown = elbo("recipes", "tomczak-mnist")[1]
    assert "Tomczak & Welling 2018" in shown
    assert "  --net gated-300-300\n" in shown
    assert json.loads(elbo("recipes", "fast", "--json")[1])[0]["tokens"]["clip"] == 5


@pytest.fixture(scope="module")
def trained(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run, kept as it was."""
    import elboroom

    out = tmp_path_factory.mktemp("runs") / "run"
    elboroom.train(
        "beta-vae", images, out, steps=12, batch_size=8, latent=3, threads=1, log_every=2, checkpoint_every=4
    )
    return out


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


def test_from_training_to_report(elbo: Elbo, images: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    code, said, _ = elbo(
        "train", "beta-vae", "--data", images, "--out", out, "--steps", 8, "--beta", 2, "--json", *TINY
    )
    assert code == 0
    assert json.loads(said)["step"] == 8
    assert json.loads((out / "spec.json").read_text())["options"] == {"beta": 2.0}
    code, said, _ = elbo("resume", out, "--steps", 4, "--json")
    assert (code, json.loads(said)["step"]) == (0, 12)
    code, said, _ = elbo("eval", out, "--json", "--samples", 5)
    measured = json.loads(said)
    assert code == 0
    assert measured == json.loads((out / "metrics.json").read_text())
    assert measured["log_likelihood"]["estimator"] == "iw-5"
    assert set(measured["log_likelihood"]["errors"]) == {"sampling", "importance_noise"}
    assert measured["elbo"]["settings"]["split"] == "test"
    code, said, _ = elbo("eval", out, "--split", "train", "--samples", 5)
    assert code == 0
    assert "of 5 draws effective" in " ".join(said.replace("│", " ").split())
    code, said, _ = elbo("eval", out, "--json", "--samples", 5, "--iw-until", 50)
    assert (code, json.loads(said)["log_likelihood"]["estimator"]) == (0, "iw-8")
    refused(elbo("eval", out, "--iw-until", 0), "would never end")
    code, said, _ = elbo("encode", out, "--data", images, "--out", tmp_path / "codes.npy", "--json")
    assert np.load(tmp_path / "codes.npy").shape == (200, 3) == tuple(json.loads(said)["shape"])
    for verb in ("sample", "reconstruct", "traverse", "interpolate"):
        for suffix in ("png", "gif"):
            assert elbo(verb, out, "--out", tmp_path / f"{verb}.{suffix}")[0] == 0, verb
            assert Image.open(tmp_path / f"{verb}.{suffix}").size[0] > 16
        assert elbo(verb, out, "--out", tmp_path / f"{verb}.npy")[0] == 0, verb
        assert np.load(tmp_path / f"{verb}.npy").shape[-3:] == (1, 16, 16)
    refused(elbo("sample", out, "--out", tmp_path / "a.txt"), "must be .png or .gif")
    assert elbo("report", out)[0] == 0
    assert "<html" in (out / "report.html").read_text()


def test_verbs_of_vectors_write_arrays(elbo: Elbo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--data", reals(tmp_path / "x.npy"), "--out", "run", "--steps", 1, "--batch-size", 16, "--latent", 2]
    assert elbo("train", "vae", *words)[0] == 0
    columns = np.load(tmp_path / "x.npy").shape[1]
    shapes = {"samples": (25,), "reconstructions": (2, 3), "traversal": (2, 10), "interpolation": (5, 10)}
    for verb, name in zip(("sample", "reconstruct", "traverse", "interpolate"), shapes, strict=True):
        assert elbo(verb, "run", *(["--n", 3] if verb == "reconstruct" else []))[0] == 0
        assert np.load(f"{name}.npy").shape == (*shapes[name], columns)
    refused(elbo("sample", "run", "--out", "a.png"), "use a .npy file")


def test_warm_start_copies_the_weights(elbo: Elbo, trained: Path, images: Path, tmp_path: Path) -> None:
    out = tmp_path / "warm"
    words = ["--data", images, "--out", out, "--from", trained, "--steps", 1, "--lr", "1e-12", *TINY]
    assert elbo("train", "vae", *words)[0] == 0
    import elboroom

    a, b = (elboroom.load(folder).model.state_dict() for folder in (trained, out))
    assert all(np.allclose(a[name], b[name], atol=1e-6) for name in a)


def test_a_warm_start_says_what_starts_anew(elbo: Elbo, trained: Path, images: Path, tmp_path: Path) -> None:
    words = ["--data", images, "--from", trained, "--steps", 1, *TINY]
    code, _, said = elbo("train", "vae", *words, "--out", tmp_path / "wider", "--latent", 7)
    assert code == 0
    assert "tensors fit; these start anew: " in said
    assert "start anew" not in elbo("train", "vae", *words, "--out", tmp_path / "same")[2]
    refused(elbo("train", "vae", *words, "--out", tmp_path / "none", "--from", tmp_path / "nope"), "does not exist")


def test_a_proposal_is_for_a_posterior_that_can_only_be_sampled(elbo: Elbo, trained: Path) -> None:
    refused(elbo("eval", trained, "--proposal", "flow"), "--proposal has no effect here; remove it")


def test_what_is_on_by_default_can_be_switched_off(elbo: Elbo, images: Path, tmp_path: Path) -> None:
    """And the command in the report says so in words that the command line takes."""
    import elboroom

    out = tmp_path / "run"
    assert elbo("train", "avb", "--data", images, "--out", out, "--no-adaptive", "--steps", 1, *TINY)[0] == 0
    spec = elboroom.load(out).spec
    assert spec.options["adaptive"] is False
    words = shlex.split(spec.command)
    assert "--no-adaptive" in words
    assert elbo(*words[1:], "--out", tmp_path / "again")[0] == 0
    assert elboroom.load(tmp_path / "again").spec.options == spec.options


def test_methods_and_data_are_listed(elbo: Elbo) -> None:
    code, said, _ = elbo("methods", "--json")
    listed = {entry["name"]: entry for entry in json.loads(said)}
    assert code == 0
    assert listed["control-vae"]["options"]["high"] == {"other": 100.0, "tokens": 1.0}
    assert elbo("methods")[0] == 0
    code, said, _ = elbo("data", "list", "--json")
    assert "dsprites" in {entry["name"] for entry in json.loads(said)}
    assert elbo("data", "list")[0] == 0


def labelled(path: Path, n: int = 400) -> Path:
    """Images of 16x16 with a square at a place that the label says."""
    rng = np.random.default_rng(0)
    x, y = np.zeros((n, 16, 16), np.uint8), rng.integers(0, 4, n)
    for i, place in enumerate(y):
        x[i, 4 * place : 4 * place + 4, rng.integers(0, 12) :][:, :4] = 255
    np.savez(path, x=x, y=y)
    return path


def test_every_kind_of_figure(elbo: Elbo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from elboroom.plots import manifold as drawn

    monkeypatch.setattr(drawn, "POINTS", 60)
    monkeypatch.setitem(drawn.ROLL, "steps", 5)
    data = labelled(tmp_path / "x.npz")
    for seed in (0, 1):
        out = tmp_path / f"run-{seed}"
        assert elbo("train", "vae", "--data", data, "--out", out, "--seed", seed, "--steps", 12, *TINY)[0] == 0
    code, said, _ = elbo("plot", "list", "--json")
    kinds = json.loads(said)
    assert code == 0
    several = {"rate-distortion": [tmp_path / "run-0", tmp_path / "run-1"], "swiss-roll": [], "kl-fits": []}
    refused(elbo("plot", "blocks", tmp_path / "run-0"), "has no block of style")
    for kind in kinds:
        if kind == "blocks":  # tests/report/test_report.py draws it
            continue
        runs = several.get(kind, [tmp_path / "run-0"])
        code, _, err = elbo("plot", kind, *runs, "--out", tmp_path / f"{kind}.png")
        assert code == 0, (kind, err)
        assert Image.open(tmp_path / f"{kind}.png").size[0] > 100
    refused(elbo("plot", "traversal", tmp_path / "run-0"), "did you mean 'traversals'?")
    refused(elbo("plot", "curves"), "shows one run; you gave 0")
    refused(elbo("plot", "swiss-roll", tmp_path / "run-0"), "takes no run")
    refused(elbo("plot", "curves", tmp_path / "run-0", "--out", tmp_path / "a.txt"), ".svg")


@pytest.mark.slow
def test_metrics_of_a_run_without_a_grid(elbo: Elbo, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert elbo("train", "vae", "--data", labelled(tmp_path / "x.npz"), "--out", out, "--steps", 12, *TINY)[0] == 0
    code, said, err = elbo("eval", out, "--metrics", "gaussian-tc,mean-mi", "--json")
    if code == 0:
        assert json.loads(said)["gaussian-tc"]["mode"] == "dlib"
    else:
        assert "10,000" in err, "a protocol that asks for more rows says so"
    code, said, _ = elbo("eval", out, "--metrics", "downstream", "--mode", "logistic", "--json")
    found = json.loads(said)
    assert code == 0
    assert found["downstream-100"]["mode"] == "logistic"
    assert found["downstream-100"]["settings"]["test"] == 300
    assert "400 rows" in found["downstream-1000"]["reason"]
    assert elbo("eval", out, "--metrics", "downstream")[0] == 0
    assert json.loads((out / "metrics.json").read_text())["downstream-10"]["mode"] == "boosting"
    assert elbo("plot", "labels", out, "--out", tmp_path / "kept.png")[0] == 0
    refused(elbo("eval", out, "--metrics", "gaussian-tcc"), "did you mean 'gaussian-tc'?")
    refused(elbo("eval", out, "--mode", "nonsense"), "--mode has no effect with --metrics likelihood; remove it")
    refused(elbo("eval", out, "--metrics", "gaussian-tc", "--split", "train"), "--split has no effect")
    refused(elbo("eval", out, "--metrics", "probe", "--iw-most", 5), "--iw-most has no effect")
    refused(elbo("eval", out, "--metrics", "probe", "--iw-until", 0.1), "--iw-until has no effect")
    refused(elbo("eval", out, "--metrics", "udr"), "at least two")


def test_compare_says_whether_two_samples_differ(elbo: Elbo, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "a.npy", rng.normal(size=(300, 2)))
    np.save(tmp_path / "b.npy", rng.normal(size=(300, 2)))
    np.save(tmp_path / "c.npy", rng.normal(size=(300, 2)) + 0.7)
    np.save(tmp_path / "d.npy", rng.normal(size=(300, 3)))
    words = ["--permutations", 200, "--json"]
    code, said, _ = elbo("compare", tmp_path / "a.npy", tmp_path / "c.npy", *words, "--out", tmp_path / "w.png")
    assert (code, json.loads(said)["p"]) == (0, pytest.approx(1 / 201))
    assert Image.open(tmp_path / "w.png").size[0] > 100
    assert json.loads(elbo("compare", tmp_path / "a.npy", tmp_path / "b.npy", *words)[1])["p"] > 0.05
    refused(elbo("compare", tmp_path / "a.npy", tmp_path / "d.npy"), "2")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_refused(elbo: Elbo, images: Path, tmp_path: Path) -> None:
    words = ["--data", images, "--device", "cuda", "--out", tmp_path / "run"]
    refused(elbo("train", "vae", *words), "PyTorch sees no CUDA device")
    assert not (tmp_path / "run").exists()


def test_the_version_is_told(elbo: Elbo) -> None:
    code, said, _ = elbo("--version")
    assert (code, said.split()) == (0, ["elboroom", metadata.version("elboroom")])


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
    "unknown option": (lambda t, x: ["train", "beta-vae", "--bet", 3], "did you mean '--beta'?"),
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


def reals(path: Path) -> Path:
    np.save(path, np.random.default_rng(0).normal(size=(100, 4)))
    return path


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


def refused(answer: tuple[int, str, str], expected: str) -> None:
    code, _, err = answer
    assert code == 2, err
    assert expected in err
    assert len(err.splitlines()) == 1, err


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


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """A tmpfs with options of one's choice."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(options: str) -> Path:
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", place]).returncode:
            pytest.skip("a tmpfs can be mounted by root only")
        return place

    yield mount
    subprocess.run(["umount", "-l", place], capture_output=True)


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
