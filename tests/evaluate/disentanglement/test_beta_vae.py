"""The metric of beta-VAE is an accuracy of a linear classifier on mean |z - z'|."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from elboroom.evaluate.disentanglement import Grid, score
from elboroom.evaluate.disentanglement.beta_vae import MODES, Protocol, _liblinear
from elboroom.evaluate.disentanglement.registry import find

SIZES = (3, 4, 5)


@pytest.fixture
def grid() -> Grid:
    factors = np.stack(np.unravel_index(np.arange(60), SIZES), 1)
    noise = np.random.default_rng(0).normal(size=(60, 3))
    mu = (factors @ np.array([[0.3, 0.2, 0.0], [0.2, -0.2, 0.1], [0.0, 0.1, 0.2]]) + 0.3 * noise).astype(np.float32)
    return Grid(mu, np.full_like(mu, -1), SIZES)


def test_it_is_the_protocol_of_the_study(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point by point, as it was first written."""
    monkeypatch.setitem(MODES, "dlib", Protocol(_liblinear, 4, 300, 200, draws=1))
    rng, points = np.random.RandomState(5), []
    for i in range(500):
        if i == 300:
            rng.randint(2**31 - 1)  # the seed of the solver
        k = rng.randint(3)
        f1 = np.stack([rng.randint(s, size=4) for s in SIZES], 1)
        f2 = np.stack([rng.randint(s, size=4) for s in SIZES], 1)
        f2[:, k] = f1[:, k]
        z1, z2 = (grid.mu[np.ravel_multi_index(tuple(f.T), SIZES)] for f in (f1, f2))
        points.append((np.mean(np.abs(z1 - z2), 0), k))
    x, y = np.array([p for p, _ in points]), np.array([k for _, k in points])
    model = OneVsRestClassifier(LogisticRegression(solver="liblinear")).fit(x[:300], y[:300])
    expected = np.mean(model.predict(x[300:]) == y[300:])
    assert 0.4 < expected < 0.95
    assert find("beta-vae")(grid, 5).value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("mode", sorted(MODES))
def test_modes(grid: Grid, mode: str) -> None:
    found = find("beta-vae")(grid, 0, mode)
    assert found.value is not None
    assert 1 / 3 < found.value <= 1
    assert found.settings["length"] == (200 if mode == "paper-200" else 64)
    assert (found.settings["train"], found.settings["test"]) == (10_000, 5_000)


def test_rescaled_it_is_zero_at_chance(grid: Grid) -> None:
    plain, scaled = (find("beta-vae")(grid, 0, "paper-200", rescale=r) for r in (False, True))
    assert scaled.value == pytest.approx((plain.value - 1 / 3) / (2 / 3))  # type: ignore[operator]
    assert scaled.parts["accuracy"] == plain.value


def test_samples_are_noisier_than_means(grid: Grid) -> None:
    mean, sampled = (find("beta-vae")(grid.represented(r), 0) for r in ("mean", "sampled"))
    assert sampled.settings["representation"] == "sampled"
    assert sampled.value < mean.value  # type: ignore[operator]


def test_the_interval_of_an_accuracy() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(4, size=(400, 2))
    found = score("beta-vae", rng.normal(size=(400, 2)) + 0.3 * factors, factors, interval=True)
    assert found.interval is not None
    assert found.interval["low"] < found.value < found.interval["high"]  # type: ignore[operator]
    assert found.interval["high"] - found.interval["low"] < 2 * 0.014
    assert found.interval["how"] == "Wilson"


def test_the_interval_on_a_grid_is_over_draws(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODES, "dlib", Protocol(_liblinear, 8, 300, 200, draws=1))
    found = find("beta-vae")(grid, 0, interval=True)
    others = [find("beta-vae")(grid, seed).value for seed in range(10)]
    assert found.value == others[0]  # the headline stays that of the seed
    assert found.interval is not None
    assert found.interval["n"] == 10
    assert found.interval["mean"] == pytest.approx(np.mean(others))  # type: ignore[arg-type]
