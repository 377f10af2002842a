from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from elboroom.core.problem import Problem
from elboroom.data import folder, registry

rng = np.random.default_rng(0)


def save(path: Path, *shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    picture = rng.integers(0, 256, shape, dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(path)
    return picture


def test_grey_and_flat(tmp_path: Path) -> None:
    pictures = [save(tmp_path / f"{k}.png", 6, 8) for k in range(3)]
    data = registry.load(tmp_path)
    assert (data.about.shape, data.about.labels, data.about.name) == ((1, 6, 8), {}, str(tmp_path))
    assert torch.equal(data.x([0, 1, 2]), torch.from_numpy(np.stack(pictures)[:, None]).float() / 255)


def test_dark_pictures_are_told_and_may_say_how_bright_white_is(tmp_path: Path) -> None:
    for k in range(3):
        Image.fromarray(np.arange(17, dtype=np.uint8)[None].repeat(2, 0)).save(tmp_path / f"{k}.png")
    with pytest.warns(UserWarning, match="brightest pixel in .* is 16 of 255: if 16 is white, say --levels 17"):
        dark = registry.load(tmp_path)
    assert (dark.about.levels, float(dark.x([0]).max())) == (256, pytest.approx(16 / 255))
    said = registry.load(tmp_path, levels=17)
    assert (said.about.levels, float(said.x([0]).max())) == (17, 1.0)
    with pytest.raises(Problem, match=r"--levels 9: .* has values from 0 to 16"):
        registry.load(tmp_path, levels=9)


def test_one_in_colour_makes_all_rgb_and_folders_are_labels(tmp_path: Path) -> None:
    grey, colour = save(tmp_path / "a/one.bmp", 6, 8), save(tmp_path / "b/deep/two.PNG", 6, 8, 3)
    data = registry.load(str(tmp_path))
    assert (data.about.shape, data.about.labels) == ((3, 6, 8), {"label": 2})
    assert data.labels[:, 0].tolist() == [0, 1]
    assert torch.equal(data.x([0])[0, 2], torch.from_numpy(grey).float() / 255)
    assert torch.equal(data.x([1])[0], torch.from_numpy(np.moveaxis(colour, -1, 0).copy()).float() / 255)


def test_train_and_test_are_splits(tmp_path: Path) -> None:
    for name in ("train/cat/1.png", "train/dog/2.png", "train/dog/3.png", "val/cat/4.png", "test/dog/5.png"):
        save(tmp_path / name, 4, 4)
    data = registry.load(tmp_path)
    assert {name: len(rows) for name, rows in data.splits.items()} == {"train": 3, "valid": 1, "test": 1}
    assert (data.about.n, data.about.labels, data.holdout) == (3, {"label": 2}, 0.0)
    assert data.labels[data.splits["train"], 0].tolist() == [0, 1, 1]


@pytest.mark.parametrize("suffix", ["jpg", "jpeg", "gif", "webp", "bmp", "png"])
def test_formats(tmp_path: Path, suffix: str) -> None:
    for k in range(2):
        save(tmp_path / f"{k}.{suffix}", 8, 8)
    assert registry.load(tmp_path).about.shape[1:] == (8, 8)


def test_size_averages_areas(tmp_path: Path) -> None:
    picture = save(tmp_path / "a.png", 8, 8)
    save(tmp_path / "b.png", 12, 6)
    data = registry.load(tmp_path, size=4)
    means = picture.reshape(4, 2, 4, 2).mean((1, 3)) / 255
    assert data.about.shape == (1, 4, 4)
    assert np.abs(data.x([0])[0, 0].numpy() - means).max() < 1.5 / 255  # Pillow rounds once for each axis
    with pytest.raises(Problem, match=r"differ in size .* --size"):
        registry.load(tmp_path)
    with pytest.raises(Problem, match="must be 1 to 16,384"):
        registry.load(tmp_path, size=0)


def test_sixteen_bits_are_scaled(tmp_path: Path) -> None:
    for k in range(2):
        Image.fromarray(np.full((4, 4), 32_768, np.uint16)).save(tmp_path / f"{k}.png")
    assert registry.load(tmp_path).x([0]).mean().item() == pytest.approx(128 / 255)


def test_many_are_decoded_once_into_the_cache(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for k in range(3):
        save(tmp_path / "pictures" / f"{k}.png", 6, 8)
    plain = registry.load(tmp_path / "pictures").hash
    monkeypatch.setattr(folder, "IN_MEMORY", 0)
    told: list[int] = []
    for _ in range(2):
        data = registry.load(tmp_path / "pictures", progress=lambda done, _: told.append(done))
        assert data.hash == plain
    assert told == [3]
    assert len(list((cache / "folders").iterdir())) == 1


def test_bad_folders(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="has no images and no text"):
        registry.load(tmp_path)
    save(tmp_path / "a.png", 60, 60)
    with pytest.raises(Problem, match="has one image; at least 2"):
        registry.load(tmp_path)
    (tmp_path / "b.png").write_bytes((tmp_path / "a.png").read_bytes()[:500])
    with pytest.raises(Problem, match=r"1 file cannot be read as an image: .*b\.png"):
        registry.load(tmp_path)
    (tmp_path / "b.png").write_bytes(b"no image")
    with pytest.raises(Problem, match=r"1 file cannot be read as an image: .*b\.png"):
        registry.load(tmp_path)
