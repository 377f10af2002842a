from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from elboroom.core.problem import Problem
from elboroom.data import arrays, registry
from elboroom.data.dataset import Bytes, Reals

rng = np.random.default_rng(0)
GREY = rng.integers(0, 256, (6, 5, 4), dtype=np.uint8)
COLOUR = rng.integers(0, 256, (6, 5, 4, 3), dtype=np.uint8)


def test_grey_bytes() -> None:
    data = registry.load(GREY)
    assert (data.about.kind, data.about.shape, data.about.levels, data.holdout) == ("pixels", (1, 5, 4), 256, 0.1)
    assert torch.equal(data.x([1, 2]), torch.from_numpy(GREY[1:3, None]).float() / 255)


@pytest.mark.parametrize("array", [COLOUR, np.moveaxis(COLOUR, -1, 1), torch.from_numpy(COLOUR)])
def test_channels_may_stand_last_or_second(array: object) -> None:
    data = registry.load(array)  # type: ignore[arg-type]
    assert data.about.shape == (3, 5, 4)
    assert torch.equal(data.x([5]), torch.from_numpy(np.moveaxis(COLOUR, -1, 1)[5:]).float() / 255)
    assert data.x([5]).is_contiguous()


def test_where_both_places_fit_numpy_has_channels_last_and_torch_first() -> None:
    both = np.zeros((4, 3, 8, 1), np.uint8)
    assert registry.load(both).about.shape == (1, 3, 8)
    assert registry.load(torch.from_numpy(both)).about.shape == (3, 8, 1)


def test_hash_does_not_depend_on_the_layout() -> None:
    assert registry.load(COLOUR).hash == registry.load(np.moveaxis(COLOUR, -1, 1)).hash


def test_reals_become_bytes_only_where_nothing_is_lost() -> None:
    exact = registry.load((GREY / 255).astype(np.float32))
    assert isinstance(exact.store, Bytes)
    assert exact.about.levels == 256
    assert torch.equal(exact.x([0]), registry.load(GREY).x([0]))
    real = registry.load(rng.random((6, 5, 4)).astype(np.float32))
    assert isinstance(real.store, Reals)
    assert (real.about.kind, real.about.levels) == ("pixels", 0)


@pytest.mark.parametrize("array", [GREY > 99, (GREY > 99).astype(float), (GREY > 99).astype(np.uint8) * 255])
def test_two_values_are_binary(array: NDArray[np.uint8]) -> None:
    data = registry.load(array)
    assert data.about.levels == 2
    assert torch.equal(data.x([0, 1]), torch.from_numpy(GREY[:2, None] > 99).float())


def test_vectors_are_kept_real() -> None:
    values = rng.normal(size=(9, 3))
    data = registry.load(torch.from_numpy(values))
    assert (data.about.kind, data.about.shape, data.about.levels) == ("vectors", (3,), 0)
    assert np.array_equal(data.x([8, 0]).numpy(), values[[8, 0]].astype(np.float32))


def test_npy_is_mapped(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", GREY)
    data = registry.load(tmp_path / "a.npy")
    assert isinstance(data.store, Bytes)
    base = data.store.array
    while base is not None and not isinstance(base, np.memmap):
        base = base.base  # type: ignore[assignment]
    assert isinstance(base, np.memmap)
    assert data.hash == registry.load(GREY).hash


def test_npz_keys(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, images=GREY, labels=np.array([7, 7, 9, 9, 9, 3]))
    data = registry.load(str(file))
    assert data.about.labels == {"label": 3}
    assert data.labels[:, 0].tolist() == [1, 1, 2, 2, 2, 0]
    assert registry.load(f"{file}:images").about.labels == {}
    np.savez(file, X=GREY, Y=np.array(["cat", "cat", "dog", "dog", "dog", "bee"]))
    named = registry.load(str(file))
    assert named.classes == {"label": ("bee", "cat", "dog")}
    assert named.labels[:, 0].tolist() == [1, 1, 2, 2, 2, 0]
    np.savez(file, one=GREY, two=COLOUR, three=GREY)
    with pytest.raises(Problem, match="has one, three, two; choose one with"):
        registry.load(file)
    assert registry.load(f"{file}:two").about.shape == (3, 5, 4)
    with pytest.raises(Problem, match="did you mean 'two'"):
        registry.load(f"{file}:twoo")


BAD = GREY.astype(float) / 256
BAD[2, 0, 0] = np.nan
BAD[4, 1, 1] = np.inf


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (BAD, "2 values that are NaN or infinite, the first in row 2"),
        (BAD.reshape(6, 20), "first in row 2"),
        (GREY[:1], "1 example; at least 2"),
        (GREY[:0], "0 examples; at least 2"),
        (GREY[0, 0], "has shape"),
        (GREY[None, None], "has shape"),
        (np.zeros((4, 0, 3)), "has shape"),
        (np.zeros((4, 2, 5, 5)), "must be the channels, 1 or 3"),
        (GREY.astype(int) + 200, "values from"),
        (GREY.astype(float) / 200, "values from"),
        (-GREY.astype(float) / 256, "values from"),
        (np.array([["a", "b"], ["c", "d"]]), "must have numbers"),
        (np.array([[1j, 2], [3, 4]]), "must have numbers"),
    ],
)
def test_bad_arrays(array: NDArray[np.float64], said: str) -> None:
    with pytest.raises(Problem, match=said):
        registry.load(array)


