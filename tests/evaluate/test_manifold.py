"""Maps of a manifold: what is known of the roll, of classical MDS and of codes handed in."""

from __future__ import annotations

import json

import numpy as np
import pytest
import sklearn.manifold
from matplotlib.figure import Figure

from elboroom import VAE
from elboroom.core.problem import Problem
from elboroom.evaluate.manifold import COMPARATORS, Atlas, Roll, atlas, classical_mds, swiss_roll
from elboroom.plots.manifold import manifold


@pytest.fixture(scope="module")
def roll() -> Atlas:
    return swiss_roll({"ae": VAE("ae", steps=20), "vae": VAE("vae", steps=20)}, n=500, neighbours=8)


def test_the_roll_lies_where_its_sheet_says() -> None:
    flat, rough = Roll.of(200, 0.0), Roll.of(200)
    assert flat.x.shape == (200, 3)
    assert np.array_equal(flat.sheet, rough.sheet)
    assert 0 < np.abs(flat.x - rough.x).max() < 0.1
    height = np.corrcoef(flat.x[:, 1], flat.sheet[:, 1])[0, 1]
    assert height == pytest.approx(1)
    # length is measured along the spiral: near points of the same height are as far apart as their lengths say
    order = np.argsort(flat.sheet[:, 0])
    step = np.diff(flat.sheet[order, 0])
    raw = Roll.of(200, 0.0).x[order][:, [0, 2]]
    scale = np.linalg.norm(np.diff(raw, axis=0), axis=1) / step
    assert scale.std() / scale.mean() < 0.02


def test_isomap_unrolls_and_pca_does_not(roll: Atlas) -> None:
    found = {m.name: m for m in roll.maps}
    rho = {name: m.spearman["length"].value or 0.0 for name, m in found.items()}
    assert rho["Isomap"] > 0.98
    assert (found["Isomap"].spearman["height"].value or 0.0) > 0.9
    assert rho["Laplacian eigenmaps"] > 0.98
    assert rho["PCA"] < 0.5
    trust = {name: m.trustworthiness.value or 0.0 for name, m in found.items()}
    assert trust["t-SNE"] > 0.99
    assert trust["Isomap"] > trust["kernel PCA"]
    assert trust["PCA"] == pytest.approx(trust["classical MDS"])


def test_the_table_says_what_kind_of_problem_each_is(roll: Atlas) -> None:
    kinds = {m.name: (m.convex, m.matrix, m.parametric) for m in roll.maps}
    for name in ("PCA", "classical MDS", "kernel PCA", "Isomap"):
        assert kinds[name] == (True, "dense", False)
    for name in ("LLE", "Laplacian eigenmaps"):
        assert kinds[name] == (True, "sparse", False)
    assert kinds["t-SNE"] == (False, "", False)
    assert kinds["ae"] == kinds["vae"] == (False, "", True)
    read = json.loads(json.dumps(roll.to_json()))
    assert read["settings"]["data"] == "Swiss roll"
    assert len(read["maps"][0]["spearman"]["height"]["parts"]["axes"]) == 2


def test_the_same_seed_gives_the_same_table() -> None:
    assert swiss_roll(n=150, seed=3).to_json() == swiss_roll(n=150, seed=3).to_json()


def test_classical_mds_is_pca_up_to_sign() -> None:
    x = np.random.default_rng(0).normal(size=(60, 5)) * [3, 2, 1, 1, 1]
    found, expected = classical_mds(x), COMPARATORS[0].embed(x, 5, 0)
    assert np.abs(found) == pytest.approx(np.abs(expected), abs=1e-8)
    if hasattr(sklearn.manifold, "ClassicalMDS"):
        peer = sklearn.manifold.ClassicalMDS(2).fit_transform(x)
        assert np.abs(found) == pytest.approx(np.abs(peer), abs=1e-8)


def test_data_beside_codes_with_labels() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b"], 40)
    x = rng.normal(size=(80, 4)) + 8 * (labels == "b")[:, None]
    found = atlas(x, {"wide": x, "one": x[:, :1]}, labels=labels, neighbours=5, most=60)
    assert found.settings["rows"] == 60
    assert found.classes == ("a", "b")
    assert found.maps[-2].trustworthiness.value == pytest.approx(1)  # the data itself
    assert isinstance(manifold(found), Figure)
    assert len(manifold(found).axes) >= 9


def test_the_figure_of_the_roll(roll: Atlas) -> None:
    assert isinstance(manifold(roll), Figure)
    assert isinstance(manifold(roll, "height"), Figure)
    with pytest.raises(Problem, match="unknown true coordinate 'heigth'; did you mean 'height'"):
        manifold(roll, "heigth")


def test_mistakes_are_said() -> None:
    x = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(Problem, match="fewer than half of the 30 rows"):
        atlas(x, neighbours=15)
    with pytest.raises(Problem, match="'vae' has 25 rows but the data has 30"):
        atlas(x, {"vae": x[:25]})
    with pytest.raises(Problem, match="the data has 10 rows; at least 20"):
        atlas(x[:10])
    with pytest.raises(Problem, match="'labels' has shape"):
        atlas(x, labels=np.zeros(3))
    with pytest.raises(Problem, match="needs no map"):
        atlas(x[:, :1])
