"""The first hour at a terminal: what is said from train to report, with data and pictures of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from shell import elbo

import elboroom

TINY: list[Any] = ["--steps", 6, "--latent", 2, "--threads", 1, "--net", "mlp-300", "--log-every", 1]
X = np.random.default_rng(0).integers(0, 256, (40, 8, 8)).astype(np.uint8)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    for k, pixels in enumerate(X):
        Image.fromarray(pixels).save(folder / f"{k:02}.png")
    return folder


@pytest.fixture(scope="module")
def run(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    done = elbo("train", "vae", "--data", photos, "--out", folder, *TINY)
    assert done.returncode == 0
    said = done.stderr
    assert "40 images of 1 x 8 x 8, values from 0 to 255; 36 to train on, 4 to test on" in said
    assert "2 latent dimensions, " in said
    assert "--batch-size 32" in said
    assert "PCA of the same size (2) keeps" in said
    assert f"next: elbo eval {folder}" in said
    return folder


def test_eval_says_what_the_numbers_mean_by_the_names_that_sql_has(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elboroom.commands.progress.PATIENCE", 0.0)
    done = elbo("eval", run, "--samples", 4)
    assert "log_likelihood" in done.stdout
    assert "measuring likelihood, 4 draws a row" in done.stderr
    assert "dimensions are active" in done.stderr or "dimensions is passive" in done.stderr


@pytest.mark.parametrize(
    ("words", "shape"),
    [
        (["reconstruct", "00.png", "01.png", "02.png"], (2, 3, 1, 8, 8)),
        (["interpolate", "00.png", "01.png", "--points", 4], (1, 4, 1, 8, 8)),
        (["traverse", "00.png", "--points", 3], (2, 3, 1, 8, 8)),
        (["analogy", "00.png", "01.png", "02.png"], (1, 4, 1, 8, 8)),
    ],
)
def test_pictures_of_ones_own_at_every_verb(
    words: list[Any], shape: tuple[int, ...], run: Path, photos: Path, tmp_path: Path
) -> None:
    verb, *rest = [photos / word if str(word).endswith(".png") else word for word in words]
    assert elbo(verb, run, *rest, "--out", tmp_path / "made.npy").returncode == 0
    made = np.load(tmp_path / "made.npy")
    assert made.shape == shape
    if verb == "reconstruct":
        np.testing.assert_allclose(made[0, :, 0], X[:3] / 255, atol=1e-6)
    assert elbo(verb, run, *rest, "--out", tmp_path / "made.png").returncode == 0
    done = elbo(verb, run, *rest[:-1], tmp_path / "nothing.png")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


@pytest.mark.unhurried
@pytest.mark.parametrize("words", [["eval", "--samples", 2], ["report"], ["plot", "curves"], ["plot", "rates"]])
def test_data_is_handed_in_where_a_run_keeps_none(
    words: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("elboroom.data.kept.MOST", 10)
    elboroom.train("vae", X, tmp_path / "run", steps=2, latent=2, threads=1)
    np.save(tmp_path / "x.npy", X)
    verb = [words[0], *words[1:2]] if words[0] == "plot" else words[:1]
    rest = words[len(verb) :]
    if words != ["plot", "curves"]:
        done = elbo(*verb, tmp_path / "run", *rest)
        assert done.returncode == 2
        assert "pass it again with --data FILE.npy" in done.stderr
    assert elbo(*verb, tmp_path / "run", *rest, "--data", "x.npy").returncode == 0


@pytest.mark.unhurried
@pytest.mark.parametrize("names", [["label"], ["size", "age"]])
def test_labels_are_handed_in_beside_an_array(
    names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without them the data would not be that of the run: the refusal says how, and so it goes."""
    monkeypatch.setattr("elboroom.data.kept.MOST", 10)
    columns = {name: (np.arange(len(X)) * (2 + k)) % (3 + k) for k, name in enumerate(names)}
    elboroom.train("vae", X, tmp_path / "run", labels=columns, steps=2, latent=2, threads=1)
    np.savez(tmp_path / "FILE.npz", x=X, **columns)
    done = elbo("eval", tmp_path / "run", "--samples", 2)
    assert f"--data FILE.npz, which has it as x and, in this order, its labels as {', '.join(names)}" in done.stderr
    assert elbo("eval", tmp_path / "run", "--samples", 2, "--data", tmp_path / "FILE.npz").returncode == 0


def test_photos_and_encodings_at_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    for k in range(4):
        Image.new("RGBA", (12, 8), (10 * k, 0, 0, 100)).save(tmp_path / "p" / f"{k}.png")
    (tmp_path / "p" / "bad.png").write_bytes(b"")
    how = ["--size", 4, "--crop", "centre", "--background", "black", "--skip-bad"]
    done = elbo("train", "vae", "--data", tmp_path / "p", "--out", tmp_path / "run", *how, *TINY)
    assert "left out 1 of 5 files" in done.stderr
    spec = elboroom.load(tmp_path / "run").spec
    assert spec.data["photos"] == {"background": "black", "crop": "centre", "skip_bad": True}
    assert "--background black --crop centre --skip-bad" in spec.command
    with pytest.warns(UserWarning, match="left out"):
        assert elboroom.load(tmp_path / "run").elbo().value is not None
    (tmp_path / "t.txt").write_bytes("un café noir\n".encode("latin-1") * 20)
    said = ["--encoding", "latin-1", "--embed", 4, "--hidden", 4, "--steps", 1, "--latent", 2, "--threads", 1]
    assert elbo("train", "vae", "--data", tmp_path / "t.txt", "--out", tmp_path / "text", *said).returncode == 0
    assert elbo("data", "show", tmp_path / "t.txt", "--encoding", "latin-1").returncode == 0
    done = elbo("data", "show", tmp_path / "t.txt", "--encoding", "lattin")
    assert (done.returncode, "is no encoding" in done.stderr) == (2, True)


def test_the_page_of_a_method_and_what_all_are_for() -> None:
    page = elbo("methods", "bn-vae").stdout
    assert "what it is for: keeping z in use" in page
    assert "--gamma" in page
    assert "example: elbo train bn-vae --data sentences --gamma 1.2" in page
    assert "what it is for" in elbo("methods").stdout


def test_overwrite(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    said = ["train", "vae", "--data", tmp_path / "x.npy", "--out", tmp_path / "run", *TINY]
    assert elbo(*said).returncode == 0
    assert "or --overwrite" in elbo(*said).stderr
    assert elbo(*said, "--overwrite").returncode == 0
