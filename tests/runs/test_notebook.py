"""Python as people write it in a notebook: labels beside arrays, frames, figures as objects, one image alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

import elboroom
from elboroom.core.problem import Problem
from elboroom.data import registry
from elboroom.data.text import Reading

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (40, 8, 8)).astype(np.uint8)
Y = np.arange(40) % 4
SMALL: dict[str, Any] = {"steps": 4, "latent": 2, "threads": 1, "net": "mlp-300"}


@pytest.mark.arguments
def test_messages_name_arguments(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="vae has no option batchsize; did you mean 'batch_size'"):
        elboroom.train("vae", IMAGES, tmp_path / "run", batchsize=3)
    with pytest.raises(Problem, match="use levels=256 if 255 would be white, levels=94 if 93 is"):
        elboroom.train("vae", (IMAGES % 94).astype(np.uint8), tmp_path / "run")
    with pytest.warns(UserWarning, match="^batch_size=64 is more than"):
        elboroom.train("vae", IMAGES, tmp_path / "run", batch_size=64, **SMALL)


class Frame:
    """What frames of pandas and polars have in common."""

    def __init__(self, **columns: Any) -> None:
        self.columns, self._columns = list(columns), columns

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]

    def to_numpy(self) -> Any:
        return np.column_stack(list(self._columns.values()))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> elboroom.Run:
    return elboroom.train("vae", (IMAGES, Y), tmp_path_factory.mktemp("runs") / "run", **SMALL)


@pytest.mark.parametrize(
    ("data", "labels", "names"),
    [
        ((IMAGES, Y), None, {"label": 4}),
        (IMAGES, Y, {"label": 4}),
        (IMAGES, {"digit": Y, "odd": Y % 2}, {"digit": 4, "odd": 2}),
        (IMAGES, Frame(digit=Y), {"digit": 4}),
        (IMAGES, np.array(list("abcd"))[Y], {"label": 4}),
        ((["a b", "c d", "e f"], [0, 1, 0]), None, {"label": 2}),
        (["a b", "c d", "e f"], ["x", "y", "x"], {"label": 2}),
    ],
)
def test_labels_are_handed_in_beside_examples(data: Any, labels: Any, names: dict[str, int]) -> None:
    assert registry.load(data, labels=labels).draft.labels == names


def test_two_sentences_are_no_pair() -> None:
    assert registry.load(("a b", "c d")).draft.labels == {}
    with pytest.raises(Problem, match="said twice"):
        registry.load((IMAGES, Y), labels=Y)
    with pytest.raises(Problem, match="labels of shape"):
        registry.load(IMAGES, labels=Y[:3])


def test_a_frame_is_read_as_a_table_is() -> None:
    numbers = {"a": np.arange(6.0), "b": np.arange(6) * 2}
    assert registry.load(Frame(**numbers)).about.shape == (2,)
    named = registry.load(Frame(**numbers, label=np.array(list("xyxyxy"), object)))
    assert (named.about.shape, named.classes) == ((2,), {"label": ("x", "y")})
    kinds = Frame(**numbers, kind=np.array(list("xyxyxy"), object))
    assert registry.load(kinds, reading=Reading(label_column="kind")).draft.labels == {"kind": 2}
    with pytest.raises(Problem, match="kind hold no numbers"):
        registry.load(kinds)
    words = Frame(text=np.array(["a b", "c d", "e f"], object), label=np.array([1, 2, 1]))
    assert registry.load(words).classes == {"label": ("1", "2")}


def test_a_run_on_an_array_is_measured_by_itself(run: elboroom.Run) -> None:
    """It keeps what it was trained on, labels too."""
    again = elboroom.load(run.folder)
    assert again.elbo() == run.elbo()
    assert again.data.hash == run.data.hash
    assert again.data.draft.labels == {"label": 4}
    assert elboroom.resume(run.folder, 1).step == 5


@pytest.mark.parametrize(
    ("data", "more"),
    [
        (RNG.normal(size=(30, 3)), {}),
        (IMAGES / 256.5, {}),
        ([f"w{i % 7} w{i % 5}" for i in range(40)], {"embed": 4, "hidden": 4, "min_count": 2, "net": "lstm"}),
        ((["a b c", "d e f"] * 20, list("xy") * 20), {"embed": 4, "hidden": 4, "net": "lstm", "given": "label"}),
        (registry.load(IMAGES, labels={"age": Y}, label_kinds={"age": "ordinal"}), {}),
    ],
)
def test_all_that_is_handed_in_is_kept(data: Any, more: dict[str, Any], tmp_path: Path) -> None:
    made = elboroom.train("vae", data, tmp_path / "run", **SMALL | more)
    again = elboroom.load(made.folder)
    assert again.data.hash == made.data.hash
    assert again.elbo() == made.elbo()


def test_large_data_is_not_kept_and_is_handed_in_by_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elboroom.data.kept.MOST", 100)
    made = elboroom.train("vae", IMAGES, tmp_path / "run", **SMALL)
    with pytest.raises(Problem, match="keeps no copy"):
        elboroom.load(made.folder).elbo()
    np.save(tmp_path / "x.npy", IMAGES)
    assert elboroom.load(made.folder, data=tmp_path / "x.npy").elbo().value == made.elbo().value
    np.save(tmp_path / "y.npy", IMAGES[::-1])
    with pytest.raises(Problem, match="hash differs"):
        elboroom.load(made.folder, data=tmp_path / "y.npy").elbo()


def test_one_image_alone_is_encoded(run: elboroom.Run) -> None:
    one = run.encode(IMAGES[:1])
    for alone in (IMAGES[0], IMAGES[0][None], IMAGES[0] / 255, IMAGES[0].astype(float)):
        np.testing.assert_allclose(run.encode(alone), one, atol=1e-5)


def test_reals_from_nought_to_255_are_read(tmp_path: Path) -> None:
    values = IMAGES * 0.999
    with pytest.warns(UserWarning, match="reals from 0 to 25.*, which are divided by 255"):
        made = elboroom.train("vae", values, tmp_path / "run", **SMALL)
    assert made.spec.about.levels == 0
    np.testing.assert_allclose(made.encode(values), made.encode(values / 255), atol=1e-5)
    with pytest.raises(Problem, match="divide them by the value that white has"):
        registry.load(values / 10)


def test_examples_print_as_a_summary(run: elboroom.Run) -> None:
    assert repr(run.examples(3)).startswith("Batch of 3: x (3, 1, 8, 8), index (3,), y (3, 1); values from 0")
    assert len(run.examples().x) == 4, "all of the test split, which has fewer than ten"


def test_figures_are_objects(run: elboroom.Run) -> None:
    drawn = run.plot("traversals")
    assert isinstance(drawn.figure, Figure)
    assert drawn._repr_html_().startswith("<figure><img src='data:image/png;base64,")
    with pytest.raises(Problem, match="did you mean 'traversals'"):
        run.plot("traversal")
    with pytest.raises(Problem, match="has no transfer, which needs text and style"):
        run.plot("transfer")
    assert isinstance(run.plot("map").figure, Figure), "as elbo plot map draws it"


@pytest.mark.unhurried
def test_a_run_shows_itself_and_its_report(run: elboroom.Run, tmp_path: Path) -> None:
    shown = run._repr_html_()
    assert "<b>vae</b>" in shown
    assert "nll + kl" in shown
    assert run.report(tmp_path / "r.html").read_text().startswith("<!")
    assert "elbo" in run._repr_html_(), "which the report has measured"


def test_a_run_is_overwritten_if_that_is_said(tmp_path: Path) -> None:
    elboroom.train("vae", IMAGES, tmp_path / "run", **SMALL)
    with pytest.raises(Problem, match="already has a run"):
        elboroom.train("vae", IMAGES, tmp_path / "run", **SMALL)
    again = elboroom.train("vae", IMAGES, tmp_path / "run", overwrite=True, seed=4, **SMALL)
    assert (again.spec.fit.seed, again.log[0]["step"]) == (4, 4)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    with pytest.raises(Problem, match="not an empty folder"):
        elboroom.train("vae", IMAGES, tmp_path / "mine", overwrite=True, **SMALL)
    assert (tmp_path / "mine" / "thesis.txt").exists()


def test_pictures_of_ones_own_are_read_as_the_data_was(run: elboroom.Run, tmp_path: Path) -> None:
    from elboroom.runs.inputs import of_files

    Image.fromarray(IMAGES[0]).save(tmp_path / "a.png")
    Image.new("RGBA", (20, 30), (0, 0, 0, 0)).save(tmp_path / "b.png")
    x = of_files(run, [tmp_path / "a.png", tmp_path / "b.png"])
    np.testing.assert_allclose(x[0, 0], IMAGES[0] / 255, atol=1e-6)
    assert x[1].min() == 1.0, "what is transparent is white"
    (tmp_path / "c.png").write_bytes(b"no")
    with pytest.raises(Problem, match=r"c\.png cannot be read as an image"):
        of_files(run, [tmp_path / "a.png", tmp_path / "c.png"])
