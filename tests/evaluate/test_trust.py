"""Numbers that would mislead: arrays read otherwise than in training, scores that cannot fail, intervals beside their value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import elboroom
from elboroom.core.problem import Problem
from elboroom.data import arrays, folder
from elboroom.data.dataset import DataSet
from elboroom.evaluate.disentanglement import evaluate, score
from elboroom.evaluate.disentanglement.source import Rows
from elboroom.evaluate.likelihood.measure import active_units
from elboroom.plots.plane import rate_distortion
from elboroom.report.numbers import measured
from elboroom.runs import measure

SMALL: dict[str, Any] = {"steps": 3, "batch_size": 8, "latent": 3, "threads": 1}
RNG = np.random.default_rng(0)
BYTES = RNG.integers(0, 256, (60, 8, 8))


@pytest.mark.parametrize(
    "x",
    [
        BYTES.astype(np.uint8),
        BYTES.astype(np.int64),
        BYTES.astype(np.float32),
        BYTES / 255,
        (BYTES > 128).astype(np.uint8),
        (BYTES > 128).astype(np.uint8) * 255,
        BYTES > 128,
        RNG.integers(0, 4, (60, 5)).astype(np.uint8),
    ],
    ids=["bytes", "whole", "floats of bytes", "reals", "zeros and ones", "zeros and 255", "truths", "vectors"],
)
def test_an_array_is_read_as_it_was_to_train_on(x: np.ndarray, tmp_path: Path) -> None:
    run = elboroom.train("vae", x, tmp_path / "run", **SMALL)
    rows = np.arange(len(x))
    assert np.allclose(run.encode(x), run.encode(run.data), atol=1e-6)
    kept = run.data.x(rows).numpy()
    assert np.allclose(run.medium().batch(x).x.numpy(), kept)


def test_a_dark_image_is_dark_and_nonsense_is_refused(tmp_path: Path) -> None:
    run = elboroom.train("vae", BYTES.astype(np.uint8), tmp_path / "run", **SMALL)
    dark = np.ones((1, 8, 8), np.uint8)
    assert run.medium().batch(dark).x.max() == pytest.approx(1 / 255)
    for bad in (BYTES - 1.0, BYTES + 0.5, BYTES * 2):
        with pytest.raises(Problem, match="pixels must be whole numbers from 0 to 255 or reals"):
            run.encode(bad)


def test_one_factor_is_told_by_any_code() -> None:
    codes, label = RNG.normal(size=(300, 3)), RNG.integers(0, 4, 300)
    for name in ("beta-vae", "factor-vae"):
        found = score(name, codes, label, allow_smaller=True)
        assert found.value is None
        assert "one factor" in found.reason


@pytest.mark.slow
def test_intervals_hold_their_value() -> None:
    codes, factors = RNG.normal(size=(300, 3)), RNG.integers(0, 3, (300, 2))
    for name, mode in (("explicitness", None), ("gaussian-tc", None), ("irs", "paper")):
        found = score(name, codes, factors, mode=mode, allow_smaller=True, interval=True)
        assert found.interval is not None
        assert found.value is not None
        assert found.interval["low"] <= found.value <= found.interval["high"], name
    for seed in range(4):
        found = score("beta-vae", codes, factors, rng=seed, allow_smaller=True, interval=True, rescale=True)
        assert found.interval is not None
        assert found.value is not None
        assert found.interval["low"] <= found.value <= found.interval["high"]
        plain = score("beta-vae", codes, factors, rng=seed, allow_smaller=True, interval=True).interval
        assert plain is not None
        wide = [x["high"] - x["low"] for x in (found.interval, plain)]
        assert wide[0] == pytest.approx(2 * wide[1]), "with two factors"


def test_agreement_is_of_the_same_rows(vectors: DataSet, tmp_path: Path) -> None:
    one, two, other = (
        elboroom.train("vae", vectors, tmp_path / str(seed), seed=seed, holdout=share, **SMALL)
        for seed, share in ((0, 0.1), (1, 0.1), (2, 0.2))
    )
    found = measure.agreement([one, two])
    assert {result.settings["n"] for result in found.values()} == {180}
    with pytest.raises(Problem, match="same training split"):
        measure.agreement([one, other])


def test_folders_and_arrays_know_what_their_labels_are_called(tmp_path: Path) -> None:
    for place, names in (("mine", "abc"), ("other", "bcd")):
        for name in names:
            (tmp_path / place / name).mkdir(parents=True)
            for number in range(6):
                Image.fromarray(BYTES[number].astype(np.uint8)).save(tmp_path / place / name / f"{number}.png")
    data = folder.load(tmp_path / "mine")
    assert data.classes == {"label": ("a", "b", "c")}
    run = elboroom.train("vae", data, tmp_path / "run", given="label", **SMALL)
    with pytest.raises(Problem, match=r"label is b, c, d in .*other, and this model knows a, b, c"):
        run.encode(folder.load(tmp_path / "other"))
    assert arrays.dataset(BYTES, labels=np.arange(60) % 2 + 5).classes == {"label": ("5", "6")}


def test_a_mode_that_no_metric_has_is_refused(vectors: DataSet, tmp_path: Path) -> None:
    rows = Rows(RNG.normal(size=(50, 3)), RNG.integers(0, 3, (50, 2)), allow_smaller=True)
    with pytest.raises(Problem, match=r"unknown mode 'papr'"):
        evaluate(rows, "beta-vae", "papr")
    assert set(evaluate(rows, ["mig", "modularity"], "modern")) == {"mig", "modularity"}
    run = elboroom.train("vae", vectors, tmp_path / "run", **SMALL)
    with pytest.raises(Problem, match="unknown mode 'bosting'; did you mean 'boosting'"):
        measure.metrics(run, "downstream", mode="bosting")
    with pytest.raises(Problem, match="--smaller"):
        measure.metrics(run, "mig")
    assert measure.metrics(run, "mig", smaller=True)["mig"]["value"] is not None
    assert measured(run)["elbo"]["value"] is not None, "a report measures what is missing"


def test_a_kl_against_another_prior_than_the_run_has_is_refused(vectors: DataSet, tmp_path: Path) -> None:
    run = elboroom.train("vae", vectors, tmp_path / "run", **{**SMALL, "prior": "mog"})
    with pytest.raises(Problem, match="which is not the prior of this run"):
        measure.metrics(run, ["dimension-wise-kl"], smaller=True)
    found = measure.metrics(run, "all", smaller=True)
    assert found["dimension-wise-kl"]["value"] is None
    assert found["total-correlation"]["value"] is not None
    plain = elboroom.train("vae", vectors, tmp_path / "plain", **SMALL)
    assert measure.metrics(plain, ["dimension-wise-kl"], smaller=True)["dimension-wise-kl"]["value"] is not None


def test_a_label_of_one_value_costs_no_metric_of_codes(tmp_path: Path) -> None:
    data = arrays.dataset(BYTES.astype(np.uint8), labels=np.zeros(60, np.int64))
    run = elboroom.train("vae", data, tmp_path / "run", **SMALL)
    assert measure.metrics(run, "active-units", smaller=True)["active-units"]["value"] is not None


def test_a_split_of_one_row_is_measured(tmp_path: Path) -> None:
    run = elboroom.train("vae", BYTES[:10].astype(np.uint8), tmp_path / "run", **SMALL)
    assert len(run.data.splits["test"]) == 1
    assert run.evaluate(samples=2)["active_units"]["value"] == 0
    assert active_units(run.split()).value == 0
    with pytest.raises(Problem, match="give at least one"):
        rate_distortion([])


def test_a_dimension_that_varies_by_rounding_alone_is_constant() -> None:
    codes = RNG.normal(size=(500, 3)).astype(np.float32)
    codes[:, 1] = np.float32(0.3) + np.float32(3e-8) * RNG.integers(0, 3, 500)
    codes[:, 2] = 1e9
    found = evaluate(Rows(codes, RNG.integers(0, 3, (500, 2)), allow_smaller=True), ["mig", "modularity", "mean-mi"])
    assert all(entry.value is not None for entry in found.values())


def test_a_constant_column_has_no_scale() -> None:
    x = RNG.normal(size=(50, 3))
    x[:, 0] = 0.1
    fitted = elboroom.VAE(steps=5, latent=2).fit(x)
    x[:, 0] = 0.2
    assert np.abs(fitted.transform(x)).max() < 100
