"""Rows: vectors as a table that other programs read, a .csv whose header names the columns."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from elboroom.core.problem import Problem


def write_csv(
    path: Path, names: Sequence[str], values: Any, axes: Mapping[str, Sequence[object]] | None = None
) -> None:
    """Values (..., D) as rows, each after its places on the axes before the last: input 1, input 2, ..."""
    axes = axes or {}
    places = product(*axes.values()) if axes else [()] * len(values)
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow([*axes, *names])
            for place, row in zip(places, values.reshape(-1, values.shape[-1]), strict=True):
                table.writerow([*place, *map(str, row)])
    except OSError as error:
        raise Problem(f"cannot write {path}: {error.strerror}") from error


def numbered(letter: str, count: int) -> list[str]:
    """`z0, z1, ...`, as dimensions are called elsewhere."""
    return [f"{letter}{place}" for place in range(count)]
