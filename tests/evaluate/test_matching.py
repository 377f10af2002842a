"""MMD of q(z) and p(z): near zero where they agree, the closed form where they do not."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import elboroom
from elboroom.data.dataset import DataSet
from elboroom.evaluate.matching import of_run
from elboroom.evaluate.subject import Subject
from elboroom.runs import measure
from elboroom.runs.run import Run
from elboroom.studies.engines.work import measured
from elboroom.studies.schema import Measure


def run_of(data: DataSet, folder: Path, method: str = "vae", **options: object) -> Run:
    return elboroom.train(method, data, folder, steps=1, latent=2, net="mlp-300", threads=1, **options)


def posterior(run: Run, mean: tuple[float, float], logvar: float) -> None:
    """Makes q(z|x) the same Gaussian for every x."""
    last = [m for m in run.model.posterior.modules() if isinstance(m, torch.nn.Linear)][-1]
    with torch.no_grad():
        last.weight.zero_()
        last.bias.copy_(torch.tensor([*mean, logvar, logvar]))


def test_it_is_the_closed_form_of_two_gaussians(binary: DataSet, tmp_path: Path) -> None:
    run = run_of(binary, tmp_path / "run")
    posterior(run, (0.0, 0.0), 0.0)
    same = of_run(Subject(run), split="train")["mmd"]
    assert abs(same.value or 0) < 3 * same.errors["under q(z) = p(z)"] + 1e-3
    assert same.parts["p"] > 0.05
    m, s = np.array([1.5, -1.0]), 0.6
    posterior(run, tuple(m), 2 * np.log(s))
    found = of_run(Subject(run), split="train")["mmd"]
    h2 = found.settings["bandwidth"] ** 2
    wide = h2 / (h2 + 1 + s**2) * np.exp(-(m @ m) / (2 * (h2 + 1 + s**2)))
    truth = h2 / (h2 + 2) + h2 / (h2 + 2 * s**2) - 2 * wide
    assert found.value == pytest.approx(truth, rel=0.15)
    assert found.parts["p"] == pytest.approx(1 / 501)
    assert found.better == "low"


def test_without_a_prior_there_is_a_reason(binary: DataSet, tmp_path: Path) -> None:
    run = run_of(binary, tmp_path / "run", "ae")
    assert of_run(Subject(run))["mmd"].reason == "the model has no prior"
    assert measure.metrics(run, "mmd")["mmd"]["value"] is None


@pytest.mark.unhurried
def test_a_mode_that_some_metrics_have_not_is_said(binary: DataSet, tmp_path: Path) -> None:
    run = run_of(binary, tmp_path / "run")
    asked = {"mode": "paper", "smaller": True}
    with pytest.warns(UserWarning, match=r"no mode paper and are measured in another: mig \(dlib; also continuous"):
        found = measure.metrics(run, ["sap", "mig"], **asked)
    assert (found["sap"]["mode"], found["mig"]["mode"]) == ("paper", "dlib")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        measure.metrics(run, ["sap"], **asked)


@pytest.mark.unhurried
def test_in_a_study_the_others_are_in_their_first_mode(binary: DataSet, tmp_path: Path) -> None:
    run = run_of(binary, tmp_path / "run")
    measured(run, Measure(metrics=["sap", "mig"], mode="paper", smaller=True, samples=2, codes=0))
    assert (run.measured["sap"]["mode"], run.measured["mig"]["mode"]) == ("paper", "dlib")
    assert run.measured["mig"]["value"] is not None


def test_the_error_of_a_pixel_is_a_share_of_that_of_an_image(rgb: DataSet, tmp_path: Path) -> None:
    found = run_of(rgb, tmp_path / "run").evaluate(samples=2, most=40)
    per_pixel, whole = found["error_per_pixel"], found["squared_error"]
    assert per_pixel["value"] * 3 * 16 * 16 == pytest.approx(whole["value"])
    assert per_pixel["errors"]["sampling"] * 3 * 16 * 16 == pytest.approx(whole["errors"]["sampling"])
