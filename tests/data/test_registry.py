from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from elboroom.core.problem import Problem
from elboroom.data import registry

SETS = [
    "dsprites",
    "dsprites-colour",
    "dsprites-noisy",
    "dsprites-scream",
    "mnist",
    "fashion-mnist",
    "binarized-mnist",
    "freyfaces",
    "omniglot",
]
TEXT = ["sentences", "ptb", "multi30k", "multi30k-5", "caption-style", "dailydialog"]
PAIRED = ["multi30k-en-fr", "multi30k-fr-en", "dailydialog-replies", "turkcorpus", "asset"]


def test_names_and_listing() -> None:
    assert registry.names() == [*SETS, *TEXT, *PAIRED, "yelp-sentiment"]
    rows = {row["name"]: row for row in registry.listing()}
    assert rows["mnist"]["where"] == "not here"
    assert rows["mnist"]["how"] == "elbo data get mnist"
    assert all(set(row) == {"name", "kind", "shape", "counts", "licence", "where", "how"} for row in rows.values())


def test_a_data_set_passes_through() -> None:
    data = registry.load(np.zeros((4, 3)))
    assert registry.load(data) is data


@pytest.mark.parametrize("name", SETS[4:])
def test_not_here(name: str) -> None:
    with pytest.raises(Problem, match=f"not downloaded; run `elbo data get {name}`, or set ELBOROOM_DATA"):
        registry.load(name)


def test_names_that_are_wrong(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="did you mean 'mnist'"):
        registry.load("mnits")
    with pytest.raises(Problem, match="did you mean 'dsprites"):
        registry.get("dsprite")
    with pytest.raises(Problem, match="only to check"):
        registry.load("dsprites-original")
    with pytest.raises(Problem, match="does not exist"):
        registry.load("./nowhere/at/all")
    with pytest.raises(Problem, match="does not exist"):
        registry.load(tmp_path / "gone")
    (tmp_path / "a.zip").write_text("1,2")
    with pytest.raises(Problem, match="is not a folder"):
        registry.load(tmp_path / "a.zip")
    with pytest.raises(Problem, match="not int"):
        registry.load(3)  # type: ignore[arg-type]
    with pytest.raises(Problem, match="--size is only for"):
        registry.load("mnist", size=32)


def test_own_data_come_first(real: Path) -> None:
    assert registry.get("mnist") == {"name": "mnist", "folder": str(real / "mnist"), "state": "here", "files": []}
    rows = {row["name"]: row["where"] for row in registry.listing()}
    assert rows["omniglot"] == str(real / "omniglot")
