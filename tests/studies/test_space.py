"""The space of a study: what its tables say is what is run, no more and no less."""

from __future__ import annotations

import re
from typing import Any

import pytest

from elboroom.core.problem import Problem
from elboroom.studies import Study
from elboroom.studies.plan import validate
from elboroom.studies.space import Block, Cell, Range, digest
from elboroom.studies.study import axes, settings


def study(*runs: dict[str, Any], **tables: Any) -> Study:
    return Study.of({"data": "mnist", "runs": list(runs), **tables})


def test_a_grid_is_the_product_of_its_lists_and_seeds_vary_fastest() -> None:
    found = study({"method": "beta-vae", "beta": [1, 4], "latent": [2, 3]}, seeds=2).cells()
    said = [(c.options["beta"], c.options["latent"], c.seed) for c in found]
    assert said == [(b, j, s) for b in (1, 4) for j in (2, 3) for s in (0, 1)]


def test_a_zip_goes_together() -> None:
    found = study({"method": "dip-vae-i", "zip": {"off": [1, 2], "diag": [10, 20]}, "latent": [3, 4]}).cells()
    assert [(c.options["off"], c.options["diag"]) for c in found] == [(1, 10), (2, 20)] * 2


def test_methods_data_sizes_and_seeds_are_axes_too() -> None:
    found = study({"method": ["vae", "ae"]}, data=["mnist", "dsprites"], size=[16, 32], seeds=[3, 5]).cells()
    assert len(found) == 16
    assert {(c.method, c.data, c.size, c.seed) for c in found} == {
        (m, d, n, s) for m in ("vae", "ae") for d in ("mnist", "dsprites") for n in (16, 32) for s in (3, 5)
    }


def test_what_a_block_says_holds_over_what_every_run_has() -> None:
    found = study({"method": "vae", "steps": 7}, {"method": "ae", "seeds": 3}, every={"steps": 5, "lr": 1e-3}).cells()
    assert [(c.method, c.options["steps"], c.options["lr"], c.seed) for c in found] == [
        ("vae", 7, 1e-3, 0), ("ae", 5, 1e-3, 0), ("ae", 5, 1e-3, 1), ("ae", 5, 1e-3, 2),
    ]  # fmt: skip
    assert all(c.options["threads"] == 1 for c in found), "so that numbers do not depend on the number of workers"


def test_draws_stay_in_their_range_are_different_and_the_same_every_time() -> None:
    entry = {"method": "beta-vae", "draws": 30, "beta": {"low": 1, "high": 100, "log": True}, "latent": [2, 3]}
    found = study(entry).cells()
    values = [c.options["beta"] for c in found]
    assert len(found) == study(entry).count == 60
    assert len(set(values)) == 30
    assert all(1 <= value <= 100 for value in values)
    assert sum(value < 10 for value in values) in range(18, 43), "even in the logarithm: half of them below 10"
    assert [c.name for c in found] == [c.name for c in study(entry).cells()]
    assert values != [c.options["beta"] for c in study(entry, draw_seed=1).cells()]


def test_whole_numbers_reach_both_ends() -> None:
    entry = {"method": "vae", "draws": 4, "latent": {"low": 2, "high": 5, "whole": True}}
    assert sorted(c.options["latent"] for c in study(entry).cells()) == [2, 3, 4, 5]
    with pytest.raises(Problem, match="not 5 distinct draws of latent"):
        study({**entry, "draws": 5}).cells()


def test_the_name_of_a_cell_is_a_function_of_what_it_is() -> None:
    one = Cell("beta-vae", "mnist", None, 0, {"beta": 4, "latent": 3})
    assert one.name == Cell("beta-vae", "mnist", None, 0, {"latent": 3.0, "beta": 4.0}).name
    assert one.name.startswith("beta-vae-beta-4-s0-")
    others = [
        Cell("beta-vae", "mnist", None, 1, one.options),
        Cell("beta-vae", "mnist", 32, 0, one.options),
        Cell("beta-vae", "omniglot", None, 0, one.options),
        Cell("beta-vae", "mnist", None, 0, {"beta": 4, "latent": 4}),
        Cell("beta-vae", "mnist", None, 0, {"beta": 4}),
    ]
    assert len({cell.name for cell in (one, *others)}) == 6
    assert one.setting == others[0].setting
    assert len({cell.setting for cell in (one, *others)}) == 5
    assert Cell.from_json(one.to_json()) == one
    assert digest(True) != digest(1)


