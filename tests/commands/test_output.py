"""Tables on a screen that is too narrow for them."""

from __future__ import annotations

import pytest

from elboroom.commands.output import print_table


def test_no_cell_is_cut_off(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    long = "a-word-of-" + "x" * 300
    print_table(["name", "value"], [[long, "1"], ["b", long]])
    said = capsys.readouterr().out
    assert "\N{HORIZONTAL ELLIPSIS}" not in said
    assert said.count("x") == 600
