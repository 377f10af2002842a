"""run.edit and run.attribute: another value of a label for sentences and images, by offset, map and gradient steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from contract import Killed, act_at, kill
from numpy.typing import NDArray

import elboroom
from elboroom.core.problem import Problem
from elboroom.data import arrays
from elboroom.data.dataset import DataSet
from elboroom.runs import attribute as fitting
from elboroom.runs.edit import missed
from elboroom.runs.run import Run

FIT: dict[str, Any] = {"threads": 1, "device": "cpu", "batch_size": 32, "log_every": 100}
SIDE = 12


def drawn(places: NDArray[np.float64], large: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Small and large discs with soft edges, somewhere."""
    grid = np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE), indexing="ij"))
    distance = np.sqrt(((grid - places[:, :, None, None]) ** 2).sum(1))
    radius = np.where(large, 3.0, 1.5)[:, None, None]
    return (255 / (1 + np.exp(2 * (distance - radius)))).round().astype(np.uint8)


def centres(images: Any) -> NDArray[np.float64]:
    x = np.asarray(images, np.float64).reshape(len(images), SIDE, SIDE)
    grid = np.mgrid[:SIDE, :SIDE]
    return np.stack([(x * axis).sum((1, 2)) / x.sum((1, 2)) for axis in grid], 1)


@pytest.fixture(scope="module")
def shapes() -> DataSet:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    return arrays.dataset(drawn(rng.uniform(3, SIDE - 4, (600, 2)), y), labels=y)