def test_a_cell_keeps_its_name_when_the_study_grows() -> None:
    before = {c.name for c in study({"method": "beta-vae", "beta": [1]}).cells()}
    after = {c.name for c in study({"method": "vae"}, {"method": "beta-vae", "beta": [1, 2]}, seeds=2).cells()}
    assert before < after


def test_settings_are_told_apart_by_what_varies() -> None:
    runs = [
        {"method": "beta-vae", "beta": 4, "latent": [2, 3]},
        {"method": "beta-vae", "beta": 4, "latent": 5, "lr": 1e-2},
    ]
    named = axes(study(*runs, {"method": "factor-vae", "gamma": 3}).cells())
    assert named == {"beta-vae": ("latent", "lr"), "factor-vae": ("gamma",)}


def test_a_million_runs_are_counted_and_tried_without_being_made() -> None:
    many = study({"method": "beta-vae", "beta": list(range(100)), "lr": [1e-3] * 100}, seeds=100)
    assert many.count == 1_000_000
    assert len(tried := list(settings(many))) < 210, "each value of each axis once, not their product"
    assert {cell.options["beta"] for cell in tried} == set(range(100))


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no method": ({"beta": 4}, "has no method"),
    "zip of two lengths": ({"method": "dip-vae-i", "zip": {"off": [1, 2], "diag": [1]}}, "off 2, diag 1"),
    "zip of numbers": ({"method": "dip-vae-i", "zip": {"off": 1}}, "must be a table of lists"),
    "said twice": ({"method": "beta-vae", "beta": [1], "zip": {"beta": [2]}}, "beta is set twice"),
    "range without draws": ({"method": "beta-vae", "beta": {"low": 1, "high": 2}}, "set draws = N"),
    "draws without range": ({"method": "beta-vae", "draws": 3}, "a range to draw from"),
    "draws of half": ({"method": "beta-vae", "draws": 0.5, "beta": {"low": 1, "high": 2}}, "not 0.5"),
    "empty range": ({"method": "beta-vae", "draws": 1, "beta": {"low": 3, "high": 2}}, "from 3 to 2"),
    "logarithm of zero": ({"method": "beta-vae", "draws": 1, "beta": {"low": 0, "high": 2, "log": True}}, "above 0"),
    "unknown word": ({"method": "beta-vae", "draws": 1, "beta": {"low": 0, "hihg": 2}}, "did you mean 'high'?"),
    "half a range": ({"method": "beta-vae", "draws": 1, "beta": {"low": 0}}, "needs numbers low and high"),
    "negative seed": ({"method": "vae", "seeds": [-1]}, "seeds must be a number of seeds"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_in_a_block_is_one_sentence(mistake: str) -> None:
    entry, expected = WRONG[mistake]
    with pytest.raises(Problem, match=re.escape(expected)) as problem:
        validate(study(entry))
    assert "\n" not in str(problem.value)


def test_one_run_asked_for_twice_is_refused() -> None:
    twice = study({"method": "beta-vae", "beta": [1, 2]}, {"method": "beta-vae", "beta": 2.0})
    with pytest.raises(Problem, match="has one run twice: beta-vae-beta-2-s0"):
        twice.cells()


def test_a_range_draws_what_its_bounds_allow() -> None:
    import numpy as np

    rng = np.random.default_rng(0)
    even = [Range(2, 4).draw(rng) for _ in range(2000)]
    assert 2 <= min(even) < 2.01
    assert 3.99 < max(even) <= 4
    assert np.mean(even) == pytest.approx(3, abs=0.05)
    logs = np.log([Range(1, 100, log=True).draw(rng) for _ in range(2000)])
    assert np.mean(logs) == pytest.approx(np.log(10), abs=0.1)
    assert Block.of({"method": "vae"}).count == 1
