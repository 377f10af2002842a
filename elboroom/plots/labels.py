"""Label efficiency: how well factors are predicted from codes, by the number of labels."""

from __future__ import annotations

from matplotlib.figure import Figure

from elboroom.evaluate.codes import code_table
from elboroom.evaluate.downstream import SIZES, downstream
from elboroom.plots.style import FIRST, MUTED, SECOND, styled
from elboroom.run import Run


@styled
def label_efficiency(run: Run) -> Figure:
    """Mean test accuracy over the factors for 10 to 10,000 labels, by logistic regression; chance as a line."""
    source = code_table(run).source
    sizes = [size for size in SIZES if size + 5000 <= len(run.data)]
    found = downstream(source, mode="logistic", sizes=sizes)
    scores = [found[f"downstream-{size}"] for size in sizes]
    figure = Figure(figsize=(4.6, 3.0), layout="constrained")
    ax = figure.subplots()
    ax.plot(sizes, [s.value or 0.0 for s in scores], color=FIRST, marker="o", markersize=4, label="test")
    ax.plot(sizes, [s.parts["train"] for s in scores], color=SECOND, marker="o", markersize=4, label="training")
    chance = scores[0].parts["chance"]
    ax.axhline(sum(chance) / len(chance), color=MUTED, linestyle="--", linewidth=0.9, label="chance")
    ax.set_xscale("log")
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("labels")
    ax.set_ylabel("mean accuracy over factors")
    ax.legend(loc="upper left")
    return figure
