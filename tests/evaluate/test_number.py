"""A number never travels without the estimator that made it."""

from __future__ import annotations

import json
import math

import pytest

from elboroom.evaluate.result import Number


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_no_number(value: float) -> None:
    with pytest.raises(ValueError, match="iw-100 gave"):
        Number(value, "nats", "iw-100")


def test_it_is_written_with_its_errors_by_name() -> None:
    number = Number(-31.25, "nats", "iw-100", {"K": 100}, {"sampling": 0.5, "importance_noise": 0.01})
    assert str(number) == "-31.25 ± 0.5 (sampling) ± 0.01 (importance noise) nats"
    assert json.loads(json.dumps(number.to_json(), allow_nan=False)) == {
        "value": -31.25,
        "unit": "nats",
        "estimator": "iw-100",
        "settings": {"K": 100},
        "errors": {"sampling": 0.5, "importance_noise": 0.01},
    }


def test_a_refusal_says_why() -> None:
    number = Number(None, "nats", "elbo", reason="q(z|x) has no density")
    assert str(number) == "— (q(z|x) has no density)"
    assert number.to_json() == {"value": None, "unit": "nats", "estimator": "elbo", "reason": "q(z|x) has no density"}
