"""Factors of examples, and the checks of the arrays that metrics are read off."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elboroom.core.problem import Problem, unknown

Kind = Literal["categorical", "ordinal", "continuous"]
Ints = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]

QUANTILES = 10  # bins of a continuous factor where a metric fixes factors
MOST = 1000  # values of a factor that are told apart as classes


@dataclass(frozen=True)
class Factors:
    """The factors of n examples: as classes 0..size-1 and as real values, one column each."""

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    classes: Ints  # (n, K); those of a continuous factor are quantile bins
    values: NDArray[np.float64]  # (n, K); those of a categorical factor are its classes
    cut: bool = False  # whether the user asked for the bins of continuous factors
    dropped: tuple[str, ...] = ()  # names of those with a single value

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each has."""
        return tuple(int(c.max(initial=-1)) + 1 for c in self.classes.T)

    def take(self, rows: Ints) -> Factors:
        """Those of some of the examples; a factor that is left with one value is kept here."""
        columns = [np.unique(c, return_inverse=True)[1].reshape(-1) for c in self.classes[rows].T]
        classes = np.stack(columns, 1) if columns else self.classes[rows]
        return Factors(self.names, self.kinds, classes, self.values[rows], self.cut, self.dropped)


def checked(
    codes: ArrayLike,
    factors: ArrayLike | None,
    kinds: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    factor_bins: int | None = None,
) -> tuple[Floats, Factors]:
    """Codes (n, J) and factors (n, K), sound; or a Problem that says what is wrong with them.

    kinds: categorical, ordinal or continuous for each factor; by default strings are categorical, integers ordinal, reals
    continuous. factor_bins: cuts continuous factors into so many quantile bins and treats them as ordinal.
    """
    z = checked_codes(codes)
    if factors is None:
        nothing = np.zeros((len(z), 0))
        return z, Factors((), (), nothing.astype(np.int64), nothing)
    table = np.asarray(factors)
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or len(table) != len(z):
        turned = " (are the codes transposed?)" if table.ndim == 2 and z.shape[1] == len(table) else ""
        raise Problem(f"codes of shape {z.shape} and factors of shape {table.shape} have different lengths{turned}")
    if not table.shape[1]:
        raise Problem(f"factors of shape {table.shape} have no factor column")
    count = table.shape[1]
    if names is None:
        names = [str(c) for c in getattr(factors, "columns", [f"factor {k}" for k in range(count)])]
    if len(names) != count or (kinds is not None and len(kinds) != count):
        said = f"{len(names)} names" if len(names) != count else f"{len(kinds or ())} kinds"
        raise Problem(f"there are {count} factors but {said}")
    if factor_bins is not None and factor_bins < 2:
        raise Problem(f"a factor needs at least 2 bins, not {factor_bins}")
    columns = [
        _column(table[:, k], str(names[k]), None if kinds is None else kinds[k], factor_bins) for k in range(count)
    ]
    single = [str(names[k]) for k in range(count) if columns[k][1].max() == 0]
    kept = [k for k in range(count) if columns[k][1].max() > 0]
    if not kept:
        raise Problem(f"no factor varies: {', '.join(single)} ha{'ve' if len(single) > 1 else 's'} a single value")
    for name in single:
        warnings.warn(f"factor '{name}' has a single value and is left out", stacklevel=3)
    return z, Factors(
        tuple(str(names[k]) for k in kept),
        tuple(columns[k][0] for k in kept),
        np.stack([columns[k][1] for k in kept], 1),
        np.stack([columns[k][2] for k in kept], 1),
        factor_bins is not None,
        tuple(single),
    )


def checked_codes(codes: ArrayLike) -> Floats:
    """Codes (n, J) of finite reals, float32 where they came as such, else float64."""
    try:
        z = np.asarray(codes)
        z = z if z.dtype in (np.float32, np.float64) else z.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise Problem(f"codes must be numbers of shape (n, J): {error}") from error
    if z.ndim != 2:
        raise Problem(f"codes must have shape (n, J), one row per example, not {z.shape}")
    if not z.size:
        raise Problem(f"codes of shape {z.shape} are empty")
    bad = ~np.isfinite(z)
    if bad.any():
        rows, dims = np.flatnonzero(bad.any(1)), np.flatnonzero(bad.any(0))
        where = f"dimension{'s' * (len(dims) > 1)} {', '.join(map(str, dims))}"
        raise Problem(f"{int(bad.sum())} codes are NaN or infinite, the first in row {rows[0]}, in {where}")
    return cast(Floats, z)


def _column(raw: NDArray[Any], name: str, kind: str | None, bins: int | None) -> tuple[Kind, Ints, NDArray[np.float64]]:
    """The kind, classes and values of one factor."""
    column = np.array(raw.tolist()) if raw.dtype == object else raw  # a table of mixed columns
    numeric = column.dtype.kind in "biuf"
    if kind is None:
        kind = "continuous" if column.dtype.kind == "f" else "ordinal" if numeric else "categorical"
    if kind not in get_args(Kind):
        raise unknown("kind of factor", kind, get_args(Kind))
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        bad = np.flatnonzero(~np.isfinite(column))
        raise Problem(f"{len(bad)} values of factor '{name}' are NaN or infinite, the first in row {bad[0]}")
    if not numeric and kind != "categorical":
        raise Problem(f"the values of factor '{name}' are not numbers, so its kind must be categorical, not {kind}")
    distinct, classes = np.unique(column, return_inverse=True)
    classes = classes.reshape(-1).astype(np.int64)
    if kind == "categorical":
        if len(distinct) > MOST:
            raise Problem(f"factor '{name}' has {len(distinct):,} values: it is probably continuous, not categorical")
        return "categorical", classes, classes.astype(np.float64)
    values = column.astype(np.float64)
    if kind == "ordinal":
        return "ordinal", classes, values
    if len(distinct) > 1:
        edges = np.quantile(values, np.linspace(0, 1, (bins or QUANTILES) + 1)[1:-1])
        classes = np.unique(np.searchsorted(edges, values, side="right"), return_inverse=True)[1].reshape(-1)
        if classes.max() == 0:  # one value holds nearly all rows
            classes = (values != values.min()).astype(np.int64)
    return ("continuous" if bins is None else "ordinal"), classes, values
