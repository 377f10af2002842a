"""elbo compare: samples as they are, by file, data set or run, and its three tests."""

from __future__ import annotations

import json
from functools import partialmethod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from shell import elbo

from elboroom.data.dataset import DataSet
from elboroom.divergences.critic import Training
from elboroom.runs.lifecycle import train

FEW = ("--permutations", 100, "--json")


def told(*words: object) -> dict[str, Any]:
    done = elbo("compare", *words, *FEW)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def kept(path: Path, values: object) -> Path:
    np.save(path, np.asarray(values))
    return path


@pytest.mark.unhurried
def test_numbers_and_real_images_are_taken_as_they_are(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a, b = (kept(tmp_path / f"{n}.npy", rng.normal(m, 20, 200)) for n, m in (("a", 0), ("b", 25)))
    found = told(a, b, "--out", tmp_path / "line.png")
    assert found["p"] == pytest.approx(1 / 101)
    assert 15 < found["wasserstein"] < 35  # in the units of the file
    assert Image.open(tmp_path / "line.png").size[0] > 500
    real = [kept(tmp_path / f"{n}.npy", rng.normal(m, 3, (80, 5, 5))) for n, m in (("c", 0), ("d", 1), ("e", 0))]
    assert told(real[0], real[1], "--out", tmp_path / "images.png")["settings"]["dimensions"] == 25
    assert told(real[0], real[2])["p"] > 0.05
    np.savez(tmp_path / "f.npz", one=rng.normal(size=60), two=rng.normal(size=60))
    assert told(f"{tmp_path / 'f.npz'}:one", f"{tmp_path / 'f.npz'}:two")["settings"]["rows"] == [60, 60]


def test_channels_last_are_the_same_images(tmp_path: Path) -> None:
    x = np.random.default_rng(0).random((40, 3, 6, 7))
    first, last = kept(tmp_path / "first.npy", x), kept(tmp_path / "last.npy", np.moveaxis(x, 1, -1))
    assert told(first, last)["biased"] == pytest.approx(0, abs=1e-9)


@pytest.mark.unhurried
def test_a_data_set_by_name_against_samples_of_a_run(binary: DataSet, tmp_path: Path) -> None:
    found = told("dsprites", "dsprites:train", "--most", 60)
    assert (found["settings"]["rows"], found["p"]) == ([60, 60], 1.0)  # the same rows, drawn from the same seed
    train("vae", binary, tmp_path / "run", steps=4, net="mlp-300", latent=2, threads=1)
    data = kept(tmp_path / "data.npy", binary.x(np.arange(200)).numpy())
    done = elbo("compare", data, tmp_path / "run", "--permutations", 100, "--out", tmp_path / "w.png", "--most", 100)
    assert f"{data} and samples of run differ (MMD² = " in done.stdout
    assert "rows: 100 of 200 and 100" in done.stdout
    wide, high = Image.open(tmp_path / "w.png").size
    assert wide > 1.8 * high  # the ends of the witness stand beside the plane


@pytest.mark.unhurried
def test_which_model_fits(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = kept(tmp_path / "x.npy", np.concatenate([rng.normal(-2, 0.7, 300), rng.normal(2, 0.7, 300)]))
    found = told(x, "--test", "fit", "--models", "normal,gaussian,gaussians-2")
    assert found["best"] == "gaussians-2"
    assert found["fits"]["normal"]["log_density"] < found["fits"]["gaussian"]["log_density"]
    said = elbo("compare", x, "--test", "fit", "--permutations", 20).stdout
    assert said.startswith("gaussians-2 fits better than gaussian")
    assert "log-density, nats per row" in said


@pytest.mark.unhurried
@pytest.mark.parametrize("depends", [True, False])
def test_whether_two_variables_depend_on_each_other(
    depends: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Training, "__init__", partialmethod(Training.__init__, steps=50))
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 200))
    x, y = (kept(tmp_path / f"{n}.npy", v) for n, v in (("x", a), ("y", a**2 if depends else b)))
    found = told(x, y, "--test", "independence")
    assert (found["p"] <= 0.05) == depends
    assert found["settings"]["rows"] == 200


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["x.npy"], "takes two samples"),
        (["x.npy", "x.npy", "--test", "fit"], "takes one sample"),
        (["x.npy", "--test", "fit", "--out", "w.png"], "--out has no effect with --test fit"),
        (["x.npy", "x.npy", "--models", "normal"], "--models has no effect with --test differ"),
        (["x.npy", "--test", "fit", "--models", "gausian"], "did you mean 'gaussian'?"),
        (["sentences", "x.npy"], "is text"),
        (["dsprites:trian", "x.npy"], "did you mean 'train'?"),
        (["nothing.npy", "x.npy"], "does not exist"),
        (["empty.npy", "x.npy"], "empty.npy has no rows"),
    ],
)
def test_mistakes_are_one_sentence(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kept(tmp_path / "x.npy", np.random.default_rng(0).normal(size=30))
    kept(tmp_path / "empty.npy", np.zeros((0, 3)))
    done = elbo("compare", *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr
