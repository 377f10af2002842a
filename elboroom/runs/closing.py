"""What is said at the end of a run: the verdicts of a short look at it."""

from __future__ import annotations

from elboroom.runs.doctor import examine
from elboroom.runs.run import Run

ROWS = 500  # examples that are looked at: enough to tell, and few enough for a moment
SAID = ("dead dimensions", "learning", "pca")  # where all is well too


def closing(run: Run) -> list[str]:
    """The sentences after the last step; of a model that has no such thing, fewer."""
    return [verdict.told for verdict in examine(run, ROWS) if verdict.state != "well" or verdict.name in SAID]
