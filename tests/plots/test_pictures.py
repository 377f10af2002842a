"""Grids and animations, pixel for pixel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from elboroom.core.problem import Problem
from elboroom.plots import contact_sheet, mosaic, save_gif, save_grid
from elboroom.plots.pictures import SEPARATOR, colour, signed


def test_a_grid_keeps_every_pixel(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (2, 3, 1, 8, 6)) / 255
    path = save_grid(images, tmp_path / "new" / "grid.png", cell=8)
    sheet = np.asarray(Image.open(path))
    assert sheet.shape == (2 * 8 + 2, 3 * 6 + 4, 3)
    assert (sheet[:8, :6] == np.rint(255 * images[0, 0, 0])[..., None]).all()
    assert (sheet[10:, 8:14] == np.rint(255 * images[1, 1, 0])[..., None]).all()
    assert (sheet[8:10] == SEPARATOR).all()


def test_small_images_are_enlarged_by_a_whole_number_and_large_ones_averaged() -> None:
    small = np.random.default_rng(0).random((1, 1, 3, 5, 5))
    assert mosaic(small, cell=16).shape == (15, 15, 3)
    large = np.zeros((1, 1, 1, 128, 128))
    large[..., ::2] = 1
    reduced = mosaic(large, cell=64)
    assert reduced.shape == (64, 64, 3)
    assert (reduced == 128).all()


def test_colours_are_kept_and_values_out_of_range_cut() -> None:
    rgb = np.full((1, 1, 3, 4, 4), [[[0.0]], [[0.5]], [[2.0]]])
    assert mosaic(rgb, cell=4)[0, 0].tolist() == [0, 128, 255]
    assert np.allclose(colour(np.array([[[-1.0, 3.0]]]), -1, 3)[0], [[0, 1]])


def test_a_difference_of_zero_is_nearly_white_and_its_sign_has_a_colour() -> None:
    shade = signed(np.array([[[-1.0, 0.0, 1.0]]]), reach=1)[:, 0]  # (3 channels, 3 pixels)
    assert shade[:, 1].min() > 0.95
    assert shade[2, 0] > shade[0, 0]  # below is blue
    assert shade[0, 2] > shade[2, 2]  # above is orange


@pytest.mark.parametrize("shape", [(5, 1, 8, 8), (3, 5, 1, 8, 8)])
def test_a_moving_picture_runs_forth_and_back(shape: tuple[int, ...], tmp_path: Path) -> None:
    frames = np.zeros(shape) + np.linspace(0, 1, 5)[:, None, None, None]
    with Image.open(save_gif(frames, tmp_path / "moving.gif", cell=8)) as gif:
        assert gif.n_frames == 8  # type: ignore[attr-defined]
        shades = []
        for at in range(8):
            gif.seek(at)
            shades.append(int(np.asarray(gif.convert("L"))[0, 0]))
    assert np.allclose(shades, [0, 64, 128, 191, 255, 191, 128, 64], atol=2)


def test_what_is_no_grid_is_refused() -> None:
    with pytest.raises(Problem, match=r"\(rows, cols, C, H, W\)"):
        mosaic(np.zeros((3, 1, 8, 8)))
    with pytest.raises(Problem, match="animation"):
        save_gif(np.zeros((8, 8)), Path("never.gif"))


def test_a_contact_sheet_shows_its_labels() -> None:
    figure = contact_sheet(np.zeros((2, 3, 1, 8, 8)), ["one", "two"], ["a", "b", "c"])
    assert [text.get_text() for text in figure.axes[0].texts] == ["one", "two", "a", "b", "c"]
