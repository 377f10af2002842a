"""Images, and a small run of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

TINY = ["--batch-size", "8", "--latent", "3", "--threads", "1", "--log-every", "2", "--checkpoint-every", "4"]
Elbo = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("images") / "x.npy"
    np.save(path, (np.random.default_rng(0).random((200, 16, 16)) * 255).astype(np.uint8))
    return path


@pytest.fixture(scope="module")
def trained(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run, kept as it was."""
    import elboroom

    out = tmp_path_factory.mktemp("runs") / "run"
    elboroom.train(
        "beta-vae", images, out, steps=12, batch_size=8, latent=3, threads=1, log_every=2, checkpoint_every=4
    )
    return out


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(trained, tmp_path / "run"))
