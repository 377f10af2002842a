"""Data at an address is copied once, and again when it has changed."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from PIL import Image

import elboroom
from elboroom.core.problem import Problem
from elboroom.data import registry, remote


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An empty store in memory, and a cache of one's own."""
    monkeypatch.setenv("ELBOROOM_CACHE", str(tmp_path / "cache"))
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()


def saved(**arrays: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def test_a_file_is_copied_once_and_again_when_it_changed(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.pipe_file("/b/x.npz", saved(one=np.ones((9, 3)), two=np.zeros((8, 2))))
    assert registry.load("memory://b/x.npz:two").about.shape == (2,)
    assert len(registry.load("memory://b/x.npz:one")) == 9
    first = remote.here("memory://b/x.npz")
    monkeypatch.setattr(remote, "_fetch", lambda *_: pytest.fail("it is there already"))
    assert remote.here("memory://b/x.npz") == first
    monkeypatch.undo()
    bucket.pipe_file("/b/x.npz", saved(one=np.ones((5, 3))))
    assert remote.here("memory://b/x.npz") != first


def test_a_folder_of_pictures_and_a_text_file(bucket: Any) -> None:
    for i in range(6):
        content = io.BytesIO()
        Image.new("L", (8, 8), 20 * i).save(content, "PNG")
        bucket.pipe_file(f"/b/photos/{'ab'[i % 2]}/{i}.png", content.getvalue())
    data = registry.load("memory://b/photos", size=4)
    assert (data.about.shape, data.classes) == ((1, 4, 4), {"label": ("a", "b")})
    bucket.pipe_file("/b/lines.txt", b"\n".join(b"w%d w%d" % (i % 3, i % 4) for i in range(30)))
    assert registry.load("memory://b/lines.txt").sentences(np.array([5])) == ["w2 w1"]


def test_a_run_remembers_the_address(bucket: Any, tmp_path: Path) -> None:
    bucket.pipe_file("/b/x.npz", saved(x=np.random.default_rng(0).normal(size=(40, 3))))
    elboroom.train("vae", "memory://b/x.npz", tmp_path / "run", steps=2, batch_size=8, latent=2)
    again = elboroom.load(tmp_path / "run")
    assert again.spec.data["source"] == "memory://b/x.npz"
    assert len(again.data) == 40


def test_what_is_not_there_is_said_in_a_sentence(bucket: Any) -> None:
    with pytest.raises(Problem, match=r"memory://b/none\.npy does not exist"):
        registry.load("memory://b/none.npy")
    with pytest.raises(Problem, match=r"nosuch://b/x\.npy cannot be read"):
        registry.load("nosuch://b/x.npy")


@pytest.mark.parametrize(("address", "package"), [("s3://bucket/x.npy", "s3fs"), ("gs://bucket/x.npy", "gcsfs")])
def test_the_package_of_a_store_that_is_not_here_is_named(
    address: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    with pytest.raises(Problem) as told:
        remote.here(address)
    assert str(told.value) == f"{address} cannot be read without {package}: pip install {package}"


def test_what_a_store_says_at_length_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fsspec.core, "url_to_fs", lambda _: (_ for _ in ()).throw(OSError("no\n\nlibjvm, " * 100)))
    with pytest.raises(Problem, match=r"^hdfs://x/y cannot be read: OSError: no libjvm, no ") as told:
        remote.here("hdfs://x/y")
    assert len(str(told.value)) < 400
