"""Every figure on every kind of run: images in grey and colour, vectors, conditional models, and models without a density."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from elboroom import plots
from elboroom.core.problem import Problem
from elboroom.data import arrays
from elboroom.data.dataset import DataSet
from elboroom.plots.codes import Codes
from elboroom.plots.curves import Series, series
from elboroom.plots.figures import FIGURES, listing, named
from elboroom.plots.latent import bins
from elboroom.runs import measure
from elboroom.runs.lifecycle import train
from elboroom.runs.run import Run

PICTURES = ["reconstructions", "traversals", "samples", "densities", "interpolations"]
BEYOND = ["attributes", "flips", "shift"]
EVERYTHING = ["curves", *PICTURES, "rates", "aggregate", "collapse", "pairs", *BEYOND]
TINY: dict[str, Any] = {"steps": 6, "log_every": 1, "batch_size": 32, "latent": 3, "net": "mlp-300", "device": "cpu"}


@pytest.fixture(scope="module")
def grey(pixels: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train("control-vae", pixels, tmp_path_factory.mktemp("grey"), **TINY)


def test_a_run_on_images_has_every_figure(grey: Run, tmp_path: Path) -> None:
    shown = list(plots.gallery(grey, n=100))
    assert [e.name for e in shown] == EVERYTHING
    for exhibit in shown:
        assert isinstance(exhibit.figure, Figure), exhibit.reason
        written = exhibit.save(tmp_path)
        assert all(path.stat().st_size > 500 for path in written)
        assert exhibit.caption.endswith(".")
    assert {path.name for path in tmp_path.glob("*.svg")} == {f"{e.name}.svg" for e in shown if e.chart}


@pytest.mark.parametrize(("method", "options"), [("vae", {"given": "label"}), ("beta-tcvae", {"latent": 1})])
def test_so_has_a_conditional_run_in_colour_and_one_of_one_dimension(
    method: str, options: dict[str, Any], rgb: DataSet, tmp_path: Path
) -> None:
    run = train(method, rgb, tmp_path, **TINY | options)
    shown = {e.name: e for e in plots.gallery(run, n=100)}
    styles = ["transfer"] if run.given else []  # another label is another style
    assert list(shown) == ["curves", *PICTURES, *styles, *EVERYTHING[1 + len(PICTURES) :]]
    reasons = {name: e.reason for name, e in shown.items() if e.figure is None}
    assert all("change u, not z" in reason for reason in reasons.values())
    assert list(reasons) == (["attributes"] if run.given else [])


def test_vectors_have_no_pictures(vectors: DataSet, tmp_path: Path) -> None:
    run = train("vae", vectors, tmp_path, **TINY)
    assert [e.name for e in plots.gallery(run, n=100)] == [name for name in EVERYTHING if name not in PICTURES + BEYOND]
    with pytest.raises(Problem, match="for images; the data are vectors"):
        plots.reconstructions(run)


def test_where_there_is_no_density_a_sentence_stands_instead(pixels: DataSet, tmp_path: Path) -> None:
    run = train("ae", pixels, tmp_path, **TINY)
    reasons = {e.name: e.reason for e in plots.gallery(run, n=100) if e.figure is None}
    assert set(reasons) == {"samples", "densities", "rates", "collapse"}
    assert all(
        any(why in reason for why in ("no density", "not a diagonal", "no prior")) for reason in reasons.values()
    )


def test_what_data_and_measures_do_not_allow_is_left_out(pixels: DataSet, tmp_path: Path) -> None:
    bare = arrays.dataset(np.random.default_rng(0).integers(0, 256, (200, 16, 16)).astype(np.uint8))
    run = train("vae", bare, tmp_path / "bare", **TINY)
    assert "attributes" not in [e.name for e in plots.gallery(run, n=50)]
    run = train("vae", pixels, tmp_path / "run", **TINY)
    measure.metrics(run, "downstream", mode="logistic")
    assert next(e for e in plots.gallery(run, n=50) if e.name == "labels").figure is not None


def test_the_view_of_collapse_counts_active_dimensions(grey: Run) -> None:
    active = int(Codes.of(grey, 100).active.sum())
    caption = next(e.caption for e in plots.gallery(grey, n=100) if e.name == "collapse")
    assert caption.startswith(f"{active} of 3 dimensions")


def test_every_figure_is_registered_once() -> None:
    told = listing()
    assert json.loads(json.dumps(told)) == told
    assert len(told) == len([plot for plot in FIGURES if plot.what]), "one name, one figure"
    assert all(plot.title and (plot.name in told or plot.caption) for plot in FIGURES)
    assert set(EVERYTHING) <= told.keys()
    with pytest.raises(Problem, match="did you mean 'collapse'"):
        named("colapse")


def test_a_report_and_elbo_plot_draw_the_same(grey: Run, tmp_path: Path) -> None:
    for exhibit in plots.gallery(grey, n=10_000):
        if exhibit.name in ("traversals", "rates", "collapse", "aggregate"):
            alone = plots.save(named(exhibit.name).figure([grey]), tmp_path / "alone.png").read_bytes()
            assert exhibit.save(tmp_path)[0].read_bytes() == alone
    with pytest.raises(Problem, match="shows one run; you gave 2"):
        named("rates").figure([grey, grey])


def test_a_figure_of_images_does_not_stand_in_for_sentences(sentences: DataSet, tmp_path: Path) -> None:
    run = train("vae", sentences, tmp_path, steps=2, batch_size=8, latent=3, embed=6, hidden=7, device="cpu")
    shown = list(plots.gallery(run, n=50))
    spoken, codes = ["samples", "reconstructions", "interpolations"], ["rates", "aggregate", "collapse", "pairs", "map"]
    assert [e.name for e in shown] == ["curves", *spoken, *codes]
    assert [e.name for e in shown if e.sentences] == spoken
    assert "nats per sentence" in shown[0].caption
    with pytest.raises(Problem, match="for images"):
        named("samples").figure([run])


def test_rows_of_a_traversal_come_by_rate_and_say_it(grey: Run) -> None:
    codes = Codes.of(grey, 100)
    rate = codes.rate
    assert rate is not None
    assert np.allclose(rate, grey.kl_per_dim(), rtol=1e-4)
    labels = [text.get_text() for text in plots.traversals(grey, codes).axes[0].texts]
    ranked = sorted(range(3), key=lambda j: -rate[j])
    assert labels[:3] == [f"z{j}   KL {rate[j]:.2f}" for j in ranked]
    assert len(labels) == 3 + 10


def test_the_line_over_the_histograms_is_of_the_prior(grey: Run, pixels: DataSet, tmp_path: Path) -> None:
    codes = Codes.of(grey, 100)
    plain = codes.prior_draws(2000)
    assert plain is not None
    assert plain.shape == (2000 * len(codes.mean), 3)
    assert np.allclose(plain.mean(0), 0, atol=0.03)
    assert np.allclose(plain.std(0), 1, atol=0.03)
    drawn = plots.aggregate(grey).axes[0]
    assert (len(drawn.patches), len(drawn.lines)) == (1, 1), "the density of N(0, I) is a curve"
    at, height = drawn.lines[0].get_data()
    assert np.allclose(height, np.exp(-0.5 * np.square(at)) / np.sqrt(2 * np.pi), atol=1e-5)
    assert [bins(n) for n in (5, 44, 1000, 10_000)] == [8, 10, 30, 60]
    given = Codes.of(train("vae", pixels, tmp_path / "given", **TINY, given="label"), 100).prior_draws(3)
    assert given is not None
    assert given.shape == (3 * len(codes.mean), 3)
    ball = Codes.of(train("p-vae", pixels, tmp_path / "ball", **TINY), 100).prior_draws()
    assert ball is not None
    assert (np.linalg.norm(ball, axis=1) < 1).all()
    assert Codes.of(train("ae", pixels, tmp_path / "ae", **TINY), 100).prior_draws() is None


def test_a_model_with_a_prior_has_samples_whether_or_not_q_has_a_density(pixels: DataSet, tmp_path: Path) -> None:
    run = train("apo-vae", pixels, tmp_path, **TINY)
    reasons = {e.name: e.reason for e in plots.gallery(run, n=100) if e.figure is None}
    assert set(reasons) == {"rates", "collapse"}


def test_codes_that_have_collapsed_are_a_point(grey: Run) -> None:
    codes = Codes.of(grey, 100)
    small = replace(codes, mean=1e-6 * codes.mean)
    for ax in plots.pairs(grey, small).axes:
        assert not ax.axison or np.ptp(ax.get_xlim()) >= 0.1 - 1e-9


def test_curves_hold_every_term_and_mark_the_weights(grey: Run) -> None:
    found = series(grey.log)
    assert [s.name for s in found] == ["lr", "nll", "kl", "kl.weight", "loss"]
    assert [s.title for s in found if s.is_weight] == ["weight of kl"]
    assert [len(s.values) for s in found] == [6] * 5
    assert [ax.get_title("left") for ax in plots.curves(grey).axes if ax.axison] == [
        "lr",
        "nll",
        "kl",
        "weight of kl",
        "loss",
    ]
    with pytest.raises(Problem, match="log is empty"):
        plots.curves([])


def test_a_long_series_is_thinned_by_means_and_its_start_may_leave_the_frame() -> None:
    long = Series("nll", tuple(range(1, 1001)), (1e6, *(float(i % 2) for i in range(999))))
    assert long.frame[1] < 2
    thin = long.thinned(100)
    assert len(thin.steps) == 100
    assert thin.steps[-1] == 1000
    assert np.allclose(thin.values[1:], 0.5)


def test_figures_look_the_same_whatever_the_user_set(grey: Run, tmp_path: Path) -> None:
    plain = plots.save(plots.curves(grey), tmp_path / "plain.svg").read_bytes()
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "lines.linewidth": 9}):
        assert plots.save(plots.curves(grey), tmp_path / "own.svg").read_bytes() == plain
        assert matplotlib.rcParams["font.size"] == 30


@pytest.mark.parametrize("kind", ["flip-traversals", "shift-traversals"])
def test_whole_traversals_of_strange_inputs_have_a_row_a_dimension(kind: str, grey: Run, tmp_path: Path) -> None:
    """Three inputs, three dimensions each; beside the first row the input, beside the second what is made of it."""
    figure = named(kind).figure([grey])
    texts = [text.get_text() for text in figure.axes[0].texts]
    rows, columns = texts[:9], texts[9:]
    blocks = {"flip-traversals": ("0.1% flipped", "1.0% flipped", "5.0% flipped"), "shift-traversals": ("triangle", "inverted",
              "as it is")}[kind]  # fmt: skip
    first = Codes.of(grey).order[0]
    assert [rows[0], rows[3], rows[6]] == [f"{name}   z{first}" for name in blocks]
    assert columns[0] == "in, out"
    assert len(columns) == 11
    image = np.asarray(figure.axes[0].images[0].get_array())
    assert image.shape[:2] == (9 * 67 - 3, 11 * 67 - 3)
    if kind == "shift-traversals":
        batch = grey.examples(1)
        clean, inverted = image[6 * 67 : 6 * 67 + 64, :64, 0], image[3 * 67 : 3 * 67 + 64, :64, 0]
        assert np.abs(clean[::4, ::4] - 255 * batch.x[0, 0].numpy()).max() <= 0.51
        assert np.abs(255.0 - inverted - clean).max() <= 1
        grid = grey.traverse(batch, Codes.of(grey).order, 10)
        shown = image[6 * 67 : 6 * 67 + 64 : 4, 67 : 67 + 64 : 4, 0]
        assert np.abs(shown - 255 * grid[0, 0, 0].clip(0, 1)).max() <= 0.51


def test_each_dimension_has_its_line(grey: Run) -> None:
    codes = Codes.of(grey)
    assert codes.stddev is not None
    mean, stddev = codes.mean.copy(), codes.stddev.copy()
    rng = np.random.default_rng(0)
    mean[:, 0], mean[:, 1], mean[:, 2] = (rng.normal(0, s, len(mean)) for s in (1.0, 2.0, 0.01))
    stddev[:, 2] = rng.normal(1, 0.01, len(mean))
    figure = plots.dimensions(grey, replace(codes, mean=mean, stddev=stddev))
    panels = {ax.get_title(loc="left"): ax for ax in figure.axes}
    assert len(panels) == 4
    lines = {
        title: [line.get_label() for line in ax.lines if line.get_label()[0] == "z"] for title, ax in panels.items()
    }
    assert set(lines["mean of q(z|x), active dimensions"]) == {"z0", "z1"}
    assert lines["deviation of q(z|x), passive dimensions"] == ["z2"]
    peak = panels["deviation of q(z|x), passive dimensions"].lines[0]
    assert peak.get_xdata()[np.argmax(peak.get_ydata())] == pytest.approx(1, abs=0.02)


def test_the_data_stand_beside_their_mean(grey: Run, vectors: DataSet, tmp_path: Path) -> None:
    figure = named("data").figure([grey])
    examples, mean = (np.asarray(ax.images[0].get_array()) for ax in figure.axes)
    assert examples.shape[0] == 5 * 67 - 3
    split = grey.split()
    real = split.data.x(split.rows).mean((0, 1)).numpy()
    shade = (real - real.min()) / np.ptp(real)
    by = len(mean) // 16
    assert np.abs(mean[::by, ::by, 0] / 255 - shade).max() < 0.01
    with pytest.raises(Problem, match="for images"):
        named("data").figure([train("vae", vectors, tmp_path, **TINY)])


def test_codes_of_images_have_a_map(grey: Run) -> None:
    points = named("map").figure([grey]).axes[0].collections[0].get_offsets()
    assert len(points) == len(grey.rows()[1])
