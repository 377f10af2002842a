"""PCA of the same size as a run, on the same held-out rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA

import elboroom
from elboroom.core.problem import Problem
from elboroom.evaluate.linear import beside_pca
from elboroom.runs.closing import closing

RNG = np.random.default_rng(0)
TABLE = (RNG.normal(size=(300, 4)) @ RNG.normal(size=(4, 6)) * [1, 1, 10, 300, 800, 5]).astype(np.float32)


@pytest.mark.unhurried
def test_pca_keeps_what_that_of_scikit_learn_keeps(tmp_path: Path) -> None:
    run = elboroom.train("vae", TABLE, tmp_path / "run", steps=60, latent=2, threads=1)
    kept = beside_pca(run)
    train, test = (run.data.x(run.data.splits[name]).numpy() for name in ("train", "test"))
    unit = train.std(0, ddof=1)
    train, test = (train - train.mean(0)) / unit, (test - train.mean(0)) / unit
    known = PCA(2).fit(train)
    left = np.square(test - known.inverse_transform(known.transform(test))).sum() / np.square(test).sum()
    assert kept.pca == pytest.approx(1 - left, abs=1e-3)
    assert kept.run == pytest.approx(kept.pca, abs=0.1), "it begins as PCA"
    told = closing(run)
    assert told[0] == "All 2 dimensions are active."
    assert f"PCA of the same size (2) keeps {kept.pca:.0%}" in told[-1]


def test_a_model_without_pca_is_told_fewer_things(tmp_path: Path) -> None:
    lines = [f"w{i % 7} w{i % 5}" for i in range(40)]
    run = elboroom.train("vae", lines, tmp_path / "run", steps=4, embed=4, hidden=4, threads=1)
    with pytest.raises(Problem, match="PCA"):
        beside_pca(run)
    assert closing(run)
    assert not any("PCA" in sentence for sentence in closing(run))
