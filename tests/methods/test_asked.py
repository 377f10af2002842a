"""Options that nothing uses are refused when a run begins, and never when one is looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elboroom
from elboroom.core.problem import Problem
from elboroom.data.dataset import DataSet
from elboroom.training import session
from elboroom.training.session import Own
from elboroom.training.spec import specify

SENTENCES = ["a dog runs", "a cat sleeps", "the dog sleeps", "the cat runs", "a bird sings", "the bird runs"] * 4
TINY: dict[str, Any] = {"steps": 1, "batch_size": 4, "threads": 1}


@pytest.mark.parametrize(
    ("method", "options", "flag"),
    [
        ("vae", {"kappa": 5.0}, "--kappa 5.0"),
        ("vae", {"kappa_learned": True}, "--kappa-learned"),
        ("vae", {"sigma": 0.5}, "--sigma 0.5"),
        ("vae", {"embed": 8}, "--embed 8"),
        ("vae", {"components": 3}, "--components 3"),
        ("vae", {"posterior": "iaf", "curvature": 2.0}, "--curvature 2.0"),
        ("mog-vae", {"pseudo_inputs": 7}, "--pseudo-inputs 7"),
        ("vmf-vae", {"flow_steps": 2}, "--flow-steps 2"),
    ],
)
def test_an_option_without_use_is_refused(
    method: str, options: dict[str, Any], flag: str, pixels: DataSet, tmp_path: Path
) -> None:
    with pytest.raises(Problem, match=rf"{method} with these choices has no use for {flag}: leave it out"):
        elboroom.train(method, pixels, tmp_path / "run", latent=3, net="mlp-300", **TINY, **options)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("vmf-vae", {"kappa": 5.0, "kappa_learned": True}),
        ("vae", {"likelihood": "gaussian", "sigma": 0.5, "init": "glorot"}),
        ("vae", {"posterior": "nsf", "flow_steps": 2, "prior": "mog", "components": 3}),
        ("p-vae", {"curvature": 2.0, "curvature_learned": True}),
        ("apo-vae-vamp", {"pseudo_inputs": 7}),
        ("alpha-beta-vae", {"prior": "sparse", "sparse_share": 0.5}),
    ],
)
def test_an_option_of_use_is_not(method: str, options: dict[str, Any], pixels: DataSet) -> None:
    given = {"latent": 3, "net": "mlp-300", **TINY, **options}
    session.build(specify(method, pixels, "array", None, given), Own(pixels), pixels, new=True)


def test_text_has_options_of_its_own(tmp_path: Path) -> None:
    small = {"embed": 4, "hidden": 4, **TINY}
    with pytest.raises(Problem, match="lm with these choices has no use for --latent 5"):
        elboroom.train("lm", SENTENCES, tmp_path / "lm", latent=5, **small)
    with pytest.raises(Problem, match="vae with these choices has no use for --sigma 2"):
        elboroom.train("vae", SENTENCES, tmp_path / "vae", sigma=2.0, **small)
    words = {"word_dropout": 0.2, "dropout": 0.1, "inject": "state", "layers": 2, "trunk": "b"}
    assert elboroom.train("vae", SENTENCES, tmp_path / "own", latent=5, **small, **words).step == 1


def test_a_run_that_has_one_is_still_looked_at(pixels: DataSet, tmp_path: Path) -> None:
    run = elboroom.train("vae", pixels, tmp_path / "run", latent=3, net="mlp-300", **TINY)
    run.spec.model_copy(update={"model": run.spec.model.model_copy(update={"kappa": 5.0})}).write(run.folder)
    again = elboroom.load(run.folder, data=pixels)
    assert again.spec.model.kappa == 5.0
    assert np.array_equal(again.encode(pixels.x(np.arange(3))), run.encode(pixels.x(np.arange(3))))
