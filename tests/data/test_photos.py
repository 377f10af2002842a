"""Photos as cameras and drawing programs write them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from elboroom.core.problem import Problem
from elboroom.data import registry
from elboroom.data.photos import OldPhotos, Photos


def first(folder: Path, size: int | None = None, **said: object) -> np.ndarray:
    found = registry.load(folder, size=size, photos=Photos(**said))  # type: ignore[arg-type]
    return np.rint(found.x([0])[0].numpy() * 255).astype(int)


def twice(folder: Path, image: Image.Image, suffix: str = "png", **how: object) -> None:
    for k in range(2):
        image.save(folder / f"{k}.{suffix}", **how)  # type: ignore[arg-type]


def test_a_photo_stands_as_its_camera_was_held(tmp_path: Path) -> None:
    upright = np.zeros((8, 16), np.uint8)
    upright[:, :8] = 200  # bright on the left
    exif = Image.Exif()
    exif[0x0112] = 6  # stored turned by a quarter
    twice(tmp_path, Image.fromarray(upright).rotate(90, expand=True), "jpg", exif=exif, quality=100)
    seen = first(tmp_path)
    assert seen.shape == (1, 8, 16)
    assert seen[0, :, :6].min() > 190
    assert seen[0, :, 10:].max() < 10
    old = registry.load(tmp_path, photos=OldPhotos())
    assert old.about.shape == (1, 16, 8), "as runs of before have read it"


@pytest.mark.parametrize(("background", "shade"), [("white", 255), ("#000000", 0), ("", 77)])
def test_transparent_pixels_have_the_background(tmp_path: Path, background: str, shade: int) -> None:
    pixels = np.full((4, 4, 4), 77, np.uint8)
    pixels[..., 3] = 0
    pixels[0, 0] = (10, 20, 30, 255)
    twice(tmp_path, Image.fromarray(pixels, "RGBA"))
    seen = first(tmp_path, background=background)
    assert seen[:, 3, 3].tolist() == [shade] * 3
    assert seen[:, 0, 0].tolist() == [10, 20, 30]


def test_grey_with_holes_stays_grey_on_white_and_not_on_red(tmp_path: Path) -> None:
    twice(tmp_path, Image.fromarray(np.full((4, 4, 2), 0, np.uint8), "LA"))
    assert first(tmp_path).tolist() == np.full((1, 4, 4), 255).tolist()
    assert first(tmp_path, background="red")[:, 0, 0].tolist() == [255, 0, 0]


def test_the_centre_is_kept_instead_of_squashing(tmp_path: Path) -> None:
    wide = np.zeros((8, 24), np.uint8)
    wide[:, 8:16] = 250
    twice(tmp_path, Image.fromarray(wide))
    assert first(tmp_path, 4, crop="centre").min() == 250
    assert first(tmp_path, 4).min() == 0


def test_tiff_is_read(tmp_path: Path) -> None:
    twice(tmp_path, Image.fromarray(np.arange(16, dtype=np.uint8).reshape(4, 4)), "tiff")
    assert first(tmp_path)[0].tolist() == np.arange(16).reshape(4, 4).tolist()


def test_reals_and_sixteen_bits_are_read_by_their_range(tmp_path: Path) -> None:
    """From 0 to 1, or to the white of 16 bits; where nobody can tell what white is the file is named, and can be left out."""
    shades = np.linspace(0, 1, 16).reshape(4, 4)
    twice(tmp_path, Image.fromarray(shades.astype(np.float32)), "tiff")
    assert first(tmp_path).tolist() == [np.rint(255 * shades).astype(int).tolist()]
    deep = (65_535 * shades).astype(np.uint16)
    twice(tmp_path, Image.fromarray(deep), "tiff")
    assert first(tmp_path).tolist() == [(deep // 256).tolist()]
    Image.fromarray((4_095 * shades).astype(np.uint16)).save(tmp_path / "camera.tiff")
    Image.fromarray((300 * shades - 7).astype(np.float32)).save(tmp_path / "heat.tiff")
    told = r"2 of 4 files .*camera.tiff \(its values are from 0 to 4,095; bring them to .*heat.tiff .* from -7 to 293"
    with pytest.raises(Problem, match=told):
        registry.load(tmp_path)
    with pytest.warns(UserWarning, match=r"left out 2 of 4 files, which cannot be read: camera\.tiff, heat\.tiff"):
        assert len(registry.load(tmp_path, photos=Photos(skip_bad=True))) == 2


def test_a_grey_palette_with_holes_has_the_colour_of_its_background(tmp_path: Path) -> None:
    image = Image.fromarray(np.full((4, 4), 1, np.uint8), "P")
    image.putpalette([0, 0, 0, 90, 90, 90])
    twice(tmp_path, image, transparency=1)
    assert first(tmp_path, background="red")[:, 0, 0].tolist() == [255, 0, 0]
    assert first(tmp_path).tolist() == np.full((1, 4, 4), 255).tolist()


def test_every_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    twice(tmp_path, Image.new("L", (8, 8)))
    for k in range(30):
        (tmp_path / f"bad{k}.png").write_bytes(b"gone")
    with pytest.raises(Problem) as refused:
        registry.load(tmp_path)
    assert all(f"bad{k}.png (" in str(refused.value) for k in range(30))


def test_all_files_that_cannot_be_read_are_named_at_once_or_skipped(tmp_path: Path) -> None:
    twice(tmp_path, Image.fromarray(np.random.default_rng(0).integers(0, 256, (32, 32), dtype=np.uint8)))
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "text.jpg").write_bytes(b"hello")
    (tmp_path / "cut.png").write_bytes((tmp_path / "0.png").read_bytes()[:500])
    with pytest.raises(Problem, match=r"3 of 5 files .*cut\.png .*empty\.png .*text\.jpg .*--skip-bad"):
        registry.load(tmp_path)
    with pytest.warns(
        UserWarning, match=r"left out 3 of 5 files, which cannot be read: cut\.png, empty\.png, text\.jpg"
    ):
        assert len(registry.load(tmp_path, photos=Photos(skip_bad=True))) == 2


def test_labels_of_files_that_were_skipped_are_left_out_too(tmp_path: Path) -> None:
    for k, name in enumerate(("a", "b", "c")):
        Image.fromarray(np.full((4, 4), 100 * k, np.uint8)).save(tmp_path / f"{name}.png")
    (tmp_path / "b.png").write_bytes(b"gone")
    (tmp_path / "labels.csv").write_text("file,age\na,1\nb,2\nc,3\n")
    with pytest.warns(UserWarning, match="left out 1"):
        data = registry.load(tmp_path, photos=Photos(skip_bad=True))
    assert [data.classes["age"][y] for y in data.labels[:, 0]] == ["1", "3"]


def test_what_is_no_colour_or_has_no_effect_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="is no colour"):
        Photos(background="wite")
    np.save(tmp_path / "x.npy", np.zeros((4, 4, 4)))
    with pytest.raises(Problem, match="--crop is only for folders of images"):
        registry.load(tmp_path / "x.npy", photos=Photos(crop="centre"))
