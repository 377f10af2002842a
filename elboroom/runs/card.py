"""The card of a run: what a notebook shows of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import escape

from elboroom.core.problem import Problem
from elboroom.evaluate.result import Result
from elboroom.evaluate.verdicts import of_metrics

if TYPE_CHECKING:
    from elboroom.runs.run import Run

SHOWN = ("elbo", "log_likelihood", "perplexity", "rate", "active_units")


def card(run: Run) -> str:
    """Method, data, step and size, the numbers that were measured and what they mean, and how to look into it, as HTML."""
    spec, about = run.spec, run.spec.about
    rows = {
        "loss": spec.card.formula,
        "data": f"{about.name}, {about.n:,} training examples",
        "trained": f"{run.step:,} steps, {run.parameters:,} parameters, {run.latent} latent dimensions",
        "folder": str(run.folder),
    }
    try:
        measured = run.measured
    except Problem:
        measured = {}
    for name in SHOWN:
        if measured.get(name, {}).get("value") is not None:
            rows[name.replace("_", " ")] = str(Result.from_json(name, measured[name]))
    if run.latent or run.model.conditioner is not None:
        rows["look into it"] = "run.explore() opens its explorer here; elbo explore, the same in a browser"
    lines = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{escape(text)}</td></tr>"
        for name, text in rows.items()
    )
    told = "".join(f"<p>{escape(sentence)}</p>" for sentence in of_metrics(measured))
    return f"<div><b>{escape(spec.title)}</b><table>{lines}</table>{told}</div>"
