"""Small runs of every kind of net, trained when first asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import elboroom
from elboroom.data.dataset import DataSet

Make = Callable[..., elboroom.Run]


@pytest.fixture(scope="session")
def made(
    tmp_path_factory: pytest.TempPathFactory,
    pixels: DataSet,
    rgb: DataSet,
    binary: DataSet,
    vectors: DataSet,
    sentences: DataSet,
) -> Make:
    """made("vae", "pixels", net="burgess"): a run after a few steps, the same one whenever it is asked for."""
    data = {"pixels": pixels, "rgb": rgb, "binary": binary, "vectors": vectors, "sentences": sentences}
    done: dict[str, elboroom.Run] = {}

    def make(method: str, kind: str, **options: Any) -> elboroom.Run:
        key = f"{method} {kind} {sorted(options.items())}"
        if key not in done:
            sizes: dict[str, Any] = {"embed": 16, "hidden": 7} if kind == "sentences" else {}
            folder = Path(tmp_path_factory.mktemp("run")) / "run"
            few = {"steps": 3, "batch_size": 16, "latent": 3}
            said = {name: value for name, value in {**few, **sizes, **options}.items() if value is not None}
            done[key] = elboroom.train(method, data[kind], folder, **said)
        return done[key]

    return make
