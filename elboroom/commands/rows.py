"""Rows: vectors as a table that other programs read, a .csv whose header names the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from elboroom.core.cells import as_csv
from elboroom.core.files import write


def write_csv(
    path: Path, names: Sequence[str], values: Any, axes: Mapping[str, Sequence[object]] | None = None
) -> None:
    """Values (..., D) as rows, each after its places on the axes before the last: input 1, input 2, ..."""
    axes = axes or {}
    places = product(*axes.values()) if axes else [()] * len(values)
    numbers = values.reshape(-1, values.shape[-1])
    rows = ([*place, *row] for place, row in zip(places, numbers, strict=True))
    write(path, as_csv([[*axes, *names], *rows]))


def numbered(letter: str, count: int) -> list[str]:
    """`z0, z1, ...`, as dimensions are called elsewhere."""
    return [f"{letter}{place}" for place in range(count)]