def test_bad_labels() -> None:
    with pytest.raises(Problem, match="labels of shape"):
        arrays.dataset(GREY, labels=np.arange(5))
    with pytest.raises(Problem, match="must be whole numbers"):
        arrays.dataset(GREY, labels=np.arange(6) / 2)


def test_bad_files(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "cut.npz", x=rng.integers(0, 256, (50, 9, 9), dtype=np.uint8))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "cut.npz").read_bytes()[:2000])
    np.save(tmp_path / "cut.npy", GREY)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "cut.npy").read_bytes()[:-9])
    np.save(tmp_path / "object.npy", np.array([{}, {}], dtype=object))
    np.savez(tmp_path / "object.npz", x=np.array([{}, {}], dtype=object))
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "text.npz").write_text("not a zip")
    for name in ("cut.npz", "cut.npy", "object.npy", "object.npz", "empty.npy", "text.npz"):
        with pytest.raises(Problem, match=f"{name} cannot be read as an array"):
            registry.load(tmp_path / name)
    with pytest.raises(Problem, match="does not exist"):
        registry.load(tmp_path / "gone.npy")


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.uint8])
def test_levels_are_read_off_whole_numbers(dtype: type[np.generic]) -> None:
    digits = (np.arange(4 * 64).reshape(4, 8, 8) % 17).astype(dtype)
    data = registry.load(digits)
    assert data.about.levels == 17
    assert data.x(range(4)).max() == 1
    assert torch.equal(data.x([0]) * 16, torch.from_numpy(digits[:1, None].astype(np.float32)))


def test_dark_bytes_are_asked_about() -> None:
    dark = np.clip(GREY, 0, 93)
    with pytest.raises(Problem, match="use --levels 256 if 255 would be white, --levels 94 if 93 is"):
        registry.load(dark)
    assert registry.load(dark, levels=256).x([0]).max() < 0.5
    assert registry.load(dark, levels=94).x(range(6)).max() == 1
    assert registry.load(dark.astype(int)).about.levels == 94
    assert registry.load(GREY // 2 + 100).about.levels == 256


def test_levels_that_do_not_fit_are_refused() -> None:
    assert registry.load(GREY / 255, levels=256).hash == registry.load(GREY / 255).hash
    for array, levels in ((GREY, 100), (GREY / 300, 17), (GREY / 300, 256), (GREY, 1), (GREY.reshape(6, 20), 256)):
        with pytest.raises(Problem, match="--levels"):
            registry.load(array, levels=levels)


def test_strings_that_are_objects_are_labels_too() -> None:
    """As a column of words is in pandas."""
    x = np.zeros((4, 3), np.float32) + np.arange(4)[:, None]
    found = arrays.dataset(x, labels=np.array(["hi", "lo", "hi", "lo"], object))
    assert found.classes == {"label": ("hi", "lo")}
    with pytest.raises(Problem, match="of type object"):
        arrays.dataset(x, labels=np.array(["hi", None, "hi", "lo"], object))
