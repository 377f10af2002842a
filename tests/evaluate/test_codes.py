"""Every example is encoded once, and metrics read off the table what they would read off the encoder."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from elboroom.core.model import LatentModel
from elboroom.core.problem import Problem
from elboroom.data.dataset import About, Bytes, DataSet
from elboroom.data.fields import CATEGORICAL, ORDINAL
from elboroom.evaluate.codes import code_table
from elboroom.evaluate.disentanglement import Grid, Rows, beta_vae, evaluate, factor_vae
from elboroom.evaluate.disentanglement.source import Floats, Ints
from elboroom.families.gaussian import GaussianPosterior, StandardNormal
from elboroom.families.pixels import GaussianLikelihood
from elboroom.families.point import PointPosterior
from elboroom.training.batches import batch_of

SIZES = {"shape": 2, "posX": 4, "posY": 5}


class Conv(nn.Module):
    """A small encoder."""

    def __init__(self, outputs: int, *more: nn.Module) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Conv2d(1, 4, 4, 2), nn.ReLU(), *more, nn.Flatten(), nn.Linear(4 * 9, outputs))

    def forward(self, x: Tensor, u: Tensor | None = None) -> Tensor:
        return 5 * self.net(x)


@dataclass
class Study:
    """What stands for a run."""

    folder: Path
    model: LatentModel
    data: DataSet
    given: tuple[str, ...] = ()


def _data(order: slice = slice(None)) -> DataSet:
    labels = np.stack(np.unravel_index(np.arange(40), (2, 4, 5)), 1)[order]
    images = np.zeros((len(labels), 1, 8, 8), np.uint8)
    for image, (shape, x, y) in zip(images, labels, strict=True):
        image[0, x : x + 3, y : y + 3] = 255 if shape else np.eye(3) * 255
    kinds = dict.fromkeys(SIZES, ORDINAL) | {"shape": CATEGORICAL}
    about = About("grid", "pixels", (1, 8, 8), len(labels), SIZES, kinds=kinds)
    return DataSet(about, Bytes(images), labels=labels)


def _study(folder: Path, posterior: nn.Module, data: DataSet | None = None) -> Study:
    model = LatentModel(posterior, StandardNormal(3), GaussianLikelihood(nn.Linear(3, 64), 64, 1.0))
    return Study(folder, model.eval(), data or _data())


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return _study(tmp_path, GaussianPosterior(Conv(6)))


class Direct(Grid):
    """A grid that encodes what it draws, every time."""

    study: Study

    def codes_at(self, index: Ints, rng: np.random.RandomState) -> Floats:
        with torch.inference_mode():
            q = self.study.model.posterior(batch_of(self.study.data, index.reshape(-1), ()))
        return np.asarray(q.mean.numpy().reshape(*index.shape, -1))


def test_a_table_gives_what_the_encoder_gives(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"length": 16, "train": 300, "test": 150}
    monkeypatch.setitem(beta_vae.MODES, "dlib", beta_vae.Protocol(beta_vae._liblinear, draws=1, **few))
    monkeypatch.setitem(factor_vae.MODES, "dlib", factor_vae.Protocol(**few))
    table = code_table(study, batch=7)
    direct = Direct(table.mu, None, (2, 4, 5), tuple(SIZES))
    direct.study = study
    names = ["beta-vae", "factor-vae", "mig", "sap"]
    mine, theirs = evaluate(table, names), evaluate(direct, names)
    for name in names:
        assert mine[name].value == pytest.approx(theirs[name].value, abs=1e-6), name
        assert 0 < mine[name].value <= 1  # type: ignore[operator]


def test_a_full_grid_is_drawn_from_as_such(study: Study) -> None:
    source = code_table(study).source
    assert isinstance(source, Grid)
    assert source.names == ("shape", "posX", "posY")
    assert source.kinds == ("categorical", "ordinal", "ordinal")
    rows = np.arange(40)
    with torch.inference_mode():
        q = study.model.posterior(batch_of(study.data, rows, ()))
    np.testing.assert_allclose(source.mu, q.mean.numpy(), atol=1e-6)
    np.testing.assert_allclose(source.logvar, q.logvar.numpy(), atol=1e-6)  # type: ignore[arg-type]


def test_other_data_is_taken_row_by_row(tmp_path: Path) -> None:
    study = _study(tmp_path, GaussianPosterior(Conv(6)), _data(slice(None, None, -1)))
    source = code_table(study, allow_smaller=True).source
    assert isinstance(source, Rows)
    assert source.settings["sampling"] == "observed"
    assert evaluate(source, ["mig"])["mig"].settings["n"] == 40


def test_it_is_kept_until_weights_or_data_change(study: Study) -> None:
    seen: list[Any] = []
    code_table(study, lambda *at: seen.append(at), batch=16)
    assert seen == [(16, 40), (32, 40), (40, 40)]
    code_table(study, lambda *at: seen.append(at))
    assert len(seen) == 3
    with torch.no_grad():
        next(study.model.posterior.parameters()).add_(1)
    first = np.array(code_table(study, lambda *at: seen.append(at)).mu)
    assert len(seen) == 4
    (study.folder / "codes" / "mu.npy").write_bytes(b"torn")
    np.testing.assert_array_equal(code_table(study, lambda *at: seen.append(at)).mu, first)
    assert len(seen) == 5
    assert sorted(path.name for path in (study.folder / "codes").iterdir()) == ["codes.json", "logvar.npy", "mu.npy"]


def test_threads_change_no_code(study: Study, tmp_path: Path) -> None:
    one = np.array(code_table(study, batch=7).mu)
    torch.set_num_threads(2)  # every test begins with one again
    seen: list[Any] = []
    two = code_table(_study(tmp_path / "two", study.model.posterior), lambda *at: seen.append(at), batch=7)
    np.testing.assert_allclose(two.mu, one, atol=1e-6)
    assert seen == [(7, 40), (14, 40), (21, 40), (28, 40), (35, 40), (40, 40)]
    assert torch.get_num_threads() == 2


def test_codes_that_depend_on_the_batch_are_refused(tmp_path: Path) -> None:
    study = _study(tmp_path, GaussianPosterior(Conv(6, nn.BatchNorm2d(4), nn.Dropout())))
    assert len(code_table(study)) == 40
    study.model.train()
    (tmp_path / "codes" / "codes.json").unlink()
    with pytest.raises(Problem, match="training mode"):
        code_table(study)


def test_a_point_has_means_only(tmp_path: Path) -> None:
    table = code_table(_study(tmp_path, PointPosterior(Conv(3))))
    assert table.logvar is None
    with pytest.raises(Problem, match="use the representation 'mean'"):
        evaluate(table, ["mig"], representation="sampled")


def test_a_broken_model_is_named(study: Study) -> None:
    with torch.no_grad():
        next(study.model.posterior.parameters()).fill_(math.nan)
    with pytest.raises(Problem, match="NaN or infinite, the first in row 0"):
        evaluate(code_table(study), ["mig"])
