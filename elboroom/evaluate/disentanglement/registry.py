"""Metrics of codes, and the ways to ask for them: arrays in, a table of codes in, or a run."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from numpy.typing import ArrayLike

from elboroom.core.calls import asked
from elboroom.core.problem import Problem, nearest, unknown
from elboroom.evaluate.disentanglement.interval import HalfSamples, Spread, repeated
from elboroom.evaluate.disentanglement.source import Rows, Source
from elboroom.evaluate.registry import ALL, Metric, Quantity, Results, check_mode, described, register
from elboroom.evaluate.registry import metrics as every
from elboroom.evaluate.result import Better, Result

if TYPE_CHECKING:
    from elboroom.evaluate.subject import Subject

Need = Literal["codes", "values", "bins", "classes", "density"]
Read = Callable[..., Result]  # f(source, seed, mode, **settings)


@dataclass(frozen=True)
class CodeMetric(Metric):
    """A metric of codes: what each of its modes asks of a source, how it is read off it and how its spread is found."""

    read: Read = field(kw_only=True)
    asks: Need | Mapping[str, Need] = field(kw_only=True)
    spread: Spread | Mapping[str, Spread] = field(kw_only=True)
    draws: int = field(kw_only=True)  # independent evaluation draws behind the interval on a table
    against: type | None = field(kw_only=True)  # the prior that it takes a run to have

    @property
    def defaults(self) -> dict[str, Any]:
        """Its settings with their defaults."""
        found = list(inspect.signature(self.read).parameters.values())[3:]
        return {p.name: p.default for p in found}

    def need(self, mode: str) -> Need:
        """What a mode asks of the source; where modes differ, the entry of the first mode holds for those not named."""
        if isinstance(self.asks, str):
            return self.asks
        return self.asks.get(mode, self.asks[self.modes[0]])

    def spread_of(self, mode: str) -> Spread:
        """The rule for its interval on arrays."""
        if isinstance(self.spread, Mapping):
            return self.spread.get(mode, self.spread[self.modes[0]])
        return self.spread

    def __call__(
        self, source: Source, seed: int = 0, mode: str = "dlib", interval: bool = False, **settings: Any
    ) -> Result:
        """Measures a source."""
        for name in settings.keys() - self.defaults.keys():
            raise Problem(f"{self.name} has no setting '{name}'{nearest(name, self.defaults)}")
        source.require(self.need(self.mode(mode)), self.name, mode)
        start = time.perf_counter()
        found = self.read(source, seed, mode, **settings)
        said = {name: value for name, value in settings.items() if name != "threads"}  # which changes no score
        found = replace(found, metric=self.name, settings={**source.settings, "seed": seed, **said, **found.settings})
        if interval and found.value is not None:
            found = replace(found, interval=self._interval(found, source, seed, mode, settings))
        return described(self.name, replace(found, seconds=time.perf_counter() - start))

    def _interval(
        self, found: Result, source: Source, seed: int, mode: str, settings: dict[str, Any]
    ) -> dict[str, Any] | None:
        def again(other: Source, seed: int) -> Result:
            return self.read(other, seed, mode, **settings)

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
    *,
    title: str = "",
    better: Better = "neither",
    against: type | None = None,
) -> Callable[[Read], Read]:
    """Registers `f(source, seed, mode, **settings) -> Result`.

    needs: "codes" alone, factors as "values" of any kind, in "bins" where continuous, as "classes", or a "density" of q
    beside classes; or one of these for each mode. interval: the rule on arrays, by default half-samples. better: which way,
    without which no search is for it. against: the prior that a run must have.
    """

    def enter(read: Read) -> Read:
        gives = {name: Quantity(title or name, better)}
        summary = (inspect.getdoc(read) or "").split("\n")[0]
        register(
            CodeMetric(
                name, "code table", gives, partial(_of_run, name), summary, tuple(modes), read=read, asks=needs,
                spread=interval or HalfSamples(), draws=draws, against=against,
            )
        )  # fmt: skip
        return read

    return enter


def metrics() -> dict[str, CodeMetric]:
    """Every metric of codes by name."""
    return {name: entry for name, entry in every().items() if isinstance(entry, CodeMetric)}


def find(name: str) -> CodeMetric:
    """One metric of codes."""
    known = metrics()
    if name not in known:
        raise unknown("metric", name, known)
    return known[name]


def _of_run(
    name: str, subject: Subject, mode: str = "dlib", representation: str = "mean", seed: int = 0,
    interval: bool = False, smaller: bool = False,
) -> Results:  # fmt: skip
    """One metric of a run."""
    entry = find(name)
    if entry.against is not None and type(subject.run.model.prior) is not entry.against:
        raise Problem(f"{name} compares with N(0, I), which is not the prior of this run")
    return {name: entry(subject.source(representation, smaller), seed, mode, interval)}


@asked
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
) -> Result:
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


@asked
def evaluate(
    table: Table | Source,
    metrics: str | Sequence[str] = "all",
    mode: str | Mapping[str, str] = "dlib",
    seed: int = 0,
    representation: str | None = None,
    interval: bool = False,
) -> dict[str, Result]:
    """Metrics of a table of codes, by name. A metric without the mode is measured in its first one.

    With "all", what cannot be measured here has no value but a reason.
    """
    source = table if isinstance(table, Source) else getattr(table, "source", None)
    if not isinstance(source, Source):
        raise Problem("table must hold codes: Rows(codes, factors), or the code table of a run")
    if representation is not None and representation != source.representation:
        source = source.represented(representation)
    chosen = (
        [find(name) for name in ([metrics] if isinstance(metrics, str) else metrics)] if metrics != ALL else _every()
    )
    if isinstance(mode, str):
        check_mode(mode, chosen)
    found = {}
    for entry in chosen:
        each = entry.nearest_mode(mode if isinstance(mode, str) else mode.get(entry.name, "dlib"))
        try:
            found[entry.name] = entry(source, seed, each, interval)
        except Problem as problem:
            if metrics != ALL:
                raise
            found |= entry.refused(problem, each, seed)
    return found


def _every() -> list[CodeMetric]:
    return list(metrics().values())
