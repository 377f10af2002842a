"""A score travels with its metric, mode and settings; arrays that cannot be measured are refused in one sentence."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from elboroom.core.problem import Problem
from elboroom.evaluate.disentanglement import metrics, score
from elboroom.evaluate.disentanglement.factors import checked
from elboroom.evaluate.result import Result

CODES = np.random.default_rng(0).normal(size=(50, 3))
FACTORS = np.random.default_rng(1).integers(3, size=(50, 2))


def test_json_holds_lists_and_never_nan() -> None:
    found = Result(
        0.5,
        "dlib",
        settings={"n": np.int64(3)},
        parts={"mi": np.eye(2), "odd": np.float32("nan")},
        metric="mig",
        seconds=1.5,
    )
    entry = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert entry == {
        "value": 0.5,
        "metric": "mig",
        "mode": "dlib",
        "parts": {"mi": [[1, 0], [0, 1]], "odd": None},
        "settings": {"n": 3},
    }
    assert Result(None, "dlib", reason="one factor", metric="dci").to_json()["value"] is None


def test_what_is_no_number_is_no_score() -> None:
    with pytest.raises(Problem, match="mig"):
        Result(math.nan, "dlib", metric="mig")


def _spoilt(value: float) -> np.ndarray:
    codes = CODES.copy()
    codes[7, 2] = codes[9, 1] = value
    return codes


@pytest.mark.parametrize(
    ("codes", "factors", "kinds", "said"),
    [
        (_spoilt(math.nan), FACTORS, None, "2 codes are NaN or infinite, the first in row 7, in dimensions 1, 2"),
        (_spoilt(-math.inf), FACTORS, None, "NaN or infinite"),
        (CODES, FACTORS[:40], None, r"\(50, 3\).*\(40, 2\)"),
        (CODES.T, FACTORS, None, "transposed"),
        (CODES[:, 0], FACTORS, None, r"\(n, J\).*\(50,\)"),
        (CODES[:0], FACTORS[:0], None, "empty"),
        (CODES[:, :0], FACTORS, None, "empty"),
        (CODES, np.zeros((50, 2), int), None, "no factor varies: factor 0, factor 1 have"),
        (CODES, FACTORS, ["ordinal"], "2 factors but 1 kinds"),
        (CODES, FACTORS, ["ordinal", "cardinal"], "cardinal"),
        (CODES, np.where(FACTORS == 1, np.nan, 0.5), None, "NaN or infinite"),
        (CODES, np.array([["a", "b"]] * 50), ["ordinal", "ordinal"], "categorical, not ordinal"),
        ([["a"]], [[1]], None, "codes must be numbers"),
        (CODES, FACTORS[:, :0], None, "no factor column"),
    ],
)
def test_arrays_that_are_refused(codes: np.ndarray, factors: np.ndarray, kinds: list[str] | None, said: str) -> None:
    with pytest.raises(Problem, match=said):
        checked(codes, factors, kinds)


def test_too_many_categories() -> None:
    with pytest.raises(Problem, match=r"1,500 values.*probably continuous"):
        checked(np.zeros((1500, 2)), np.arange(1500), ["categorical"])
    with pytest.raises(Problem, match=r"1,500 values.*probably continuous"):
        score("mig", np.random.default_rng(0).normal(size=(1500, 2)), np.arange(1500), allow_smaller=True)


def test_a_single_value_is_dropped_by_name() -> None:
    table = np.column_stack([np.full(50, 4), FACTORS])
    with pytest.warns(UserWarning, match="'colour' has a single value"):
        _, factors = checked(CODES, table, names=["colour", "shape", "scale"])
    assert factors.names == ("shape", "scale")
    assert factors.dropped == ("colour",)


def test_kinds_by_default() -> None:
    mixed = np.array([[1, 0.5, "a"], [2, 0.25, "b"], [2, 0.75, "b"]], dtype=object)
    _, factors = checked(np.eye(3), mixed)
    assert factors.kinds == ("ordinal", "continuous", "categorical")
    assert factors.sizes == (2, 3, 2)


def test_reals_are_no_classes() -> None:
    reals = np.random.default_rng(2).normal(size=(50, 1))
    with pytest.raises(Problem, match=r"continuous.*factor_bins=10"):
        score("mig", CODES, reals, allow_smaller=True)
    found = score("mig", CODES, reals, allow_smaller=True, factor_bins=5)
    assert found.settings["n"] == 50
    two = np.random.default_rng(3).normal(size=(50, 2))
    assert score("factor-vae", CODES, two, allow_smaller=True).value is not None  # cuts them into 10 bins


def test_names_that_are_not_there() -> None:
    with pytest.raises(Problem, match=r"unknown metric 'mgi'.*'mig'"):
        score("mgi", CODES, FACTORS)
    with pytest.raises(Problem, match="mig has no mode 'paper'"):
        score("mig", CODES, FACTORS, mode="paper")
    with pytest.raises(Problem, match="mig has no setting 'bin'; did you mean 'bins'"):
        score("mig", CODES, FACTORS, bin=3)
    with pytest.raises(Problem, match="factors; no factors are given"):
        score("mig", CODES)
    with pytest.raises(Problem, match="needs the log-variances"):
        score("mig", CODES, FACTORS, mode="continuous-quadrature")


def test_every_metric_says_what_it_is() -> None:
    found = metrics()
    assert {"beta-vae", "factor-vae", "mig", "sap", "dci"} <= found.keys()
    for entry in found.values():
        assert entry.summary.endswith("."), entry.name
        assert entry.modes
