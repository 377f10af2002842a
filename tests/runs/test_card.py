"""The card of a run in a notebook says how to look into it, where there is something to look into."""

from __future__ import annotations

from pathlib import Path

import elboroom
from elboroom.data.dataset import DataSet


def test_a_card_says_how_to_open_the_explorer(sentences: DataSet, tmp_path: Path) -> None:
    small = {"steps": 1, "threads": 1, "embed": 4, "hidden": 4}
    vae = elboroom.train("vae", sentences, tmp_path / "vae", latent=2, **small)
    assert "run.explore()" in vae._repr_html_()
    lm = elboroom.train("lm", sentences, tmp_path / "lm", **small)
    assert "explore" not in lm._repr_html_(), "which has no codes"
