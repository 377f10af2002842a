"""What a report holds for its sliders: frames that are the traversals of the run, and one module that needs no file."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from elboroom.data.dataset import DataSet
from elboroom.explorer import frames as made
from elboroom.explorer.frames import frames, module
from elboroom.report import write_report
from elboroom.runs.lifecycle import load, train


def test_frames_are_the_traversals(pictures: Path) -> None:
    run, kept = load(pictures), frames(load(pictures))
    assert kept is not None
    dims = [d["index"] for d in kept["dimensions"]]
    assert [stops[0] for stops in kept["stops"]] == pytest.approx([d["low"] for d in kept["dimensions"]], rel=1e-5)
    assert [stops[-1] for stops in kept["stops"]] == pytest.approx([d["high"] for d in kept["dimensions"]], rel=1e-5)
    z = np.repeat(run.encode(run.examples(1, seed=1)), 2, 0)
    z[0, dims[1]] = kept["stops"][1][2]
    moved, plain = run.decode(z)
    sheet = np.asarray(Image.open(io.BytesIO(base64.b64decode(kept["sprites"][1].partition(",")[2])))) / 255
    assert sheet.shape == (16 * (len(dims) + 1), 16 * len(kept["stops"][0]))
    np.testing.assert_allclose(sheet[16:32, 32:48], moved[0].clip(0, 1), atol=0.5 / 255 + 1e-5)
    np.testing.assert_allclose(sheet[-16:, :16], plain[0].clip(0, 1), atol=0.5 / 255 + 1e-5)  # an example as it is
    assert json.loads(json.dumps(kept, allow_nan=False)) == kept


def test_sentences_are_kept_as_such(words: Path) -> None:
    run, kept = load(words), frames(load(words))
    assert kept is not None
    assert kept["starts"][0] == run.reconstruct(run.examples(1))[0]
    assert len(kept["sentences"][0]) == len(kept["dimensions"])


def test_what_would_be_too_large_is_made_smaller_or_left_out(pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = frames(load(pictures))
    assert whole is not None
    size = sum(map(len, whole["sprites"]))
    monkeypatch.setattr(made, "BUDGET", size - 1)
    smaller = frames(load(pictures))
    assert smaller is not None
    assert sum(map(len, smaller["sprites"])) < size
    monkeypatch.setattr(made, "BUDGET", 10)
    assert frames(load(pictures)) is None


def test_vectors_have_no_frames(vectors: DataSet, tmp_path: Path) -> None:
    run = train("vae", vectors, tmp_path / "run", steps=2, batch_size=32, latent=2, net="mlp-300", device="cpu")
    assert frames(run) is None
    assert "sliders" not in write_report(run, n=50).read_text().split("<main>")[1].split("</main>")[0]


def test_the_module_is_joined_without_imports() -> None:
    text = module()
    assert not any(line.startswith(("import ", "export ")) for line in text.splitlines())
    assert all(name in text for name in ("class Dials", "class Stage", "class Frames", "function mount"))
