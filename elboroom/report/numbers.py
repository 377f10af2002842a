"""The numbers of a run as a page shows them: the headline row, and the table of all with estimator, settings and errors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from elboroom.evaluate.result import Result
from elboroom.evaluate.verdicts import MARGIN
from elboroom.plots.style import MINUS
from elboroom.runs.run import Run

NAMES = {
    "elbo": "ELBO",
    "distortion": "Distortion",
    "rate": "Rate",
    "log_likelihood": "Log-likelihood",
    "mutual_information": "Mutual information",
    "active_units": "Active units",
    "perplexity": "Perplexity",
    "aggregate_rate": "KL of q(z) to the prior",
    "log_likelihood_posthoc": "Log-likelihood, post hoc",
    "perplexity_posthoc": "Perplexity, post hoc",
    "bits_per_dim": "Bits per dimension",
    "squared_error": "Squared error",
    "rate_per_dim": "Rate, summed over dimensions",
}
SCORES = {  # those on [0, 1], in the order in which they are shown; others follow by name
    "beta-vae": "BetaVAE score",
    "factor-vae": "FactorVAE score",
    "mig": "Mutual information gap",
    "sap": "Separated attribute predictability",
    "dci": "Disentanglement (DCI)",
    "modularity": "Modularity",
    "explicitness": "Explicitness",
    "irs": "Interventional robustness",
    "infom": "InfoM, modularity",
    "infoc": "InfoC, compactness",
    "infoe": "InfoE, explicitness",
    "sparsity": "Hoyer sparsity",
    **{f"downstream-{n}": f"Factors predicted from {n:,} labels" for n in (10, 100, 1_000, 10_000)},
    **{f"efficiency-{n}": f"Label efficiency, {n:,} of 10,000" for n in (10, 100, 1_000)},
}
OTHERS = {  # in nats, or counted
    "index-code-mi": "Index-code mutual information",
    "total-correlation": "Total correlation",
    "dimension-wise-kl": "Dimension-wise KL",
    "gaussian-tc": "Total correlation, as if Gaussian",
    "gaussian-wasserstein": "Wasserstein correlation, as if Gaussian",
    "gaussian-wasserstein-norm": "The same over the total variance",
    "mean-mi": "Mutual information of two dimensions",
    "active-units": "Active units",
}
TOLD = ("representation", "n", "train", "test", "bins", "seed")  # settings of a score that a reader asks for
HEADLINE = (
    "elbo",
    "distortion",
    "rate",
    "log_likelihood",
    "log_likelihood_posthoc",
    "perplexity",
    "perplexity_posthoc",
    "active_units",
    "mutual_information",
    "bits_per_dim",
)


def measured(run: Run) -> dict[str, Any]:
    """metrics.json, if it is of the step that the run is at; else measured now with modest settings."""
    kept = run.measured
    if "elbo" in kept:
        return kept
    return run.evaluate(samples=50, most=1000)  # as many rows as IW-K looks at, so that the two compare


def numbers(metrics: Mapping[str, Any]) -> Iterator[tuple[str, Result]]:
    """Every number in the metrics but the scores of codes, under its name."""
    for name, entry in metrics.items():
        if "estimator" in entry:
            yield name, Result.from_json(name, entry)


def rounded(value: float, error: float | None = None) -> str:
    """A value with as many digits as its error leaves it, or four."""
    if error and math.isfinite(error) and error > 0:
        return _to(value, _places(error)).replace("-", MINUS)
    text = f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 1e4 else f"{value:.4g}"
    return text.replace("-", MINUS)


def two(error: float) -> str:
    """An error with two digits, written out: 640, 6.4, 0.064."""
    return _to(error, _places(error)) if math.isfinite(error) and error > 1e-6 else f"{error:.2g}"


def _places(error: float) -> int:
    """The place behind the point, or before it, that the second digit of an error stands at; at most 6."""
    return min(6, 1 - math.floor(math.log10(error)))


def _to(value: float, places: int) -> str:
    return f"{round(value, places) + 0.0:,.{max(0, places)}f}"


def at_ceiling(number: Result) -> str:
    """What is said beside an estimate of information that so few rows let grow no further, or nothing."""
    ceiling, is_information = number.parts.get("ceiling"), number.unit == "nats" or number.metric == "index-code-mi"
    if not is_information or not isinstance(ceiling, float) or number.value is None:
        return ""
    return "at its ceiling (log n): too few rows" if number.value > ceiling - MARGIN else ""


def remarks(number: Result) -> tuple[str, ...]:
    """What is said beside a value."""
    return tuple(filter(None, (*number.remarks, at_ceiling(number))))


@dataclass(frozen=True)
class Card:
    """A key number, as it stands in the row above all figures."""

    title: str
    value: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Meter:
    """A score on a line from 0 to 1, with its interval."""

    at: float
    low: float
    high: float


@dataclass(frozen=True)
class Row:
    """A number in a table."""

    title: str
    value: str
    estimator: str
    settings: str
    unit: str = ""
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # on the errors
    meter: Meter | None = None


def headline(metrics: Mapping[str, Any]) -> list[Card]:
    """The row of key numbers; those that the model cannot have are in the table, with the reason."""
    found = dict(numbers(metrics))
    return [_card(name, found[name]) for name in HEADLINE if name in found and found[name].value is not None]


def _card(name: str, number: Result) -> Card:
    notes = [number.unit, *_errors(number), *remarks(number)]
    notes += [f"ceiling {number.parts['ceiling']:.2f}"] if isinstance(number.parts.get("ceiling"), float) else []
    of = f" of {number.settings['split']}" if "split" in number.settings else ""
    notes += [f"n = {number.settings['n']:,}{of}"] if "n" in number.settings else []
    # an importance-weighted bound goes by its estimator, since its K is part of what it is
    is_bound = name == "log_likelihood" and number.estimator.startswith("iw-")
    return Card(number.estimator.upper() if is_bound else _title(name), _value(number), tuple(notes))


def table(metrics: Mapping[str, Any]) -> list[Row]:
    """All numbers."""
    rows = []
    for name, number in numbers(metrics):
        settings = ", ".join(f"{k} {_plain(v)}" for k, v in number.settings.items())
        said, unit = settings or number.reason, number.unit or number.reason
        notes = (*remarks(number), *_beside(number))
        rows.append(Row(_title(name), _value(number), number.estimator, said, unit, _errors(number), notes))
    return rows


def _beside(number: Result) -> Iterator[str]:
    """The ends of the scale of a number, where they were measured: copies of the input, and answers of people."""
    for name, end in (number.parts.get("beside") or {}).items():
        if end is not None:
            yield f"{name} {rounded(end)}"


def _title(name: str) -> str:
    return NAMES.get(name, name.replace("_", " ").capitalize())


def _value(number: Result) -> str:
    return "—" if number.value is None else rounded(number.value, number.errors.get("sampling"))


def _errors(number: Result) -> tuple[str, ...]:
    return tuple(f"± {two(error)} {name.replace('_', ' ')}" for name, error in number.errors.items())


def score_table(metrics: Mapping[str, Any]) -> list[Row]:
    """The scores of the codes, those of a known place first, each with its interval where that was measured."""
    found = {name: entry for name, entry in metrics.items() if isinstance(entry, Mapping) and "mode" in entry}
    known = [*SCORES, *OTHERS]
    return [_score(name, found[name]) for name in [*known, *sorted(found.keys() - set(known))] if name in found]


def _score(name: str, entry: Mapping[str, Any]) -> Row:
    value, spread, parts, kind = entry["value"], entry.get("interval"), entry.get("parts", {}), name.split(" ")[0]
    said = [f"{key} {_plain(entry['settings'][key])}" for key in TOLD if key in entry.get("settings", {})]
    said += [
        f"{key} {parts[key]:.3f}" for key in ("completeness", "informativeness") if isinstance(parts.get(key), float)
    ]
    said += [f"at most {parts['ceiling']:.3f}"] if isinstance(parts.get("ceiling"), float) else []
    error = parts.get("standard_error")
    errors, notes = _interval(spread, error if isinstance(error, float) else None)
    notes += remarks(Result.from_json(name, entry))
    return Row(
        (SCORES | OTHERS).get(kind, kind.replace("-", " ")), "—" if value is None else _three(value), entry["mode"],
        entry.get("reason") or ", ".join(said), errors=errors, notes=notes,
        meter=_meter(value, spread) if kind in SCORES and value is not None else None,
    )  # fmt: skip


def _interval(spread: Mapping[str, Any] | None, error: float | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """An interval with the rule that made it; or the standard error, where that came for nothing."""
    if spread is None:
        return (() if error is None else (f"± {two(error)} standard error",)), ()
    notes = [f"{spread.get('how', '')}, n = {spread.get('n', 0):,}"]
    notes += [f"mean {_three(spread['mean'])}"] if "mean" in spread else []
    return (f"{_three(spread['low'])} to {_three(spread['high'])}",), tuple(notes)


def _meter(value: float, spread: Mapping[str, Any] | None) -> Meter:
    ends = (spread["low"], spread["high"]) if spread else (value, value)
    return Meter(*(min(1.0, max(0.0, v)) for v in (value, *ends)))


def _three(value: float) -> str:
    """Three digits behind the point, none for what is counted."""
    return (f"{value:.3f}" if abs(value) < 100 and not float(value).is_integer() else f"{value:,.4g}").replace(
        "-", MINUS
    )


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return " and ".join(map(_plain, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
