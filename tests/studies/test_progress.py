"""What is shown of a study as it goes."""

from __future__ import annotations

import pytest

from elboroom.studies.progress import Board, duration
from elboroom.studies.space import Cell

CELLS = [Cell("vae", "mnist", None, seed, {"steps": 100}) for seed in range(4)]


def test_done_running_failed_and_the_time_that_remains(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("elboroom.studies.progress.time.monotonic", lambda: now[0])
    board = Board(6, CELLS, done=2)
    assert board.remaining is None
    assert board.line == "2/6 done  0 running  0 failed"
    board(CELLS[0], {"state": "started"})
    board(CELLS[1], {"state": "started"})
    now[0] += 50
    board(CELLS[0], {"state": "done"})
    assert board.remaining == pytest.approx(150), "a hundred steps in 50 seconds, three hundred to go"
    board(CELLS[1], {"state": "step", "step": 80})
    assert board.remaining == pytest.approx(110), "a run that is taken up again at 80 was not walked there by us"
    board(CELLS[1], {"state": "step", "step": 90})
    assert board.remaining == pytest.approx(50 * 210 / 110)
    board(CELLS[1], {"state": "failed", "error": "bad luck"})
    assert (board.done, board.failed, len(board.running)) == (3, 1, 0)
    board.close()
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("3/6 done  1 running  0 failed  about 2 min left  vae-s0-")
    assert said[1].endswith("failed: bad luck")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (59, "59 s"), (61, "1 min"), (3700, "1 h 01 min"), (200_000, "2 d 7 h")]
)
def test_durations_in_words(seconds: float, text: str) -> None:
    assert duration(seconds) == text
