"""The numbers of a run as a page shows them: the headline row, and the table of all with estimator, settings and errors."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from elboroom.evaluate.number import Number
from elboroom.plots.style import MINUS
from elboroom.run import Run

NAMES = {
    "elbo": "ELBO",
    "distortion": "Distortion",
    "rate": "Rate",
    "log_likelihood": "Log-likelihood",
    "mutual_information": "Mutual information",
    "active_units": "Active units",
    "bits_per_dim": "Bits per dimension",
    "squared_error": "Squared error",
    "rate_per_dim": "Rate, summed over dimensions",
}
HEADLINE = ("elbo", "distortion", "rate", "log_likelihood", "active_units", "mutual_information", "bits_per_dim")


def measured(run: Run) -> dict[str, Any]:
    """metrics.json, if it is of the step that the run is at; else measured now with modest settings."""
    path = run.folder / "metrics.json"
    try:
        kept: dict[str, Any] = json.loads(path.read_text())
        if kept["run"]["step"] == run.step:
            return kept
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return run.evaluate(samples=50, most=1000)  # as many rows as IW-K looks at, so that the two compare


def numbers(metrics: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Number]]:
    """Every number in the metrics, however deep, under its name."""
    for name, entry in metrics.items():
        if isinstance(entry, Mapping) and "value" in entry and "estimator" in entry:
            yield (
                prefix + name,
                Number(**{"unit": "", **{k: v for k, v in entry.items() if k in Number.__dataclass_fields__}}),
            )
        elif isinstance(entry, Mapping) and name != "run":
            yield from numbers(entry, f"{prefix}{name} ")


def rounded(value: float, error: float | None = None) -> str:
    """A value with as many digits as its error leaves it, or four."""
    if error and math.isfinite(error) and error > 0:
        digits = max(0, 1 - math.floor(math.log10(error)))
        return f"{value:,.{min(digits, 6)}f}".replace("-", MINUS)
    text = f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 1e4 else f"{value:.4g}"
    return text.replace("-", MINUS)


def title(name: str, number: Number) -> str:
    """As shown: an importance-weighted bound goes by its estimator, since its K is part of what it is."""
    if number.estimator.startswith("iw-"):
        return number.estimator.upper()
    return NAMES.get(name, name.replace("_", " ").capitalize())


def headline(metrics: Mapping[str, Any]) -> str:
    """The row of key numbers; those that the model cannot have are in the table, with the reason."""
    found = dict(numbers(metrics))
    return "".join(_card(name, found[name]) for name in HEADLINE if name in found and found[name].value is not None)


def _card(name: str, number: Number) -> str:
    assert number.value is not None
    value = rounded(number.value, number.errors.get("sampling"))
    notes = [number.unit, *(f"± {e:.2g} {n.replace('_', ' ')}" for n, e in number.errors.items())]
    notes += [f"ceiling {number.parts['ceiling']:.2f}"] if "ceiling" in number.parts else []
    notes += [f"n = {number.settings['n']:,}"] if "n" in number.settings else []
    small = "".join(f"<span>{escape(note)}</span>" for note in notes)
    return f'<div class="number"><h3>{escape(title(name, number))}</h3><p>{value}</p>{small}</div>'


def table(metrics: Mapping[str, Any]) -> str:
    """All numbers."""
    rows = []
    for name, number in numbers(metrics):
        value = "—" if number.value is None else rounded(number.value, number.errors.get("sampling"))
        errors = "<br>".join(f"± {e:.2g} {escape(n.replace('_', ' '))}" for n, e in number.errors.items())
        settings = ", ".join(f"{k} {_plain(v)}" for k, v in number.settings.items())
        rows.append(
            f"<tr><th scope='row'>{escape(NAMES.get(name, name.replace('_', ' ').capitalize()))}</th>"
            f"<td class='value'>{value}</td><td>{escape(number.unit or number.reason)}</td><td class='errors'>{errors}</td>"
            f"<td><code>{escape(number.estimator)}</code></td><td class='muted'>{escape(settings or number.reason)}</td></tr>"
        )
    head = "".join(f"<th scope='col'>{text}</th>" for text in ("", "value", "unit", "errors", "estimator", "settings"))
    return f"<div class='wide'><table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"


def _plain(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
