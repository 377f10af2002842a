"""What a user can get wrong, said in one sentence."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class Problem(Exception):
    """A mistake that a user can mend. The command prints its one sentence and leaves with this exit code."""

    code = 2


def nearest(name: str, names: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the closest of `names`, or nothing."""
    close = get_close_matches(name, list(names), n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""


def unknown(kind: str, name: str, names: Iterable[str]) -> Problem:
    """The Problem for a name that is not registered."""
    names = sorted(names)
    hint = nearest(name, names) or f"; there are: {', '.join(names)}"
    return Problem(f"no {kind} '{name}'{hint}")
