"""Label efficiency: how well factors are predicted from codes, by the number of labels."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from elboroom.core.problem import Problem
from elboroom.evaluate.codes import code_table
from elboroom.evaluate.downstream import SIZES, downstream
from elboroom.plots.style import FIRST, MUTED, SECOND, styled
from elboroom.runs.run import Run


@styled
def label_efficiency(run: Run) -> Figure:
    """Mean accuracy over the factors for 10 to 10,000 labels, as measured by downstream, else by logistic regression now."""
    found = _kept(run) or _measured(run)
    sizes = sorted(found)
    if not sizes:
        raise Problem(f"{len(run.data):,} examples are too few to predict factors from {min(SIZES)} labels")
    figure = Figure(figsize=(4.6, 3.0), layout="constrained")
    ax = figure.subplots()
    ax.plot(sizes, [found[s]["value"] for s in sizes], color=FIRST, marker="o", markersize=4, label="test")
    ax.plot(
        sizes, [found[s]["parts"]["train"] for s in sizes], color=SECOND, marker="o", markersize=4, label="training"
    )
    chance = found[sizes[0]]["parts"]["chance"]
    ax.axhline(sum(chance) / len(chance), color=MUTED, linestyle="--", linewidth=0.9, label="chance")
    ax.set_xscale("log")
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("labels")
    ax.set_ylabel(f"mean accuracy over factors, {found[sizes[0]]['mode']}")
    ax.legend(loc="center left")
    return figure


def _kept(run: Run) -> dict[int, dict[str, Any]]:
    """What metrics.json holds, by the number of labels."""
    kept = {size: run.measured.get(f"downstream-{size}", {}) for size in SIZES}
    return {size: score for size, score in kept.items() if score.get("value") is not None}


def _measured(run: Run) -> dict[int, dict[str, Any]]:
    """The same, measured now."""
    found = downstream(code_table(run, allow_smaller=True).source, mode="logistic")
    scores = {size: found[f"downstream-{size}"].to_json() for size in SIZES}
    return {size: score for size, score in scores.items() if score["value"] is not None}
