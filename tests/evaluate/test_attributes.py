"""Attributes by the mean-difference classifier: known answers, and a CelebA-like folder from pictures to accuracies."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from shell import elbo

import elboroom
from elboroom.data.dataset import DataSet
from elboroom.evaluate.attributes import _one
from elboroom.runs import measure

TINY = {"steps": 30, "batch_size": 32, "latent": 4, "lr": 1e-3, "threads": 1, "device": "cpu", "net": "mlp-300"}


def rows(n: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 3)) + 3 * y[:, None] * np.array([1.0, 0, 0]), y


def test_two_clouds_are_told_apart_as_well_as_can_be() -> None:
    """N(0, 1) and N(3, 1) on the line: the best rule is right in Phi(1.5) of cases."""
    result = _one(*rows(4000, 0), *rows(4000, 1), {})
    assert result.value == pytest.approx(0.9332, abs=4 * 0.004)
    assert result.parts["majority"] == 0.5


def test_an_attribute_of_one_value_has_no_accuracy_but_a_reason() -> None:
    codes, _ = rows(10, 0)
    result = _one(codes, np.zeros(10, int), codes, np.zeros(10, int), {})
    assert result.value is None
    assert "single value" in result.reason


def test_labels_of_several_values_too(pixels: DataSet, tmp_path: Path) -> None:
    run = elboroom.train("vae", pixels, tmp_path / "run", **TINY)
    results = measure.metrics(run, ["attributes"])
    assert 0 <= results["attribute-label"]["value"] <= 1
    assert results["attribute-label"]["parts"]["majority"] == pytest.approx(1 / 3, abs=0.2)


def celeba(folder: Path, n: int = 200, attributes: int = 40) -> None:
    """Pictures with 40 attributes, of which the first says that the left half is bright."""
    rng = np.random.default_rng(0)
    values = np.where(rng.random((n, attributes)) < 0.5, 1, -1)
    names = ["Left_Bright", *(f"Attribute_{k}" for k in range(1, attributes))]
    lines = [str(n), " ".join(names)]
    for i in range(n):
        picture = rng.integers(0, 60, (16, 16, 3)).astype(np.uint8)
        picture[:, :8] += np.uint8(150) * np.uint8(values[i, 0] > 0)
        Image.fromarray(picture).save(folder / f"{i:06d}.png")
        lines.append(f"{i:06d}.png " + " ".join(f"{v:2d}" for v in values[i]))
    (folder / "list_attr_celeba.txt").write_text("\n".join(lines) + "\n")


def test_a_folder_like_celeba_from_pictures_to_accuracies(tmp_path: Path) -> None:
    folder = tmp_path / "faces"
    folder.mkdir()
    celeba(folder)
    run = elboroom.train("vae", folder, tmp_path / "run", **{**TINY, "steps": 150})
    code, _, err = elbo("eval", run.folder, "--metrics", "attributes", "--json")
    assert code == 0, err
    results = json.loads((run.folder / "metrics.json").read_text())
    accuracies = {name: entry for name, entry in results.items() if name.startswith("attribute-")}
    assert len(accuracies) == 40
    for entry in accuracies.values():
        assert entry["settings"]["split"] == "test"
        assert entry["settings"]["kind"] == "binary"
        assert 0.5 <= entry["parts"]["majority"] < 0.9
    assert accuracies["attribute-Left_Bright"]["value"] > 0.9
    assert results["attributes"]["parts"]["attributes"] == 40
