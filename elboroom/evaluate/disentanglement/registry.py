"""The registry of metrics, and the two ways to ask for them: arrays in, or a table of codes in."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from numpy.typing import ArrayLike

from elboroom.core.problem import Problem, nearest, unknown
from elboroom.evaluate.disentanglement.interval import HalfSamples, Spread, repeated
from elboroom.evaluate.disentanglement.score import Score
from elboroom.evaluate.disentanglement.source import Rows, Source

Need = Literal["codes", "values", "bins", "classes", "density"]
Measure = Callable[..., Score]  # f(source, seed, mode, **settings)

_METRICS: dict[str, Metric] = {}


@dataclass(frozen=True)
class Metric:
    """A registered metric: its name, modes, what it asks of a source and how its spread is found."""

    name: str
    modes: tuple[str, ...]  # the first is the default
    needs: Need | Mapping[str, Need]
    spread: Spread | Mapping[str, Spread]
    draws: int  # independent evaluation draws behind the interval on a table
    measure: Measure

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (inspect.getdoc(self.measure) or "").split("\n")[0]

    @property
    def options(self) -> dict[str, Any]:
        """Its settings with their defaults."""
        found = list(inspect.signature(self.measure).parameters.values())[3:]
        return {p.name: p.default for p in found}

    def mode(self, name: str) -> str:
        """A mode that it has."""
        if name not in self.modes:
            raise unknown(f"mode of {self.name}", name, self.modes)
        return name

    def need(self, mode: str) -> Need:
        """What a mode asks of the source; where modes differ, the entry of the first mode holds for those not named."""
        if isinstance(self.needs, str):
            return self.needs
        return self.needs.get(mode, self.needs[self.modes[0]])

    def spread_of(self, mode: str) -> Spread:
        """The rule for its interval on arrays."""
        if isinstance(self.spread, Mapping):
            return self.spread.get(mode, self.spread[self.modes[0]])
        return self.spread

    def __call__(
        self, source: Source, seed: int = 0, mode: str = "dlib", interval: bool = False, **settings: Any
    ) -> Score:
        """Measures a source."""
        for name in settings.keys() - self.options.keys():
            raise Problem(f"{self.name} has no setting '{name}'{nearest(name, self.options)}")
        source.require(self.need(self.mode(mode)), self.name, mode)
        start = time.perf_counter()
        found = self.measure(source, seed, mode, **settings)
        said = {name: value for name, value in settings.items() if name != "threads"}  # which changes no score
        found = replace(found, settings={**source.settings, "seed": seed, **said, **found.settings})
        if interval and found.value is not None:
            found = replace(found, interval=self._interval(found, source, seed, mode, settings))
        return replace(found, seconds=time.perf_counter() - start)

    def _interval(
        self, found: Score, source: Source, seed: int, mode: str, settings: dict[str, Any]
    ) -> dict[str, Any] | None:
        def again(other: Source, seed: int) -> Score:
            return self.measure(other, seed, mode, **settings)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said once already
            if isinstance(source, Rows):
                return self.spread_of(mode)(found, source, seed, again)
            others = [again(source, seed + r).value for r in range(1, self.draws)]
        values = [value for value in [found.value, *others] if value is not None]
        return repeated(values) if len(values) > 1 else None


def metric(
    name: str,
    modes: Sequence[str] = ("dlib",),
    needs: Need | Mapping[str, Need] = "classes",
    interval: Spread | Mapping[str, Spread] | None = None,
    draws: int = 10,
) -> Callable[[Measure], Measure]:
    """Registers `f(source, seed, mode, **settings) -> Score`.

    needs: "codes" alone, factors as "values" of any kind, in "bins" where continuous, as "classes", or a "density" of q
    beside classes; or one of these for each mode. interval: the rule on arrays, by default half-samples.
    """

    def register(measure: Measure) -> Measure:
        _METRICS[name] = Metric(name, tuple(modes), needs, interval or HalfSamples(), draws, measure)
        return measure

    return register


def metrics() -> dict[str, Metric]:
    """Every registered metric by name."""
    return dict(sorted(_METRICS.items()))


def find(name: str) -> Metric:
    """One registered metric."""
    if name not in _METRICS:
        raise unknown("metric", name, _METRICS)
    return _METRICS[name]


def score(
    name: str,
    codes: ArrayLike,
    factors: ArrayLike | None = None,
    kinds: Sequence[str] | None = None,
    mode: str | None = None,
    rng: int = 0,
    interval: bool = False,
    allow_smaller: bool = False,
    *,
    names: Sequence[str] | None = None,
    logvar: ArrayLike | None = None,
    representation: str = "mean",
    factor_bins: int | None = None,
    **settings: Any,
) -> Score:
    """One metric of codes (n, J) against factors (n, K): no grid, no image and no model is needed.

    kinds: categorical, ordinal or continuous for each factor. allow_smaller: takes fewer rows than the protocol asks for,
    and records how many. factor_bins: cuts continuous factors into quantile bins. logvar: of q(z|x), for what needs it.
    """
    entry = find(name)
    rows = Rows(codes, factors, kinds, names, logvar, representation, allow_smaller, factor_bins)
    return entry(rows, rng, mode or entry.modes[0], interval, **settings)


class Table(Protocol):
    """What holds the codes of a data set."""

    @property
    def source(self) -> Source: ...


def evaluate(
    table: Table | Source,
    metrics: str | Sequence[str] = "all",
    mode: str | Mapping[str, str] = "dlib",
    seed: int = 0,
    representation: str | None = None,
    interval: bool = False,
) -> dict[str, Score]:
    """Metrics of a table of codes, by name. A metric without the mode is measured in its first one.

    With "all", what cannot be measured here has no value but a reason.
    """
    source = table if isinstance(table, Source) else table.source
    if representation is not None and representation != source.representation:
        source = source.represented(representation)
    chosen = sorted(_METRICS) if metrics == "all" else [metrics] if isinstance(metrics, str) else list(metrics)
    known = {name for entry in map(find, chosen) for name in entry.modes}
    if isinstance(mode, str) and mode not in {"dlib", *known}:
        raise unknown("mode of these metrics", mode, known)
    found = {}
    for entry in map(find, chosen):
        said = mode.get(entry.name, "dlib") if isinstance(mode, Mapping) else mode
        each = said if said in entry.modes else entry.modes[0]
        try:
            found[entry.name] = entry(source, seed, each, interval)
        except Problem as problem:
            if metrics != "all":
                raise
            found[entry.name] = Score(None, entry.name, each, settings={"seed": seed}, reason=str(problem))
    return found
