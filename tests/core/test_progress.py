"""Long work says how far it is to whoever listens."""

from __future__ import annotations

from elboroom.core.progress import heard_by, stage, tell


def test_stages_are_told_by_name_to_who_listens_and_to_nobody_else() -> None:
    heard: list[tuple[str, int, int]] = []
    tell(1, 2)
    with heard_by(lambda *told: heard.append(told)), stage("a"), stage("b"):
        tell(3, 4)
    tell(5, 6)
    assert heard == [("a", 0, 0), ("a, b", 0, 0), ("a, b", 3, 4)]
