"""What metrics.json may hold is what results write."""

from __future__ import annotations

from elboroom.evaluate.kept import Kept, check_numbers
from elboroom.evaluate.result import KEPT, Result


def test_every_part_of_a_result_is_read_back() -> None:
    assert set(KEPT) <= set(Kept.model_fields)
    result = Result(1.0, "iw-100", "nats", {"K": 100}, {"importance_noise": 0.1}, note="loose by 0.7 nats or more")
    heading = {"method": "vae", "step": 1, "seed": 0}
    check_numbers({"run": heading, "log_likelihood": result.to_json()})
