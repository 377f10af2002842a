"""Post-hoc samplers: laws of the codes, kept in the run; and what two-sample distances say of their samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from shell import elbo

import elboroom
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.divergences.transport import frechet
from elboroom.runs import measure, samplers
from elboroom.runs.run import Run

RNG = np.random.default_rng(0)
CENTRES = np.array([[4.0, 4.0], [-4.0, 4.0], [0.0, -5.0]])
CODES = torch.from_numpy(CENTRES[RNG.integers(0, 3, 3000)] + 0.3 * RNG.normal(size=(3000, 2)))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """An autoencoder of three clusters, on which a Gaussian of the codes is a poor sampler."""
    clusters = RNG.normal(size=(3, 6))[RNG.integers(0, 3, 400)] * 4
    x = (clusters + 0.1 * RNG.normal(size=(400, 6))).astype(np.float32)
    return elboroom.train(
        "ae", x, tmp_path_factory.mktemp("runs") / "run", steps=40, latent=2, threads=1, net="mlp-300+linear"
    )


@pytest.mark.unhurried
@pytest.mark.parametrize("name", ["gmm", "kmeans", pytest.param("flow", marks=pytest.mark.slow)])
def test_a_law_has_the_moments_and_the_clusters_of_its_codes(name: str) -> None:
    sampler = samplers.SAMPLERS[name]
    torch.manual_seed(1)
    drawn = sampler.law(sampler.fit(CODES, 3)).sample(torch.Size((3000,))).double()
    assert drawn.mean(0) == pytest.approx(CODES.mean(0), abs=0.4)
    assert drawn.std(0) == pytest.approx(CODES.std(0), rel=0.1)
    near = torch.cdist(drawn, torch.from_numpy(CENTRES)).min(1).values < 1.5
    assert near.double().mean() > (0.8 if name == "flow" else 0.99), "a Gaussian of the codes reaches a tenth"


@pytest.mark.unhurried
def test_a_law_is_fitted_once_and_kept_with_what_it_is_a_law_of(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run.draw(50, seed=3, sampler="gmm", components=3)
    assert first.shape == (50, 2)
    assert (run.folder / "samplers" / "gmm-3.safetensors").exists()
    monkeypatch.setattr(samplers.GaussianMixture, "fit", lambda *_: pytest.fail("it is kept"))
    assert np.array_equal(elboroom.load(run.folder).draw(50, seed=3, sampler="gmm", components=3), first)
    monkeypatch.undo()
    path = run.folder / "samplers" / "gmm-3.safetensors"
    path.write_bytes(path.read_bytes()[:-4] + b"abcd")
    with pytest.warns(UserWarning, match="is damaged"):
        assert np.array_equal(run.draw(50, seed=3, sampler="gmm", components=3), first)
    weight = next(run.model.posterior.parameters())
    with torch.no_grad():
        weight.add_(0.1)
        other = run.draw(50, seed=3, sampler="gmm", components=3)
        weight.sub_(0.1)
    assert not np.array_equal(other, first), "other weights have other codes"


@pytest.mark.arguments
def test_what_cannot_be_is_one_sentence(run: Run, pixels: DataSet, tmp_path: Path) -> None:
    with pytest.raises(Problem, match="components has no effect with sampler='flow'"):
        run.sample(2, sampler="flow", components=3)
    with pytest.raises(Problem, match="components has no effect"):
        run.sample(2, components=3)
    with pytest.raises(Problem, match="sampler must be"):
        run.sample(2, sampler="gauss")  # type: ignore[arg-type]
    with pytest.raises(Problem, match="needs more than 5000 training examples"):
        run.sample(2, sampler="gmm", components=5000)


@pytest.mark.unhurried
def test_a_sampler_that_fits_makes_better_samples_and_the_features_are_named(run: Run) -> None:
    found: dict[str, Any] = {}
    for name in ("prior", "gmm"):
        found = measure.metrics(run, "samples", sampler=name)
    prior, gmm = found["frechet-prior"], found["frechet-gmm"]
    assert gmm["settings"]["features"] == "6 principal components of the data"
    assert gmm["settings"]["sampler"] == "gmm"
    assert gmm["value"] > 0
    assert found["mmd_samples-gmm"]["value"] < found["mmd_samples-prior"]["value"]
    assert prior["parts"]["of training examples"] == gmm["parts"]["of training examples"]
    by_codes = measure.metrics(run, "samples", features="codes")["frechet-prior"]
    assert by_codes["settings"]["features"] == "codes of the run itself"
    other = measure.metrics(run, "samples", features=elboroom.load(run.folder))["frechet-prior"]
    assert other["settings"]["features"] == f"codes of {run.folder.name}"
    assert other["value"] == pytest.approx(by_codes["value"])


@pytest.mark.unhurried
def test_at_the_command_line(run: Run, tmp_path: Path) -> None:
    done = elbo("sample", run.folder, "--sampler", "kmeans", "--components", 3, "--n", 4, "--out", tmp_path / "x.npy")
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "x.npy").size == 4 * 6
    done = elbo("eval", run.folder, "--metrics", "samples", "--sampler", "kmeans", "--features", run.folder)
    assert done.returncode == 0, done.stderr
    assert "frechet-kmeans" in done.stdout
    for words in (["sample", run.folder, "--sampler", "gauss"], ["eval", run.folder, "--sampler", "gmm"]):
        left = elbo(*words)
        assert (left.returncode, left.stderr.count("\n")) == (2, 1), left.stderr


@pytest.mark.unhurried
def test_sentences_the_sphere_and_a_prior_for_each_label(sentences: DataSet, pixels: DataSet, tmp_path: Path) -> None:
    small = {"steps": 2, "threads": 1, "embed": 4, "hidden": 4, "latent": 3}
    text = elboroom.train("vmf-vae", sentences, tmp_path / "text", **small)
    assert np.linalg.norm(text.draw(5, sampler="gmm", components=2), axis=1) == pytest.approx(1, abs=1e-5)
    made = text.sample(3, sampler="kmeans", components=2)
    assert all(isinstance(sentence, str) for sentence in made)
    assert measure.metrics(text, "samples")["frechet-prior"]["settings"]["features"] == "codes of the run itself"
    each = elboroom.train("vae", pixels, tmp_path / "each", steps=1, threads=1, latent=2, given="label", prior="normal")
    with pytest.raises(Problem, match="differs between labels"):
        each.sample(3, sampler="gmm", components=2)


def test_the_frechet_distance_of_two_gaussians() -> None:
    x = torch.from_numpy(RNG.normal(size=(4000, 3)) * [1, 2, 3])
    y = torch.from_numpy(RNG.normal(size=(4000, 3)) * [2, 2, 1] + [1, 0, 0])
    assert float(frechet(x, y)) == pytest.approx(1 + 1 + 0 + 4, rel=0.1)
    assert float(frechet(x, x)) == pytest.approx(0, abs=1e-8)
