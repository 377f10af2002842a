"""The numbers of a run as a page shows them: the headline row, and the table of all with estimator, settings and errors."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from elboroom.evaluate.result import Result
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
    path = run.folder / "metrics.json"
    try:
        kept: dict[str, Any] = json.loads(path.read_text())
        if kept["run"]["step"] == run.step and "elbo" in kept:
            return kept
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return run.evaluate(samples=50, most=1000)  # as many rows as IW-K looks at, so that the two compare


def numbers(metrics: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Result]]:
    """Every number in the metrics, however deep, under its name."""
    for name, entry in metrics.items():
        if isinstance(entry, Mapping) and "value" in entry and "estimator" in entry:
            yield prefix + name, Result.from_json(name, entry)
        elif isinstance(entry, Mapping) and name != "run":
            yield from numbers(entry, f"{prefix}{name} ")


def rounded(value: float, error: float | None = None) -> str:
    """A value with as many digits as its error leaves it, or four."""
    if error and math.isfinite(error) and error > 0:
        digits = max(0, 1 - math.floor(math.log10(error)))
        return f"{value:,.{min(digits, 6)}f}".replace("-", MINUS)
    text = f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 1e4 else f"{value:.4g}"
    return text.replace("-", MINUS)


def title(name: str, number: Result) -> str:
    """As shown: an importance-weighted bound goes by its estimator, since its K is part of what it is."""
    if name == "log_likelihood" and number.estimator.startswith("iw-"):
        return number.estimator.upper()
    return NAMES.get(name, name.replace("_", " ").capitalize())


def headline(metrics: Mapping[str, Any]) -> str:
    """The row of key numbers; those that the model cannot have are in the table, with the reason."""
    found = dict(numbers(metrics))
    return "".join(_card(name, found[name]) for name in HEADLINE if name in found and found[name].value is not None)


def _card(name: str, number: Result) -> str:
    assert number.value is not None
    value = rounded(number.value, number.errors.get("sampling"))
    notes = [number.unit, *(f"± {e:.2g} {n.replace('_', ' ')}" for n, e in number.errors.items())]
    notes += [f"ceiling {number.parts['ceiling']:.2f}"] if "ceiling" in number.parts else []
    of = f" of {number.settings['split']}" if "split" in number.settings else ""
    notes += [f"n = {number.settings['n']:,}{of}"] if "n" in number.settings else []
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


def scores(metrics: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The scores of the codes by their names, those of a known place first."""
    found = {name: entry for name, entry in metrics.items() if isinstance(entry, Mapping) and "mode" in entry}
    known = [*SCORES, *OTHERS]
    return {name: found[name] for name in [*known, *sorted(found.keys() - set(known))] if name in found}


def score_table(metrics: Mapping[str, Any]) -> str:
    """The scores of the codes, each with its interval where that was measured."""
    rows = []
    for name, entry in scores(metrics).items():
        value, spread, parts, kind = entry["value"], entry.get("interval"), entry.get("parts", {}), name.split(" ")[0]
        said = [f"{key} {_plain(entry['settings'][key])}" for key in TOLD if key in entry.get("settings", {})]
        said += [f"{key} {parts[key]:.3f}" for key in ("completeness", "informativeness") if parts.get(key) is not None]
        said += [f"at most {parts['ceiling']:.3f}"] if isinstance(parts.get("ceiling"), float) else []
        rows.append(
            f"<tr><th scope='row'>{escape((SCORES | OTHERS).get(kind, kind.replace('-', ' ')))}</th>"
            f"<td class='value'>{'—' if value is None else _three(value)}</td>"
            f"<td>{_meter(value, spread) if kind in SCORES and value is not None else ''}</td>"
            f"<td class='errors'>{_interval(spread, parts.get('standard_error'))}</td>"
            f"<td><code>{escape(entry['mode'])}</code></td>"
            f"<td class='muted'>{escape(entry.get('reason') or ', '.join(said))}</td></tr>"
        )
    names = ("", "value", "0 to 1", "interval", "mode", "settings")
    head = "".join(f"<th scope='col'>{text}</th>" for text in names)
    return f"<div class='wide'><table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"


def _interval(spread: Mapping[str, Any] | None, error: float | None) -> str:
    """An interval with the rule that made it; or the standard error, where that came for nothing."""
    if spread is None:
        return "" if error is None else f"± {error:.2g} standard error"
    how = f"{escape(spread['how'])}, n = {spread['n']:,}"
    how += f"<br>mean {_three(spread['mean'])}" if "mean" in spread else ""
    return f"{_three(spread['low'])} to {_three(spread['high'])}<br><span class='muted'>{how}</span>"


def _meter(value: float, spread: Mapping[str, Any] | None) -> str:
    """A score on a line from 0 to 1, with its interval."""
    low, high = (min(1.0, max(0.0, v)) for v in ((spread["low"], spread["high"]) if spread else (value, value)))
    at = min(1.0, max(0.0, value))
    return (
        "<svg class='meter' viewBox='-3 0 106 10' aria-hidden='true'><path class='track' d='M0 5H100'/>"
        f"<path class='span' d='M{100 * low:.1f} 5H{100 * high:.1f}'/><circle cx='{100 * at:.1f}' cy='5' r='2.6'/></svg>"
    )


def _three(value: float) -> str:
    """Three digits behind the point, none for what is counted."""
    return (f"{value:.3f}" if abs(value) < 100 and not float(value).is_integer() else f"{value:,.4g}").replace(
        "-", MINUS
    )


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return " and ".join(map(_plain, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
