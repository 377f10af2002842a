from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from elboroom.core.problem import Problem
from elboroom.data import dsprites

SOME = dsprites.factors(np.random.default_rng(0).integers(0, dsprites.COUNT, 60))


def slow(factors: NDArray[np.int64]) -> NDArray[np.uint8]:
    """One image by the plain definition: every pixel centre against every edge, ties by a tiny shift."""
    shape, scale, orientation, x, y = factors
    k = np.arange([4, 100, 150][shape])
    t = 2 * np.pi * k / len(k)
    if shape == 0:
        u, w = 9.6 * np.array([-1, 1, 1, -1]), 9.6 * np.array([-1, -1, 1, 1])
    elif shape == 1:
        u, w = 9.6 * 1.33 * np.cos(t), 9.6 / 1.33 * np.sin(t)
    else:
        u = 19.2 * 16 * np.sin(t) ** 3 / 32
        w = -19.2 * ((13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)) / 29 + 0.075)
    u, w = u * (0.5 + 0.1 * scale), w * (0.5 + 0.1 * scale)
    angle = 2 * np.pi * orientation / 39
    vx = np.cos(angle) * u + np.sin(angle) * w + 16 + 32 * x / 31
    vy = -np.sin(angle) * u + np.cos(angle) * w + 16 + 32 * y / 31
    vx, vy = np.rint(vx * 256) / 256 - 1e-7, np.rint(vy * 256) / 256 + 1e-12
    image = np.zeros((64, 64), np.uint8)
    centre = np.arange(64) + 0.5
    for xa, ya, xb, yb in zip(vx, vy, np.roll(vx, -1), np.roll(vy, -1), strict=True):
        for row in np.flatnonzero((ya > centre) != (yb > centre)):
            image[row] ^= centre > xa + (centre[row] - ya) * (xb - xa) / (yb - ya)
    return image


def test_rendering_is_even_odd_by_definition() -> None:
    assert np.array_equal(dsprites.render(SOME), np.stack([slow(row) for row in SOME]))


def test_centres_on_an_edge() -> None:
    # Half-side 5.76 about 24.258 begins at 18.5 after rounding to 1/256 px, and about 39.742 it ends at 45.5.
    one, two = dsprites.render(np.array([[0, 1, 0, 8, 8], [0, 1, 0, 23, 23]]))
    assert one[24, 17:20].tolist() == [0, 1, 1]  # on the left edge: inside
    assert one[17:20, 24].tolist() == [0, 0, 1]  # on the top edge: outside
    assert two[39, 44:47].tolist() == [1, 0, 0]  # on the right edge: outside
    assert two[44:47, 39].tolist() == [1, 1, 0]  # on the bottom edge: inside
    assert one.sum() == 12 * 11


def test_index_round_trip() -> None:
    rows = np.arange(0, dsprites.COUNT, 997)
    assert np.array_equal(dsprites.index(dsprites.factors(rows)), rows)
    assert dsprites.index(np.array([2, 5, 39, 31, 31])) == dsprites.COUNT - 1
    shape, scale, orientation, x, y = SOME[7]
    assert dsprites.index(SOME[7]) == (((shape * 6 + scale) * 40 + orientation) * 32 + x) * 32 + y
    with pytest.raises(Problem, match="orientation"):
        dsprites.index(np.array([[0, 0, 40, 0, 0]]))


def test_full_turn_is_no_turn() -> None:
    first, last = SOME.copy(), SOME.copy()
    first[:, 2], last[:, 2] = 0, 39
    assert np.array_equal(dsprites.render(first), dsprites.render(last))


def test_shapes_keep_off_the_border_and_grow_with_scale() -> None:
    corners = np.array([[s, 5, o, x, y] for s in range(3) for o in (0, 5) for x in (0, 31) for y in (0, 31)])
    images = dsprites.render(corners)
    assert images[:, [0, 1, 62, 63]].sum() == 0
    assert images[:, :, [0, 1, 62, 63]].sum() == 0
    areas = dsprites.render(np.array([[2, k, 3, 16, 16] for k in range(6)])).sum((1, 2))
    assert np.all(np.diff(areas.astype(int)) > 0)


def test_cache_is_rendered_once_and_again_where_damaged(cache: Path) -> None:
    told: list[tuple[int, int]] = []
    images, checksum = dsprites.packed(lambda done, total: told.append((done, total)), blocks=8)
    assert told == [(8192, 8192)]
    path = cache / "dsprites" / "packed-8.npy"
    rows = np.random.default_rng(1).integers(0, 8192, 50)
    expected = torch.from_numpy(dsprites.render(dsprites.factors(rows))).float()[:, None]
    assert torch.equal(dsprites.Sprites(images).take(rows), expected)

    before = path.stat().st_mtime_ns
    assert dsprites.packed(blocks=8)[1] == checksum
    assert path.stat().st_mtime_ns == before
    for damage in ("flip", "cut", "seal", "gone"):
        if damage == "flip":
            with open(path, "r+b") as file:
                file.seek(5000)
                file.write(b"\xff\xfe")
        elif damage == "cut":
            os.truncate(path, 10_000)
        elif damage == "seal":
            path.with_suffix(".json").write_text("{")
        else:
            path.unlink()
        again, found = dsprites.packed(blocks=8)
        assert found == checksum
        assert torch.equal(dsprites.Sprites(again).take(rows), expected)
    assert sorted(file.name for file in path.parent.iterdir()) == ["packed-8.json", "packed-8.npy"]


def test_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ELBOROOM_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(Problem, match="ELBOROOM_CACHE"):
        dsprites.packed(blocks=1)


def test_check_counts_an_image_once(tmp_path: Path) -> None:
    rows = dsprites.index(SOME)
    images = dsprites.render(SOME)
    images[3, 0, 0] = 1
    np.savez(tmp_path / "a.npz", imgs=images, original_dataset_indices=rows)
    np.savez(tmp_path / "b.npz", imgs=images[:10], original_dataset_indices=rows[:10])
    whole = np.zeros((5, 64, 64), np.uint8)  # no indices: the rows are the index
    np.savez(tmp_path / "c.npz", imgs=whole, metadata=np.array({"never": "read"}, dtype=object))
    found = dsprites.check(tmp_path / "a.npz")
    assert found == {"compared": 60, "exact": 59, "max_pixels": 1, "share": 59 / 60}
    found = dsprites.check(tmp_path)
    assert (found["compared"], found["exact"]) == (65, 59)


def test_check_without_files(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="has no published dSprites images"):
        dsprites.check()
    (tmp_path / "broken.npz").write_bytes(b"PK\3\4 nothing")
    with pytest.raises(Problem, match=r"broken\.npz cannot be read"):
        dsprites.check(tmp_path / "broken.npz")


@pytest.mark.unhurried
def test_acceptance_against_published_images(real: Path) -> None:
    found = dsprites.check()
    assert found["compared"] == 64_834
    assert found["share"] >= 0.9998
    assert found["max_pixels"] <= 1


@pytest.mark.unhurried
def test_all_of_it(real: Path) -> None:
    data = dsprites.load()
    assert (len(data), data.about.n, data.holdout, data.about.levels) == (737_280, 737_280, 0, 2)
    rows = np.random.default_rng(2).integers(0, dsprites.COUNT, 300)
    assert torch.equal(data.x(rows)[:, 0], torch.from_numpy(dsprites.render(dsprites.factors(rows))).float())
    assert np.array_equal(data.labels[rows], dsprites.factors(rows))
    assert data.u(rows, ["shape", "posY"]).sum() == 600
    assert data.label_values["scale"].tolist() == pytest.approx([0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
