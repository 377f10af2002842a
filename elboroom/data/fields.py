"""Fields: what is observed beside x, and of what kind it is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from elboroom.core.problem import Problem, unknown

FieldKind = Literal["categorical", "ordinal", "binary", "sequence"]
CATEGORICAL: FieldKind = "categorical"
ORDINAL: FieldKind = "ordinal"
LABEL_KINDS = ("categorical", "ordinal", "binary")


@dataclass(frozen=True)
class Field:
    """What is observed beside x: a label, one of several classes or of values in order, or a sequence of tokens."""

    name: str
    kind: FieldKind
    classes: tuple[str, ...] = ()  # what its values are called; none where they are just numbered
    size: int = 0  # how many values a label has

    def order(self, kind: FieldKind) -> list[int]:
        """Its values in the order in which a label of this kind numbers them; refuses a kind that they do not allow."""
        known = list(range(self.size))
        if kind == "binary" and self.size != 2:
            raise Problem(
                f"'{self.name}' has {self.size} value{'s' * (self.size != 1)}; a binary label has exactly two"
            )
        if kind != "ordinal" or not self.classes:
            return known
        values = numbers(self.classes)
        if values is None or len(set(values)) < self.size:
            shown = ", ".join(self.classes[:5])
            raise Problem(f"'{self.name}' cannot be ordinal; its values are not distinct numbers ({shown})")
        return sorted(known, key=values.__getitem__)


def usual(size: int) -> FieldKind:
    """The kind of a label of so many values where nobody says it."""
    return "binary" if size == 2 else "categorical"


def numbers(values: Sequence[str]) -> list[float] | None:
    """The values as finite numbers, or None if one is something else."""
    try:
        read = [float(value) for value in values]
    except ValueError:
        return None
    return read if all(map(math.isfinite, read)) and not any("_" in value for value in values) else None


def checked_kind(kind: str) -> FieldKind:
    """A kind that a label can have."""
    if kind not in LABEL_KINDS:
        raise unknown("kind of label", kind, LABEL_KINDS)
    return cast(FieldKind, kind)


def said_kinds(kinds: str | Mapping[str, str] | None) -> dict[str, FieldKind]:
    """The kinds of labels in `male=binary,age=ordinal` or in a dict."""
    if isinstance(kinds, str):
        pairs = [part.rpartition("=") for part in kinds.split(",") if part.strip()]
        for name, equals, kind in pairs:
            if not (equals and name.strip() and kind.strip()):
                raise Problem(f"--label-kinds '{kinds}': use NAME=KIND, comma-separated, as in male=binary,age=ordinal")
        names = [name.strip() for name, _, _ in pairs]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise Problem(f"--label-kinds names '{twice}' twice")
        kinds = {name.strip(): kind.strip() for name, _, kind in pairs}
    return {name: checked_kind(kind) for name, kind in (kinds or {}).items()}
