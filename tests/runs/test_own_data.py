"""Own data with no option that matters: what is learnt, in whose units, and that old runs stay as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import elboroom
from elboroom.core.problem import Problem

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(120, 2)) @ RNG.normal(size=(2, 6)) * [1e-3, 1, 10, 300, 800, 5] + [0, 5, 100, 700, 900, 1]
DIGITS = (np.arange(64 * 8 * 8).reshape(-1, 8, 8) * RNG.integers(1, 5, (64, 1, 1)) % 17).astype(float)
TINY: dict[str, Any] = {"steps": 30, "threads": 1, "latent": 2}


def test_a_table_with_values_in_the_hundreds_is_learnt_in_its_own_units(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    np.savetxt(path, TABLE, delimiter=",")
    run = elboroom.train("vae", str(path), tmp_path / "run", **TINY)
    test = run.data.x(run.data.splits["test"]).numpy()
    error = np.square((run.reconstruct(test) - test) / TABLE.std(0)).mean()
    assert error < 0.1, "two dimensions are all that it has"
    assert all(np.isfinite(line["loss"]) for line in run.log)
    again = elboroom.load(run.folder)
    np.testing.assert_array_equal(again.reconstruct(test), run.reconstruct(test))


def test_nats_are_of_the_data_as_it_came(tmp_path: Path) -> None:
    """A unit that is a thousand times as large takes D log 1000 nats off, and changes nothing else."""
    runs = [elboroom.train("vae", TABLE * unit, tmp_path / str(unit), **TINY) for unit in (1.0, 1000.0)]
    small, large = (run.elbo().value for run in runs)
    assert small is not None
    assert large is not None
    assert small - large == pytest.approx(6 * np.log(1000), abs=0.05)


def test_whole_numbers_to_sixteen_are_handed_in_as_they_were_read(tmp_path: Path) -> None:
    run = elboroom.train("vae", DIGITS, tmp_path / "run", **TINY)
    assert run.spec.about.levels == 17
    np.testing.assert_array_equal(run.encode(DIGITS), run.encode((DIGITS / 16).astype(np.float32)))
    with pytest.raises(Problem, match="from 0 to 16"):
        run.encode(DIGITS + 1)


@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian-optimal", "gaussian", "gaussian-learned"])
def test_reals_between_nought_and_one_have_any_likelihood(likelihood: str, tmp_path: Path) -> None:
    run = elboroom.train("vae", DIGITS / 16.5, tmp_path / "run", likelihood=likelihood, **TINY | {"steps": 2})
    assert run.spec.about.levels == 0
    assert np.isfinite(run.elbo().value or np.nan)


def test_codes_begin_near_the_prior(tmp_path: Path) -> None:
    """mlp-1200 began at hundreds of nats."""
    first = {}
    for init in ("kaiming", "small"):
        options: dict[str, Any] = {"net": "mlp-1200", "init": init, "steps": 1, "lr": 1e-6, "threads": 1}
        run = elboroom.train("vae", np.repeat(DIGITS, 4, 1).repeat(4, 2), tmp_path / init, standardise=False, **options)
        first[init] = run.log[0]["kl"]
    assert first["small"] < 1 < first["kaiming"]


def test_a_run_of_old_is_loaded_and_goes_on_as_it_was(tmp_path: Path) -> None:
    """Its spec knows neither levels nor what was chosen, and its whole numbers were bytes."""
    path, old = tmp_path / "x.npy", {"net": "auto", "likelihood": "auto", "init": "kaiming", "decay": "none", "lr": 5e-4}
    np.save(path, DIGITS)
    run = elboroom.train("vae", str(path), tmp_path / "run", levels=256, **old, **TINY | {"steps": 2, "batch_size": 8})
    spec = json.loads((run.folder / "spec.json").read_text())
    assert not spec["model"].pop("standardise")
    del spec["suited"], spec["data"]["levels"]
    (run.folder / "spec.json").write_text(json.dumps(spec))
    again = elboroom.resume(run.folder, 1)
    assert (again.step, again.spec.about.levels) == (3, 256)
    assert type(again.model.likelihood).__name__ == "BernoulliLikelihood"


def test_a_run_that_stopped_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    """What was read off the data is kept: neither statistics nor principal components are computed anew."""
    whole = elboroom.train("vae", TABLE, tmp_path / "whole", **TINY | {"steps": 6}, checkpoint_every=3)
    for path in (whole.folder / "checkpoints").glob("*00006*"):
        path.unlink()
    part = elboroom.resume(whole.folder, data=TABLE)
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, part.model.state_dict()[name]), name


def test_a_table_that_is_handed_in_is_read_in_the_encoding_of_the_data(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(40, 2))
    text = "größe,höhe\n" + "".join(f"{a},{b}\n" for a, b in rows)
    for name, encoding in (("data", "latin-1"), ("mine", "latin-1"), ("other", "utf-8")):
        (tmp_path / f"{name}.csv").write_text(text, encoding=encoding)
    run = elboroom.train("vae", tmp_path / "data.csv", tmp_path / "run", latent=1, steps=2, encoding="latin-1")
    assert run.reconstruct(tmp_path / "mine.csv").shape == (40, 2)
    plain = elboroom.train("vae", tmp_path / "other.csv", tmp_path / "plain", latent=1, steps=2)
    with pytest.raises(elboroom.Problem, match=r"mine\.csv is not UTF-8 text, which the data of this run is; save it"):
        plain.reconstruct(tmp_path / "mine.csv")
