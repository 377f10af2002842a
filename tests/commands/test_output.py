"""Tables on a screen that is too narrow for them."""

from __future__ import annotations

import pytest

from elboroom.commands import evaluate
from elboroom.commands.output import print_table


def test_no_cell_is_cut_off(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    long = "a-word-of-" + "x" * 300
    print_table(["name", "value"], [[long, "1"], ["b", long]])
    said = capsys.readouterr().out
    assert "\N{HORIZONTAL ELLIPSIS}" not in said
    assert said.count("x") == 600


def test_numbers_have_the_digits_that_their_errors_leave(capsys: pytest.CaptureFixture[str]) -> None:
    nats = {"estimator": "mean", "unit": "nats", "settings": {"n": 44, "split": "test", "data": "t"}}
    found = {
        "run": {"method": "vae", "step": 1},
        "elbo": nats | {"value": -7331.2309, "errors": {"sampling": 640.0}},
        "rate": nats | {"value": 38.7641, "errors": {"sampling": 0.0213}},
        "mutual_information": nats | {"value": 3.78, "parts": {"ceiling": 3.784}},
    }
    evaluate._table(found)
    said = capsys.readouterr().out
    assert "-7,330" in said
    assert "± 640 sampling" in said
    assert "38.764" in said
    assert "± 0.021 sampling" in said
    assert "e+0" not in said
    assert "at its ceiling (log n): too few rows" in said
