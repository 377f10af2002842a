"""Codes whose scores are known: perfect, permuted, doubled, rotated, noise, constant."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from elboroom.evaluate.disentanglement import Grid, evaluate, score
from elboroom.evaluate.disentanglement.registry import find
from elboroom.evaluate.result import Result

SIZES = (2, 4, 5)
FACTORS = np.stack(np.unravel_index(np.arange(40), SIZES), 1)
PERFECT = np.column_stack(
    [FACTORS[:, 2] * 0.7, np.full(40, 3.0), FACTORS[:, 0] * 2.0, FACTORS[:, 1] * 0.5, np.zeros(40)]
)
DOUBLED = np.column_stack([PERFECT, PERFECT[:, [0, 2, 3]]])
QUICK = ["beta-vae", "factor-vae", "mig", "sap"]
SMALL = {"train": 400, "test": 200}


def _arrays(name: str, codes: np.ndarray, mode: str = "dlib", **settings: object) -> Result:
    return score(name, codes, FACTORS, mode=mode, allow_smaller=True, **settings)  # type: ignore[arg-type]


def test_perfect_codes() -> None:
    grid = Grid(PERFECT, None, SIZES)
    assert _arrays("mig", PERFECT).value == pytest.approx(1, abs=1e-12)
    assert _arrays("mig", PERFECT, "bins-10-full").value == pytest.approx(1, abs=1e-12)
    assert _arrays("sap", PERFECT, "paper").value == pytest.approx(1, abs=1e-12)
    for source in (_arrays("factor-vae", PERFECT), find("factor-vae")(grid), find("factor-vae")(grid, 0, "paper")):
        assert source.value == 1
    assert _arrays("beta-vae", PERFECT).value == find("beta-vae")(grid).value == 1
    found = find("dci")(grid, 0, "dlib", **SMALL)
    assert found.value == pytest.approx(1, abs=1e-6)
    assert found.parts["completeness"] == pytest.approx(1, abs=1e-6)


def test_every_informative_column_twice() -> None:
    grid = Grid(DOUBLED, None, SIZES)
    assert find("mig")(grid).value == 0
    assert find("sap")(grid).value == find("sap")(grid, 0, "paper").value == 0
    assert find("factor-vae")(grid).value == 1
    found = find("dci")(grid, 0, "dlib", **SMALL)
    assert found.value == pytest.approx(1, abs=1e-6)
    assert found.parts["completeness"] == pytest.approx(1 - math.log(2) / math.log(8), abs=0.1)


def test_two_binary_factors_rotated() -> None:
    a, b = np.array([(-1, -1), (-1, 1), (1, -1), (1, 1)]).repeat(25, 0).T
    codes = np.column_stack([a + b, a - b]) / math.sqrt(2)
    found = score("mig", codes, np.column_stack([a, b]), allow_smaller=True)
    np.testing.assert_allclose(found.parts["mi"], math.log(2) / 2, atol=1e-12)
    assert found.value == pytest.approx(0, abs=1e-12)
    lines = score("sap", codes, np.column_stack([a, b]), mode="paper", allow_smaller=True)
    np.testing.assert_allclose(lines.parts["scores"], 0.5, atol=1e-12)
    assert lines.value == pytest.approx(0, abs=1e-12)
    votes = score("factor-vae", codes, np.column_stack([a, b]), allow_smaller=True)
    assert votes.value == pytest.approx(0.5, abs=0.05)


def test_codes_that_know_nothing() -> None:
    rng = np.random.default_rng(0)
    codes, factors = rng.normal(size=(15_000, 4)), rng.integers(4, size=(15_000, 5))
    for name in ("beta-vae", "factor-vae"):
        assert score(name, codes, factors).value == pytest.approx(0.2, abs=0.05)
    assert score("mig", codes, factors).value == pytest.approx(0, abs=0.01)
    assert score("mig", codes, factors, mode="modern").value == pytest.approx(0, abs=0.01)
    assert score("sap", codes, factors).value == pytest.approx(0, abs=0.02)
    assert score("sap", codes, factors, mode="paper").value == pytest.approx(0, abs=0.002)


def test_constant_codes() -> None:
    grid = Grid(np.full((40, 3), 0.25), np.zeros((40, 3)), SIZES)
    for name, mode in [
        ("factor-vae", "dlib"),
        ("factor-vae", "paper"),
        ("mig", "dlib"),
        ("mig", "modern"),
        ("mig", "continuous-quadrature"),
        ("sap", "dlib"),
        ("sap", "dlib-continuous"),
        ("sap", "paper"),
    ]:
        found = find(name)(grid, 0, mode)
        assert found.value == pytest.approx(0, abs=1e-12), (name, mode)
        assert found.settings["active"] == 0
    for mode in ("dlib", "paper", "modern", "hist"):
        found = find("dci")(grid, 0, mode, **SMALL)
        assert found.value == found.parts["completeness"] == 0
    chance = find("beta-vae")(grid)
    assert chance.value == pytest.approx(1 / 3, abs=0.05)


@pytest.fixture(scope="module")
def sprites() -> Grid:
    """Codes that are the factors of dSprites, and five columns of noise."""
    sizes = (3, 6, 40, 32, 32)
    factors = np.stack(np.unravel_index(np.arange(737_280), sizes), 1)
    noise = np.random.default_rng(0).normal(size=(737_280, 5))
    kinds = ("categorical", "ordinal", "ordinal", "ordinal", "ordinal")
    names = ("shape", "scale", "orientation", "posX", "posY")
    return Grid(np.hstack([factors, noise]).astype(np.float32), None, sizes, names, kinds=kinds)


@pytest.mark.slow
def test_index_codes_of_dsprites(sprites: Grid) -> None:
    found = evaluate(sprites, QUICK)
    assert found["beta-vae"].value == pytest.approx(1, abs=1e-3)
    assert found["factor-vae"].value == 1
    assert found["mig"].value == pytest.approx(0.896, abs=0.01)
    assert found["mig"].parts["ceiling"] == pytest.approx(0.902, abs=0.002)
    assert found["sap"].value == pytest.approx(0.23, abs=0.03)
    assert find("sap")(sprites, 0, "dlib-continuous").value == pytest.approx(0.999, abs=0.001)
    lines = find("sap")(sprites, 0, "paper")
    assert lines.parts["ceiling"] == pytest.approx(0.933, abs=0.001)
    assert lines.value == pytest.approx(0.93, abs=0.01)
    assert find("mig")(sprites, 0, "bins-10-full").value < found["mig"].value  # type: ignore[operator]


@pytest.fixture(scope="module")
def learned() -> Grid:
    """Codes as a model may learn them: mixed, with noise."""
    rng = np.random.default_rng(0)
    mu = FACTORS @ rng.normal(size=(3, 4)) * 0.5 + 0.3 * rng.normal(size=(40, 4))
    return Grid(mu, rng.normal(size=(40, 4)) - 2, SIZES)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_the_order_of_columns_changes_nothing(name: str, learned: Grid) -> None:
    other = Grid(learned.mu[:, [2, 0, 3, 1]], None, SIZES)
    for mode in find(name).modes:
        if find(name).need(mode) != "density":
            tolerance = 2e-3 if name == "beta-vae" else 1e-9  # of iterative solvers
            assert find(name)(learned, 0, mode).value == pytest.approx(find(name)(other, 0, mode).value, abs=tolerance)


def test_a_rescaled_column(learned: Grid) -> None:
    other = Grid(learned.mu * [1, 3, 1, 1], None, SIZES)
    for name, mode in [("mig", "dlib"), ("sap", "paper"), ("sap", "dlib-continuous"), ("factor-vae", "dlib")]:
        assert find(name)(learned, 0, mode).value == pytest.approx(find(name)(other, 0, mode).value, abs=1e-9)
    faint = Grid(learned.mu * [1, 0.02, 1, 1], None, SIZES)
    plain, scaled = (find("sap")(grid).parts["scores"] for grid in (learned, faint))
    assert (plain != scaled).any(1).tolist() == [False, True, False, False]


@pytest.fixture
def _untouched() -> Iterator[None]:
    """Global generators stay where they are."""
    before = np.random.get_state()[1].copy(), torch.get_rng_state(), random.getstate()  # type: ignore[index,union-attr]
    yield
    assert (np.random.get_state()[1] == before[0]).all()  # type: ignore[index]
    assert torch.equal(torch.get_rng_state(), before[1])
    assert random.getstate() == before[2]


@pytest.mark.usefixtures("_untouched")
@pytest.mark.parametrize("representation", ["mean", "sampled"])
def test_the_same_seed_gives_the_same_json(learned: Grid, representation: str) -> None:
    one, two = (evaluate(learned, QUICK, representation=representation) for _ in range(2))
    for name in QUICK:
        assert json.dumps(one[name].to_json(), allow_nan=False) == json.dumps(two[name].to_json(), allow_nan=False)
        assert one[name].settings["representation"] == representation
    other = evaluate(learned, QUICK, seed=1, representation=representation)
    assert any(one[name].value != other[name].value for name in QUICK)


PROGRAM = """
import json, sys
import numpy as np
from elboroom.evaluate.disentanglement import Grid, evaluate
mu = np.linspace(0, 1, 80).reshape(40, 2) ** [1, 2]
found = evaluate(Grid(mu, None, (2, 4, 5)), ["factor-vae", "mig"])
sys.stdout.write(json.dumps({k: v.to_json() for k, v in found.items()}))
"""


@pytest.mark.slow
def test_another_process_says_the_same() -> None:
    there = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True).stdout
    grid = Grid(np.linspace(0, 1, 80).reshape(40, 2) ** [1, 2], None, SIZES)
    assert json.loads(there) == {k: v.to_json() for k, v in evaluate(grid, ["factor-vae", "mig"]).items()}


@pytest.mark.slow
def test_all_metrics_of_a_grid_have_a_value_or_a_reason(learned: Grid) -> None:
    found = evaluate(Grid(learned.mu, None, SIZES), "all", mode={"dci": "hist", "mig": "continuous-quadrature"})
    assert found["mig"].value is None
    assert "log-variances" in found["mig"].reason
    assert all(each.value is not None or each.reason for each in found.values())
