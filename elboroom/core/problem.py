"""Mistakes of a user, each reported in one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

LONG = re.compile(r"\S{1000,}")  # a word of a stranger's file that would bury the sentence

NO_ROOM = ("allocate memory", "Storage size calculation overflowed")  # how torch says so


class Problem(Exception):
    """A mistake that a user can fix, in one sentence: what every function here raises for what a caller got wrong.

    The command prints the sentence and exits with this code. Any other exception is a mistake of ours.
    """

    code = 2

    def __init__(self, said: str = "") -> None:
        line = " ".join(str(said).splitlines())  # a name that was handed in may have several
        super().__init__(LONG.sub(lambda found: f"{found[0][:100]}... ({len(found[0]):,} characters)", line))


def nearest(name: str, names: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the closest of `names`, or an empty string."""
    close = get_close_matches(str(name), list(names), n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""


def unknown(kind: str, name: str, names: Iterable[str], of: str = "") -> Problem:
    """The Problem for a name that does not exist, or that `of` does not have."""
    names = sorted(names)
    start, all_names = (f"{of} has no {kind}", "it has") if of else (f"unknown {kind}", "choose from")
    others = f"; {all_names}: {', '.join(names)}" if names else "; it has none" if of else ""
    return Problem(f"{start} '{name}'{nearest(name, names) or others}")


def slip(error: BaseException) -> Problem | None:
    """The Problem that an error of the machine stands for: memory, files, numbers and names that it cannot take."""
    if isinstance(error, Problem):
        return error
    said = " ".join(str(error).split())[:200]
    refused = isinstance(error, RuntimeError) and any(words in str(error) for words in NO_ROOM)
    if isinstance(error, MemoryError) or refused:
        return Problem(f"there is not enough memory for this ({said or 'MemoryError'})")
    if isinstance(error, RecursionError):
        return Problem("this is nested too deeply")
    if isinstance(error, OverflowError):
        return Problem(f"a number is too large ({said})")
    if isinstance(error, UnicodeError) or (isinstance(error, ValueError) and "null " in str(error)):
        return Problem(f"a name or a text has characters that cannot be used ({said})")
    if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
        return Problem(f"{error.filename}: {error.strerror}" if error.filename else said)
    return None
