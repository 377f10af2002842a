"""Mistakes of a user, each reported in one sentence."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class Problem(Exception):
    """A mistake that a user can fix. The command prints its one sentence and exits with this code."""

    code = 2


def nearest(name: str, names: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the closest of `names`, or an empty string."""
    close = get_close_matches(name, list(names), n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""


def unknown(kind: str, name: str, names: Iterable[str], of: str = "") -> Problem:
    """The Problem for a name that does not exist, or that `of` does not have."""
    names = sorted(names)
    start, all_names = (f"{of} has no {kind}", "it has") if of else (f"unknown {kind}", "choose from")
    return Problem(f"{start} '{name}'{nearest(name, names) or f'; {all_names}: ' + ', '.join(names)}")
