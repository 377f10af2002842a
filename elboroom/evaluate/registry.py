"""The registry of metrics: what each needs, what it gives, which options it reads and how it is measured."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal, NamedTuple

from elboroom.core.problem import Problem, unknown
from elboroom.evaluate.result import Better, Result

Needs = Literal["split", "code table", "sentences", "labels", "several runs"]
Goal = Literal["max", "min"]
Results = dict[str, Result]  # by their keys in metrics.json
ALL = "all"
FAMILIES = (
    "likelihood.measure",
    "matching",
    "samples",
    "disentanglement",
    "downstream",
    "text.generated",
    "transfer.measure",
    "blocks",
    "probe",
    "accuracy",
    "attributes",
    "robustness",
    "answers",
)

_METRICS: dict[str, Metric] = {}
_QUANTITIES: dict[str, Quantity] = {}  # what all of them give


class Quantity(NamedTuple):
    """What a key of metrics.json stands for, and which way is better."""

    title: str
    better: Better


@dataclass(frozen=True)
class Metric:
    """A metric by the name that --metrics knows."""

    name: str
    needs: Needs
    gives: Mapping[str, Quantity]  # by keys of metrics.json; `probe-*` stands for probe-100, probe-500, ...
    measure: Callable[..., Results]  # f(subject, **options); of several runs, f(subjects, **options)
    summary: str
    modes: tuple[str, ...] = ()  # the first is the default
    by_name: bool = False  # whether it is measured only where it is asked for by name

    @property
    def title(self) -> str:
        """As a page shows it: that of what it gives, or of the first of several."""
        return next(iter(self.gives.values())).title

    @property
    def better(self) -> Better:
        """Which way is better; neither where it gives quantities of several directions."""
        ways = {quantity.better for quantity in self.gives.values()}
        return ways.pop() if len(ways) == 1 else "neither"

    @property
    def options(self) -> frozenset[str]:
        """The options that it reads."""
        return frozenset(list(inspect.signature(self.measure).parameters)[1:])

    def mode(self, name: str) -> str:
        """A mode that it has."""
        if name not in self.modes:
            raise unknown("mode", name, self.modes, self.name)
        return name

    def nearest_mode(self, name: str) -> str:
        """That mode where it has it, else its first."""
        return name if name in self.modes else self.modes[0]

    def of(self, subject: Any, options: Mapping[str, Any]) -> Results:
        """What it gives of a run; options that it does not read are left aside, a mode that it has not is its first."""
        said = {name: value for name, value in options.items() if name in self.options}
        if self.modes:
            said["mode"] = self.nearest_mode(said.get("mode", ""))
        return self.measure(subject, **said)

    def refused(self, problem: Problem, mode: str, seed: int) -> Results:
        """No value but a reason, of a metric that gives one quantity; the Problem itself of others."""
        if len(self.gives) > 1 or not self.modes:
            raise problem
        empty = Result(None, self.nearest_mode(mode), settings={"seed": seed}, reason=str(problem), metric=self.name)
        return {self.name: described(self.name, empty)}


def register(entry: Metric) -> Metric:
    """Enters a metric."""
    _METRICS[entry.name] = entry
    _QUANTITIES.update(entry.gives)
    return entry


def family(
    name: str, needs: Needs, gives: Mapping[str, Quantity], modes: Sequence[str] = (), by_name: bool = False
) -> Callable[[Callable[..., Results]], Callable[..., Results]]:
    """Registers `f(subject, **options) -> results by key`, of which one or more keys end up in metrics.json."""

    def enter(measure: Callable[..., Results]) -> Callable[..., Results]:
        summary = (inspect.getdoc(measure) or "").split("\n")[0]
        register(Metric(name, needs, gives, measure, summary, tuple(modes), by_name))
        return measure

    return enter


def metrics() -> dict[str, Metric]:
    """Every metric by name, in the order in which they are measured."""
    for module in FAMILIES:
        import_module(f"elboroom.evaluate.{module}")
    place = {needs: at for at, needs in enumerate(("split", "code table"))}
    return dict(sorted(_METRICS.items(), key=lambda item: (place.get(item[1].needs, len(place)), item[0])))


def find(name: str) -> Metric:
    """One metric."""
    known = metrics()
    if name not in known:
        raise unknown("metric", name, [ALL, *known])
    return known[name]


def chosen(names: Iterable[str], has_sentences: bool) -> list[Metric]:
    """The metrics of these names; `all` are those that need not be asked for by name."""
    asked = list(names)
    some = {} if ALL not in asked else {n: m for n, m in metrics().items() if not m.by_name}
    some = {n: m for n, m in some.items() if has_sentences or m.needs != "sentences"}
    return list((some | {name: find(name) for name in asked if name != ALL}).values())


def check_mode(mode: str, asked: Sequence[Metric]) -> None:
    """Refuses a mode that none of these metrics has, and says which of them are measured in another one.

    Of dlib, the mode where none is said, nothing is said.
    """
    known = {name for entry in asked for name in entry.modes}
    if known and mode not in {"dlib", *known}:
        raise unknown("mode", mode, known)
    without = [entry for entry in asked if entry.modes and mode not in entry.modes] if mode != "dlib" else []
    if without:
        said = (f"{entry.name} ({'; also '.join([entry.modes[0], *_others(entry)])})" for entry in without)
        warnings.warn(f"these have no mode {mode} and are measured in another: {', '.join(said)}", stacklevel=3)


def _others(entry: Metric) -> list[str]:
    """The modes beside the first, in one text, if there are any."""
    return [", ".join(entry.modes[1:])] if len(entry.modes) > 1 else []


def quantity(key: str) -> Quantity | None:
    """What a key of metrics.json stands for, if any metric gives it; a mode may stand behind it, as in `sap paper`."""
    word = key.split(" ")[0]
    stem, _, size = word.rpartition("-")
    if not _QUANTITIES.keys() & {word, f"{stem}-*"}:
        metrics()  # loads all of them
    if word in _QUANTITIES or f"{stem}-*" not in _QUANTITIES:
        return _QUANTITIES.get(word)
    title, better = _QUANTITIES[f"{stem}-*"]
    return Quantity(title.replace("*", f"{int(size):,}" if size.isdigit() else size), better)


def described(key: str, result: Result) -> Result:
    """A result with the title and the direction of its key."""
    found = quantity(key)
    return result if found is None else replace(result, title=found.title, better=found.better)


def named(results: Mapping[str, Result]) -> Results:
    """Results by key, each with the title and the direction of its key."""
    return {key: described(key, result) for key, result in results.items()}


def goal(key: str) -> Goal | None:
    """What is done to have the best of a quantity; None where neither is better, or no metric says which."""
    found = quantity(key)
    return {"high": "max", "low": "min", "neither": None}[found.better] if found else None
