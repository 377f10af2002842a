"""Cells of a CSV: none is a formula, whatever a stranger called a column or wrote in a sentence."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any

STARTS = ("=", "+", "-", "@", "\t", "\r")  # of what a spreadsheet would run


def cell(value: Any) -> Any:
    """A text that a spreadsheet would run as a formula gets a quote before it; numbers stay as they are."""
    return f"'{value}" if isinstance(value, str) and value.startswith(STARTS) else value


def as_csv(rows: Iterable[Iterable[Any]], ending: str = "\r\n") -> bytes:
    """Rows as CSV in UTF-8."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=ending).writerows([cell(value) for value in row] for row in rows)
    return text.getvalue().encode()