@pytest.fixture(scope="module")
def base(shapes: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Run:
    options = FIT | {"steps": 250, "latent": 4, "net": "mlp-300", "lr": 2e-3}
    return elboroom.train("ae", shapes, tmp_path_factory.mktemp("base") / "run", **options)


@pytest.mark.unhurried
def test_small_discs_become_large_where_they_are(base: Run, shapes: DataSet, tmp_path: Path) -> None:
    """By every way they grow and their centres stay; where no gradient overshoots, the right picture is nearer than before."""
    options = FIT | {"steps": 250, "lr": 1e-3, "width": 32, "to": "1", "style_weight": 0.5, "adversary": 0.1}
    run = elboroom.train("emb2emb", shapes, tmp_path / "run", base=base.folder, **options)
    rng = np.random.default_rng(1)
    places = rng.uniform(4, SIDE - 5, (40, 2))
    before, right = (drawn(places, np.full(40, kind))[:, None] / np.float32(255) for kind in (0, 1))
    for way in ("map", "fgim", "map+fgim", "offset"):
        made = run.edit(before, to="1", by=way)
        assert made.shape == before.shape
        assert (made.sum((1, 2, 3)) > 2 * before.sum((1, 2, 3))).mean() > 0.9, way
        assert way == "fgim" or np.abs(made - right).mean() < 0.7 * np.abs(before - right).mean(), way
        for axis in (0, 1):
            assert np.corrcoef(centres(made)[:, axis], centres(before)[:, axis])[0, 1] > 0.9, way
        np.testing.assert_allclose(run.edit(before[3:4], to="1", by=way)[0], made[3], atol=1e-4)
    told = run.attribute().probabilities(base.encode(before))
    assert told[:, 0].mean() > 0.9, "the classifier of codes is the head of its run"
    assert torch.equal(run.attribute().head.out.weight, run.model.heads["label"].out.weight)


def test_the_accuracy_is_that_of_the_head_of_the_run(base: Run, shapes: DataSet, tmp_path: Path) -> None:
    """A head after a moment of training tells little, and stays where it is and as it is."""
    options = FIT | {"steps": 8, "lr": 1e-3, "width": 8, "to": "1", "classifier_lr": 1e-6}
    run = elboroom.train("emb2emb", shapes, tmp_path / "run", base=base.folder, **options)
    head, rows = run.model.heads["label"].train(), run.rows()[1]
    found = run.attribute()
    right = found.probabilities(base.encode(shapes.x(rows).numpy())).argmax(1) == shapes.labels[rows, 0]
    assert found.accuracy == pytest.approx(right.mean())
    assert head.training
    assert found.head is not head
    assert torch.equal(found.head.out.weight, head.out.weight)
    assert elboroom.load(run.folder, data=shapes).attribute().accuracy == found.accuracy, "which is kept"


def test_edits_that_did_not_take_are_counted(base: Run, shapes: DataSet) -> None:
    x = shapes.x(np.flatnonzero(shapes.labels[:, 0] == 0)[:20]).numpy()
    assert missed(base, x, "label", "0") == (0, "0")
    assert missed(base, x, "", 1) == (20, "1")
    assert missed(base, base.edit(x, to=1), "", 1)[0] < 5


def test_strength_goes_from_the_reconstruction_along_the_offset(base: Run, shapes: DataSet) -> None:
    x = shapes.x(np.arange(5)).numpy()
    np.testing.assert_allclose(base.edit(x, to="1", strength=0.0), base.reconstruct(x), atol=1e-6)
    rows = base.split("train", 10_000).rows
    codes, y = base.encode(shapes.x(rows).numpy()), shapes.labels[rows, 0]
    offset = codes[y == 1].mean(0) - codes[y == 0].mean(0)
    np.testing.assert_allclose(base.attribute("label").offset(1).numpy(), offset, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(base.edit(x, to=1, strength=2.0), base.decode(base.encode(x) + 2 * offset), atol=1e-4)


def test_an_attribute_is_fitted_once_and_anew_for_other_weights(base: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    first = base.attribute()
    assert first.accuracy > 0.9
    files = list(base.folder.glob("attribute-*.safetensors"))
    assert len(files) == 1
    fitted = fitting._fitted
    monkeypatch.setattr(fitting, "_fitted", lambda *_: pytest.fail("it is kept"))
    again = elboroom.load(base.folder, data=base.data).attribute("label")
    assert torch.equal(first.means, again.means)
    assert torch.equal(first.head.out.weight, again.head.out.weight)
    counted: list[str] = []
    monkeypatch.setattr(fitting, "_fitted", lambda run, label: counted.append(label) or fitted(run, label))
    base.attribute()
    files[0].write_bytes(b"no tensors")
    elboroom.load(base.folder, data=base.data).attribute()
    other = elboroom.load(base.folder, data=base.data)
    with torch.no_grad():
        next(other.model.posterior.parameters()).add_(0.01)
    other.attribute()
    assert counted == ["label", "label"]


def test_a_loaded_run_reads_its_weights_and_its_file_once(base: Run, shapes: DataSet, monkeypatch: Any) -> None:
    x = shapes.x(np.arange(4)).numpy()
    first = base.edit(x, to="1", by="fgim")
    monkeypatch.setattr(fitting, "_key", lambda *_: pytest.fail("the weights were hashed again"))
    np.testing.assert_array_equal(base.edit(x, to="1", by="fgim"), first)


def test_a_map_encodes_what_it_edits_once(base: Run, shapes: DataSet, tmp_path: Path) -> None:
    options = FIT | {"steps": 4, "lr": 1e-3, "width": 8, "to": "1"}
    run = elboroom.train("emb2emb", shapes, tmp_path / "run", base=base.folder, **options)
    run.attribute()
    counted: list[int] = []
    run.model.posterior.register_forward_hook(lambda *_: counted.append(1))
    x = shapes.x(np.arange(4)).numpy()
    for way in ("map", "map+fgim"):
        counted.clear()
        made = run.edit(x, to="1", by=way)
        assert len(counted) == 1, way
    np.testing.assert_allclose(run.edit(x), run.decode(run.encode(x)), atol=1e-6)
    assert made.shape == x.shape


def test_a_map_that_was_stopped_before_it_began_says_so(base: Run, shapes: DataSet, tmp_path: Path) -> None:
    options = FIT | {"steps": 20, "lr": 1e-3, "width": 8, "to": "1", "pretraining": 0.5, "checkpoint_every": 4}
    with pytest.raises(Killed):
        elboroom.train("emb2emb", shapes, tmp_path / "run", base=base.folder, bar=act_at(6, kill), **options)
    run, x = elboroom.load(tmp_path / "run", data=shapes), shapes.x(np.arange(2)).numpy()
    for asked in ({}, {"by": "map"}, {"by": "map+fgim"}):
        with pytest.raises(Problem, match=r"has not been trained yet: .* step 4, .* step 10; .* elbo resume .*run$"):
            run.edit(x, to="1", **asked)
    assert run.edit(x, to="1", by="offset").shape == x.shape
    elboroom.resume(run.folder)
    assert elboroom.load(run.folder, data=shapes).edit(x).shape == x.shape


def test_what_cannot_be_is_one_sentence(base: Run, shapes: DataSet, vectors: DataSet, tmp_path: Path) -> None:
    x = shapes.x(np.arange(2)).numpy()
    for match, asked in (
        ("say the value", {}),
        ("'3'", {"to": "3"}),
        ("'colour'", {"to": "1", "label": "colour"}),
        ("has no map", {"to": "1", "by": "map"}),
        ("finite", {"to": "1", "strength": float("nan")}),
    ):
        with pytest.raises(Problem, match=match):
            base.edit(x, **asked)
    bare = arrays.dataset(np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32))
    run = elboroom.train("ae", bare, tmp_path / "bare", **FIT | {"steps": 2, "latent": 2})
    with pytest.raises(Problem, match="has no labels"):
        run.edit(np.zeros((1, 3), np.float32), to="1")
