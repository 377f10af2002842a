"""What TensorBoard's projector reads of a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format
from PIL import Image
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

from elboroom.runs.run import Run
from elboroom.share import projector


def config(folder: Path) -> ProjectorConfig:
    return text_format.Parse((folder / projector.ABOUT).read_text(), ProjectorConfig())


def test_vectors_labels_and_pictures_belong_together(made: Callable[..., Run]) -> None:
    run = made("vae", "pixels", net="mlp-300")
    folder = run.export("projector")
    assert folder == run.folder / "projector"
    (said,) = config(folder).embeddings
    assert list(said.sprite.single_image_dim) == [16, 16]
    vectors, labels = np.loadtxt(folder / said.tensor_path), (folder / said.metadata_path).read_text().splitlines()
    batch = run.examples(projector.POINTS)
    assert np.allclose(vectors, run.encode(batch), atol=1e-5)
    assert batch.index is not None
    assert labels == [str(run.data.labels[row, 0]) for row in batch.index]
    across = int(np.ceil(np.sqrt(len(vectors))))
    picture = np.asarray(Image.open(folder / said.sprite.image_path))
    assert picture.shape == (16 * across, 16 * across)
    third = picture[:16, 32:48]
    assert np.array_equal(third, np.rint(batch.x[2, 0].numpy() * 255))
    assert run.export("projector") == folder, "an export of before is replaced"


def test_sentences_stand_beside_their_labels(made: Callable[..., Run], tmp_path: Path) -> None:
    run = made("vae", "sentences", net="lstm")
    folder = run.export("projector", tmp_path / "out")
    first, *rows = [line.split("\t") for line in (folder / "metadata.tsv").read_text().splitlines()]
    assert first == ["sentence", "label"]
    assert [row[0] for row in rows] == run.sentences(projector.POINTS)
    assert not (folder / "sprite.png").exists()
    assert not config(folder).embeddings[0].HasField("sprite")


@pytest.mark.parametrize("channels", [1, 3])
def test_a_large_picture_is_made_smaller(channels: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(projector, "SIDE", 24)
    (tmp_path / "a.png").write_bytes(projector.sprite(np.ones((5, channels, 16, 16), np.float32)))
    assert Image.open(tmp_path / "a.png").size == (24, 24)
