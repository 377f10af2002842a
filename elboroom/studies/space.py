"""The space of a study: grids, zips, lists and random draws of any option, over seeds, data sets and sizes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from elboroom.core.problem import Problem, nearest
from elboroom.data import labels
from elboroom.data.sources import SOURCES
from elboroom.methods import card
from elboroom.training import recipe

PLACES = ("method", "data", "size", "seed")  # what a cell has beside its options
ZIP = "zip must be a table of lists, as in zip = { off = [1, 10], diag = [10, 100] }"
TRIES = 1000  # draws for one that is unlike those before it


@dataclass(frozen=True)
class Cell:
    """One run of a study: a method with options, on data, from a seed. Its name is a function of these alone."""

    method: str
    data: str
    size: int | None
    seed: int
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of its folder: readable, and told from all others by a digest."""
        own = {option.name for option in card(self.method).options}
        said = [f"{key}-{shown(value)}" for key, value in self.options.items() if key in own]
        words = "-".join([self.method, *said[:3], f"s{self.seed}"])
        safe = "".join(letter if letter.isalnum() or letter in "-._" else "_" for letter in words)
        return f"{safe[:80]}-{digest(self.to_json())}"

    @property
    def setting(self) -> str:
        """A digest of all but the seed: cells that share it differ by chance alone."""
        return digest({key: value for key, value in self.to_json().items() if key != "seed"})

    def to_json(self) -> dict[str, Any]:
        """As kept in the index and handed to workers."""
        return asdict(self)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Cell:
        """The cell of a line of the index."""
        return cls(**entry)


def digest(content: Any) -> str:
    """Eight letters that tell contents apart; 4 and 4.0 are the same, and so is any order of keys."""
    return hashlib.sha256(json.dumps(_plain(content), sort_keys=True).encode()).hexdigest()[:8]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def shown(value: Any) -> str:
    """A value in a name or a label."""
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Range:
    """Values to draw from: [low, high], even or even in the logarithm, whole numbers if asked for."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    @classmethod
    def of(cls, name: str, entry: Mapping[str, Any]) -> Range:
        """The range that a table `{ low = 1, high = 100, log = true }` says."""
        known = cls.__dataclass_fields__
        for key in entry:
            if key not in known:
                raise Problem(
                    f"a range of {name} has no '{key}'{nearest(key, known) or '; it has: ' + ', '.join(known)}"
                )
        for key in ("low", "high"):
            if not isinstance(entry.get(key), int | float) or not math.isfinite(entry[key]):
                raise Problem(f"a range of {name} needs numbers low and high, as in {name} = {{ low = 1, high = 10 }}")
        found = cls(**entry)
        if found.ends[0] > found.ends[1]:
            raise Problem(f"the range of {name} is empty: from {shown(found.low)} to {shown(found.high)}")
        if found.log and found.low <= 0:
            raise Problem(f"a log range of {name} must start above 0, not at {shown(found.low)}")
        return found

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the most that can be drawn."""
        return (math.ceil(self.low), math.floor(self.high)) if self.whole else (self.low, self.high)

    def draw(self, rng: np.random.Generator) -> float | int:
        """One value, of four digits so that it can be written down."""
        ends = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        if self.whole and not self.log:
            return int(rng.integers(int(self.ends[0]), int(self.ends[1]), endpoint=True))
        value = float(rng.uniform(*ends))
        value = math.exp(value) if self.log else value
        return int(np.clip(round(value), *self.ends)) if self.whole else float(f"{value:.4g}")


