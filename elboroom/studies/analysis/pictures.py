"""What a study shows of its runs themselves: their curves, and what the best of them make of images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from elboroom.core.problem import Problem
from elboroom.evaluate.robustness import FLIPS, domain_shift, elbo_per_example, noise
from elboroom.plots import images, latent
from elboroom.plots.codes import Codes
from elboroom.plots.curves import thousands
from elboroom.plots.pictures import Pixels
from elboroom.plots.robustness import flips, shift
from elboroom.plots.style import MUTED, small_multiples, styled
from elboroom.runs.lifecycle import load
from elboroom.runs.run import Run
from elboroom.studies.analysis.charts import MANY, Drawn
from elboroom.studies.analysis.scores import Floats, Scores
from elboroom.studies.analysis.table import Row
from elboroom.training.recorder import read_log

POINTS = 120  # of a curve
Curve = tuple[Floats, Floats]  # steps, values
RAMP = ("#9ecae1", "#6baed6", "#3182bd", "#08519c", "#06315f", "#021a33")  # from weak to strong


def terms(log: Sequence[dict[str, float]]) -> dict[str, Curve]:
    """Distortion and rate by step: the rate is kl, or the three parts that add up to it."""
    found: dict[str, Curve] = {}
    names = list(dict.fromkeys(name for line in log for name in line))
    parts = [name for name in names if name.startswith(("mi_", "tc_", "dwkl_"))]
    for title, keys in (("nll", ["nll"]), ("rate", ["kl"] if "kl" in names else parts if len(parts) == 3 else ["kl"])):
        lines = [line for line in log if all(key in line for key in keys)]
        if lines:
            thin = lines[:: max(1, len(lines) // POINTS)]
            values = [sum(line[key] for key in keys) for line in thin]
            found[title] = np.array([line["step"] for line in thin]), np.array(values)
    return found


def training(scores: Scores, folder: Path) -> Drawn:
    """Distortion and rate over training, a line a run, darker for stronger settings."""
    curves = {run["run"]: terms(read_log(folder / "runs" / run["run"] / "log.jsonl")) for run in scores.runs}
    rows = [
        {
            "run": run["run"],
            "method": run["method"],
            "setting": run["setting"],
            "term": term,
            "step": int(s),
            "value": v,
        }
        for run in scores.runs
        for term, (steps, values) in curves[run["run"]].items()
        for s, v in zip(steps.tolist(), values.tolist(), strict=True)
    ]
    if not rows:
        raise Problem("the runs have no training log yet")
    return _training(scores, curves), rows


@styled
def _training(scores: Scores, curves: dict[str, dict[str, Curve]]) -> Figure:
    methods, titles = scores.methods, ("nll", "rate")
    figure, axes = small_multiples(len(titles) * len(methods), len(methods), height=1.6)
    for number, ax in enumerate(axes):
        title, method = titles[number // len(methods)], methods[number % len(methods)]
        order = [setting for setting, _ in scores.settings(method)]
        late: list[float] = []
        for run in scores.runs:
            if run["method"] == method and title in curves[run["run"]]:
                steps, values = curves[run["run"]][title]
                shade = RAMP[round(order.index(run["setting"]) * (len(RAMP) - 1) / max(1, len(order) - 1))]
                ax.plot(steps, values, color=shade, linewidth=0.8, alpha=0.8, rasterized=len(scores.runs) > MANY)
                late += values[len(values) // 10 :].tolist()
        if late:
            pad = 0.08 * (max(late) - min(late)) or 1.0
            ax.set_ylim(min(late) - pad, max(late) + pad)  # the first steps dwarf all others
        ax.xaxis.set_major_locator(MaxNLocator(3, integer=True))
        ax.xaxis.set_major_formatter(FuncFormatter(thousands))
        ax.yaxis.set_major_locator(MaxNLocator(3))
        if number < len(methods):
            ax.set_title(method)
        if number % len(methods) == 0:
            ax.set_ylabel(f"{title}, nats")
    ends = [Line2D([], [], color=RAMP[0], label="weakest setting"), Line2D([], [], color=RAMP[-1], label="strongest")]
    figure.legend(handles=ends, loc="outside lower center", ncols=2, labelcolor=MUTED)
    return figure


def opened(folder: Path, name: str) -> Run:
    """A run of a study, to be looked at."""
    return load(folder / "runs" / name)


def traversal(run: Run) -> Drawn:
    """One row a dimension, as in the report of a run; its data are the dimensions shown."""
    codes = Codes.of(run, 2000)
    figure = images.traversals(run, codes)
    rates = codes.rate if codes.rate is not None else codes.variance
    kind = "rate" if codes.rate is not None else "variance of the mean"
    return figure, [
        {"run": run.folder.name, "row": row, "dimension": j, kind: float(rates[j])}
        for row, j in enumerate(codes.order[:12])
    ]


def flipped(run: Run) -> Drawn:
    """Inputs with more and more flipped pixels above their reconstructions; its data are drift and overlap."""
    figure = flips(run)
    found = noise(run.model, run.examples(10), FLIPS)
    return figure, [
        {"run": run.folder.name, "share": s, "drift": r.drift, "overlap": r.overlap} for s, r in found.items()
    ]


def shifted(run: Run) -> Drawn:
    """A triangle that was never seen, and inverted images; its data are drift, overlap and the rank of the ELBO."""
    figure = shift(run)
    split = run.split(most=1000)
    known = [elbo_per_example(run.model, batch) for batch in split.batches()] if split.has_density else []
    found = domain_shift(run.model, run.examples(8), np.concatenate([np.zeros(0), *known]))
    return figure, [
        {"run": run.folder.name, "input": name, "drift": r.drift, "overlap": r.overlap, "elbo above": r.rank}
        for name, r in found.items()
    ]


def of_best(run: Run, n: int) -> list[tuple[str, str, str, bool, Callable[[], Drawn]]]:
    """What a study shows of its best run beside traversals: name, title, caption, whether it is a chart, how it is drawn."""
    if not run.latent:
        raise Problem(f"{run.spec.method} has no z")
    codes = Codes.of(run, n)
    return [
        ("reconstructions", "Reconstructions", "Inputs, their outputs and the signed difference: only edges should show "
         "colour.", False, lambda: (images.reconstructions(run), _errors(run))),
        ("samples", "Prior samples", "Images decoded from draws of the prior: they should look like the data, and differ "
         "from one another.", False, lambda: (images.samples(run), _brightness(run.sample(25)))),
        ("densities", "Pixel means", f"The mean of {n:,} samples beside that of the data.", False,
         lambda: (images.densities(run, n), _pixel_means(run, n))),
        ("aggregate", "Aggregate posterior", "Draws of q(z|x) by dimension, the prior as a line.", True,
         lambda: (latent.aggregate(run, codes), _dimensions(codes))),
        ("collapse", "Active and passive dimensions", "Passive dimensions have means near 0 and deviations near 1; active "
         "ones have wide means and small deviations.", True, lambda: (latent.collapse(run, codes), _dimensions(codes))),
    ]  # fmt: skip


def _brightness(images: Pixels) -> list[Row]:
    return [{"sample": i, "mean pixel": float(image.mean())} for i, image in enumerate(images)]


def _errors(run: Run) -> list[Row]:
    x = run.examples(10)
    squared = ((run.reconstruct(x) - x.x.numpy()) ** 2).sum((1, 2, 3))
    return [{"image": i, "squared error": float(error)} for i, error in enumerate(squared)]


def _pixel_means(run: Run, n: int) -> list[Row]:
    real, made = run.examples(n).x.numpy().mean(0), run.sample(n).mean(0)
    places = np.ndindex(*real.shape)
    return [{"channel": c, "row": i, "column": j, "data": float(real[c, i, j]), "samples": float(made[c, i, j])}
            for c, i, j in places]  # fmt: skip


def _dimensions(codes: Codes) -> list[Row]:
    """Of each dimension, how its mean and deviation lie."""
    rows = []
    for j in codes.order:
        row: Row = {
            "dimension": j,
            "mean of mean": float(codes.mean[:, j].mean()),
            "variance of mean": float(codes.variance[j]),
        }
        row["mean deviation"] = None if codes.stddev is None else float(codes.stddev[:, j].mean())
        rows.append(
            row | {"rate": None if codes.rate is None else float(codes.rate[j]), "active": bool(codes.active[j])}
        )
    return rows
