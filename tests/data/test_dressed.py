"""dSprites in colour, in noise and before a picture: the shapes of the plain ones, and what is drawn for a row is its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from elboroom.core.problem import Problem
from elboroom.data import dressed, dsprites, registry
from elboroom.data.dataset import DataSet

pytestmark = pytest.mark.unhurried  # four tables of 737,280 labels
ROWS = np.random.default_rng(0).integers(0, dsprites.COUNT, 300)
KINDS = ["dsprites-colour", "dsprites-noisy", "dsprites-scream"]


@pytest.fixture(scope="module")
def sets() -> dict[str, DataSet]:
    return {name: registry.load(name) for name in ("dsprites", *KINDS)}


@pytest.mark.parametrize("name", KINDS)
def test_a_row_is_the_same_image_whatever_stands_beside_it(name: str, sets: dict[str, DataSet]) -> None:
    data = sets[name]
    x = data.x(ROWS)
    assert (x.shape, x.dtype) == ((300, 3, 64, 64), torch.float32)
    assert torch.equal(data.x(ROWS[7:9]), x[7:9])
    assert torch.equal(data.x(ROWS[::-1].copy()), x.flip(0))
    torch.testing.assert_close(255 * x, (255 * x).round(), atol=1e-3, rtol=0)  # bytes, as its levels say
    assert data.about.levels == 256
    assert len({one.hash for one in sets.values()}) == 4
    assert np.array_equal(data.labels[:, :5], sets["dsprites"].labels)


def test_the_colour_is_the_sixth_factor(sets: dict[str, DataSet]) -> None:
    data, shapes = sets["dsprites-colour"], sets["dsprites"].x(ROWS)
    colour = data.labels[ROWS, 5]
    assert list(data.about.labels) == [*dsprites.FACTORS, "colour"]
    assert data.fields["colour"].kind == "categorical"
    tints = np.array([dressed.COLOURS[data.classes["colour"][k]] for k in colour])
    expected = shapes * torch.from_numpy(tints / 255).float()[:, :, None, None]
    torch.testing.assert_close(data.x(ROWS), expected)
    counts = np.bincount(data.labels[:, 5], minlength=8)
    assert abs(counts / dsprites.COUNT - 1 / 8).max() < 5 * np.sqrt(7 / 64 / dsprites.COUNT)
    for k in range(5):  # drawn for itself
        assert abs(np.corrcoef(data.labels[:, k], data.labels[:, 5] == 3)[0, 1]) < 5 / np.sqrt(dsprites.COUNT)


def test_noise_is_even_behind_a_white_shape(sets: dict[str, DataSet]) -> None:
    x, shapes = sets["dsprites-noisy"].x(ROWS), sets["dsprites"].x(ROWS).expand(-1, 3, -1, -1) > 0
    assert bool((x[shapes] == 1).all())
    behind = x[~shapes]
    assert behind.mean().item() == pytest.approx(0.5, abs=2e-3)
    assert behind.var().item() == pytest.approx(1 / 12, abs=1e-3)
    flat = x[:, :, :4, :4].flatten(1)  # where no shape is
    assert np.abs(np.corrcoef(flat.numpy()) - np.eye(300)).max() < 0.75


def test_before_a_picture_the_shape_is_its_negative(sets: dict[str, DataSet]) -> None:
    x, shapes = sets["dsprites-scream"].x(ROWS), sets["dsprites"].x(ROWS)
    without = dressed.Behind(dressed.picture()[0])(torch.zeros_like(shapes), ROWS)
    torch.testing.assert_close(x, torch.where(shapes > 0, 1 - without, without))
    assert without.std(0).mean() > 0.05, "pieces differ"


def test_a_picture_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELBOROOM_DATA", str(tmp_path))
    before = registry.load("dsprites-scream").hash
    (tmp_path / "scream").mkdir()
    Image.fromarray(np.full((300, 500, 3), (0, 100, 200), np.uint8)).save(tmp_path / "scream" / "scream.png")
    found, name = dressed.picture()
    assert (found.shape, name) == ((210, 350, 3), "scream.png")
    data = registry.load("dsprites-scream")
    assert data.hash != before
    corner = data.x(ROWS[:50])[:, :, 0, 0]  # half of the picture, and at most half a tint
    assert bool((corner >= torch.tensor([0, 50 / 255, 100 / 255]) - 1e-6).all())
    Image.fromarray(np.zeros((40, 500, 3), np.uint8)).save(tmp_path / "scream" / "scream.png")
    with pytest.raises(Problem, match="each side must have 64"):
        registry.load("dsprites-scream")