@dataclass(frozen=True)
class Block:
    """Runs that belong together: the product of its axes, for each of its draws.

    An axis is a list of choices, each of one option (a list of the grid) or of several that go together (a zip).
    """

    axes: tuple[tuple[dict[str, Any], ...], ...]
    ranges: dict[str, Range] = field(default_factory=dict)
    draws: int = 0
    seed: int = 0  # of the draws

    @classmethod
    def of(cls, entry: Mapping[str, Any], seed: int = 0) -> Block:
        """The block of a table: lists are axes, tables are ranges, `zip` holds lists that go together."""
        given = dict(entry)
        draws, zipped = given.pop("draws", 0), given.pop("zip", {})
        if not isinstance(draws, int) or isinstance(draws, bool) or draws < 0:
            raise Problem(f"draws must be a number of random settings, not {draws!r}")
        ranges = {key: Range.of(key, value) for key, value in given.items() if isinstance(value, Mapping)}
        lists = {
            key: value if isinstance(value, list) else [value] for key, value in given.items() if key not in ranges
        }
        for key, values in lists.items():
            for value in values:
                if not isinstance(value, str | int | float | bool):
                    raise Problem(f"{key} must be text, a number, true or false, or a list of these, not {value!r}")
        last = [key for key in ("data", "size", "seed") if key in lists]  # seeds vary fastest
        order = [*(key for key in lists if key not in last), *last]
        axes = [tuple({key: choice} for choice in lists[key]) for key in order]
        axes.insert(len(order) - len(last), _together(zipped) if zipped else ({},))
        for key in zipped:
            if key in given:
                raise Problem(f"{key} is set twice: in zip and outside it")
        if draws and not ranges:
            raise Problem("draws needs a range to draw from, as in beta = { low = 1, high = 100, log = true }")
        return cls(tuple(axes), ranges, draws, seed)

    @property
    def count(self) -> int:
        """How many cells it has; none of them is made to say so."""
        return math.prod(map(len, self.axes)) * (self.draws if self.ranges else 1)

    def drawn(self) -> list[dict[str, Any]]:
        """The values of its ranges, draw by draw, all different."""
        if not self.ranges:
            return [{}]
        rng, found = np.random.default_rng(self.seed), list[dict[str, Any]]()
        for _ in range(self.draws):
            tries = ({key: r.draw(rng) for key, r in self.ranges.items()} for _ in range(TRIES))
            new = next((values for values in tries if values not in found), None)
            if new is None:
                raise Problem(f"there are not {self.draws} distinct draws of {', '.join(self.ranges)}; use fewer draws")
            found.append(new)
        return found

    def cells(self, drawn: Mapping[str, Any] | None = None) -> Iterator[Cell]:
        """Its cells, draw by draw; only those of one draw where its values are said."""
        for values in self.drawn() if drawn is None else [drawn]:
            for choices in product(*self.axes):
                said = {key: value for choice in choices for key, value in choice.items()} | dict(values)
                options = {key: lasting(key, value) for key, value in said.items() if key not in PLACES}
                size = said.get("size")
                yield Cell(str(said["method"]), source(said["data"]), size, said.get("seed", 0), options)


def _together(zipped: Any) -> tuple[dict[str, Any], ...]:
    """The choices of lists that go together."""
    if not isinstance(zipped, Mapping) or not all(isinstance(values, list) for values in zipped.values()):
        raise Problem(ZIP)
    lengths = {key: len(values) for key, values in zipped.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{key} {count}" for key, count in lengths.items())
        raise Problem(f"lists in a zip must have the same length; these are: {said}")
    return tuple(dict(zip(zipped, values, strict=True)) for values in zip(*zipped.values(), strict=True))


def lasting(name: str, value: Any) -> Any:
    """An option; a table of labels, a base and a recipe by a path that holds wherever a worker runs."""
    if name == "recipe" and isinstance(value, str):
        return recipe.lasting(value)
    if name == "base" and isinstance(value, str):
        return str(Path(value).expanduser().resolve())
    return labels.lasting(value) if name == "labels" and isinstance(value, str) else value


def source(data: Any) -> str:
    """A data set by its name, or by a path that holds wherever a worker runs."""
    path = Path(str(data)).expanduser()
    is_path = str(data) not in SOURCES and (path.exists() or len(path.parts) > 1 or path.suffix in (".npy", ".npz"))
    return str(path.resolve()) if is_path else str(data)
