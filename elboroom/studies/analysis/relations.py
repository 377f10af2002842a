"""How the scores of a study hang together: rank correlation, variance, agreement of seeds, labels, flipped pixels."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from elboroom.core.problem import Problem
from elboroom.plots.style import INK, MINUS, MUTED, PASSIVE, SEVERAL, SIGNED, small_multiples
from elboroom.studies.analysis.charts import Drawn, chart, legend, main_metrics, plain, points, scatter, tints, title
from elboroom.studies.analysis.scores import Scores
from elboroom.studies.analysis.table import Row


@chart
def correlations(scores: Scores) -> Drawn:
    """Spearman's rank correlation of metrics with one another, and of what needs no factors, or needs labels, with them."""
    metrics = [name for name in scores.supervised if scores.varies(name)]
    if not metrics or len(scores.runs) < 3:
        raise Problem("rank correlations need three runs with metrics that use factors")
    tasks = [name for name in scores.downstream if scores.varies(name)]
    parts = [("metrics", metrics), ("no factor known", scores.unsupervised), ("prediction of factors", tasks)]
    parts = [(kind, names) for kind, names in parts if names]
    tall = [0.28 * len(names) + 0.3 for _, names in parts]
    figure = Figure(figsize=(1.9 + 0.62 * len(metrics), sum(tall) + 0.8), layout="constrained")
    rows: list[Row] = []
    axes = np.atleast_1d(figure.subplots(len(parts), 1, height_ratios=tall, sharex=True))
    for ax, (kind, names) in zip(axes, parts, strict=True):
        found = scores.correlation(names, metrics)
        ax.imshow(found.correlation, cmap=SIGNED, vmin=-1, vmax=1, aspect="auto")
        for i, one in enumerate(names):
            for j, other in enumerate(metrics):
                rho, p, n = found.correlation[i, j], found.p[i, j], int(found.n[i, j])
                rows.append({"row": one, "column": other, "spearman": plain(rho), "p": plain(p), "n": n})
                text = "" if np.isnan(rho) else _signed(rho)
                ax.text(j, i, text, ha="center", va="center", fontsize=7, color=INK if abs(rho) < 0.75 else "#ffffff")
        ax.set_yticks(range(len(names)), [title(name) for name in names])
        ax.set_title(kind)
        ax.set_xticks(
            range(len(metrics)), [title(name) for name in metrics], rotation=30, ha="right", rotation_mode="anchor"
        )
        ax.grid(visible=False)
        ax.spines[:].set_visible(False)
    return figure, rows


@chart
def variance(scores: Scores) -> Drawn:
    """How much of the variance of each metric the method explains, how much more its setting, and what is left to the seed."""
    names = [*(n for n in scores.supervised if scores.varies(n)), *(n for n in scores.unsupervised[:6])]
    shares = {name: found for name in names if (found := scores.variance(name)) is not None}
    if not shares or len({(run["method"], run["setting"]) for run in scores.runs}) == len(scores.runs):
        raise Problem("this figure needs settings with several seeds")
    figure, (ax,) = small_multiples(1, 1, height=0.5 + 0.26 * len(shares))
    one, both = np.array(list(shares.values())).T
    at = np.arange(len(shares))[::-1]
    parts = {"method": (0 * one, one), "its setting": (one, both - one), "seed": (both, 1 - both)}
    for (label, (left, width)), colour in zip(parts.items(), (SEVERAL[0], SEVERAL[1], PASSIVE), strict=True):
        bars = ax.barh(at, width, left=left, color=colour, height=0.68, label=label)
        texts = [f"{share:.0%}" if share > 0.06 else "" for share in width]
        ax.bar_label(bars, texts, label_type="center", fontsize=7, color="#ffffff" if colour == SEVERAL[0] else INK)
    ax.set_yticks(at, [title(name) for name in shares])
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:.0%}"))
    ax.grid(axis="y", visible=False)
    figure.legend(loc="outside lower center", ncols=3)
    rows = [{"metric": n, "method": a, "method and setting": b, "seed": 1 - b} for n, (a, b) in shares.items()]
    return figure, rows


@chart
def agreement(scores: Scores) -> Drawn:
    """UDR, which knows no factor, against each metric that does."""
    if "udr" not in scores.columns:
        raise Problem("UDR compares seeds of one setting; no setting has two runs with stored codes")
    names = main_metrics(scores)
    figure, axes = small_multiples(len(names), 3, height=2.1)
    for ax, name in zip(axes, names, strict=True):
        scatter(ax, scores, "udr", name)
        rho = scores.correlation(["udr"], [name], permutations=1).correlation[0, 0]
        ax.set_title(title(name))
        ax.set_title("" if np.isnan(rho) else f"\N{GREEK SMALL LETTER RHO} {_signed(rho)}", loc="right", color=MUTED)
        ax.set_xlabel("UDR")
    legend(figure, scores)
    return figure, points(scores, ["udr", *names])


@chart
def label_curves(scores: Scores) -> Drawn:
    """Accuracy of predicting the factors by number of labels: median and quartiles over the runs of a method."""
    names = [name for name in scores.downstream if name.startswith("downstream-")]
    if not names:
        raise Problem("no factors were predicted; set labels = [10, 100, 1_000, 10_000] in [measure]")
    figure, (ax,) = small_multiples(1, 1, height=3.0, width=5.6)
    sizes, colours = [int(name.split("-")[1]) for name in names], tints(scores)
    for method in scores.methods:
        columns = [scores.of_method(name, method) for name in names]
        known = [(size, np.quantile(c, (0.25, 0.5, 0.75))) for size, c in zip(sizes, columns, strict=True) if len(c)]
        if known:
            at, (low, middle, high) = [size for size, _ in known], np.array([q for _, q in known]).T
            ax.plot(at, middle, color=colours[method], marker="o", markersize=3.5)
            ax.fill_between(at, low, high, color=colours[method], alpha=0.13, linewidth=0)
    ax.set_xscale("log")
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("labels")
    ax.set_ylabel("mean accuracy over factors")
    legend(figure, scores)
    return figure, points(scores, scores.downstream)


@chart
def flip_curves(scores: Scores) -> Drawn:
    """How far codes drift and how much of the image is left as more pixels are flipped, by method."""
    kinds = {"drift": "drift of the code, sd", "overlap": "overlap, IoU"}
    names = {
        kind: sorted((n for n in scores.columns if n.startswith(f"{kind}-")), key=lambda n: float(n.split("-")[1]))
        for kind in kinds
    }
    if not names["drift"]:
        raise Problem("no pixels were flipped; set flips = true in [measure]")
    figure, axes = small_multiples(2, 2, height=2.5)
    for ax, (kind, label) in zip(axes, kinds.items(), strict=True):
        shares = [float(name.split("-")[1]) for name in names[kind]]
        for method, colour in tints(scores).items():
            columns = [scores.of_method(name, method) for name in names[kind]]
            if all(len(column) for column in columns):
                low, middle, high = np.array([np.quantile(c, (0.25, 0.5, 0.75)) for c in columns]).T
                ax.plot(shares, middle, color=colour, marker="o", markersize=3.5)
                ax.fill_between(shares, low, high, color=colour, alpha=0.13, linewidth=0)
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(FixedLocator(shares))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:.1%}"))
        ax.set_xlabel("pixels flipped")
        ax.set_ylabel(label)
    legend(figure, scores)
    return figure, points(scores, [*names["drift"], *names["overlap"]])


def _signed(rho: float) -> str:
    return f"{rho:.2f}".replace("-", MINUS)
