"""The exhibits of a study: every figure with a title, a sentence that says what to look for, and the rows behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from elboroom.core.problem import Problem
from elboroom.plots.exhibit import Exhibit
from elboroom.studies.analysis import charts, pictures, relations
from elboroom.studies.analysis.charts import Drawn
from elboroom.studies.analysis.scores import Scores
from elboroom.studies.analysis.summary import digits
from elboroom.studies.analysis.table import as_csv


def exhibits(scores: Scores, folder: Path, tail: str, score: str | None, n: int) -> Iterator[Exhibit]:
    """The figures of a study on one data set, drawn one after the other."""
    by = scores.headline(score)
    seeds = len({run["seed"] for run in scores.runs})
    plan: list[tuple[str, str, str, Callable[[], Drawn]]] = [
        ("violins", "Scores by method",
         f"Every point is a run, over {seeds} seeds and all strengths; the bar is the median. Where the shapes overlap, seed "
         "and strength matter more than the objective.", lambda: charts.violins(scores)),
        ("strengths", "Score against strength",
         "Every run of a method by its strength, the median as a line and the quartiles as a band. Reconstruction should "
         "get worse as the weight of the KL grows.", lambda: charts.strengths(scores)),
        ("trade-off", "Reconstruction against disentanglement",
         "One point per run, larger for stronger settings: upper left is best.",
         lambda: charts.trade_off(scores)),
        ("errors", "Scores against error per pixel",
         "The median of every setting, its strength beside it, joined from the weakest to the strongest: upper left is best. "
         "A method whose line lies above another has more of the score at the same reconstruction.",
         lambda: charts.errors(scores)),
        ("plane", "Rate-distortion plane",
         "One point per run. A line of equal ELBO trades a nat of rate for a nat of distortion; a better model lies below it.",
         lambda: charts.plane(scores)),
        ("training", "Training",
         "Distortion and KL by step, one line per run, darker for stronger settings: look for curves that still change late.",
         lambda: pictures.training(scores, folder)),
        ("correlations", "Rank correlations",
         f"Spearman's correlation over {len(scores.runs)} runs: between metrics, between them and metrics without "
         "factors, and with the accuracy of predicting factors from few or many labels. Permutation p-values are in the data.",
         lambda: relations.correlations(scores)),
        ("udr", "Agreement of seeds (UDR)",
         "How similar the codes of a run are to those of other seeds of its setting, against each metric: if the metric rises "
         "with it, it can choose a model without labels.", lambda: relations.agreement(scores)),
        ("variance", "Seed against objective",
         "The share of each metric's variance explained by the method, by its setting in addition, and by the seed "
         "(one-way ANOVA, R\N{SUPERSCRIPT TWO}).", lambda: relations.variance(scores)),
        ("labels", "Label efficiency",
         "Accuracy of predicting the factors from the codes, by the number of labels; median and quartiles of a method's runs.",
         lambda: relations.label_curves(scores)),
        ("flips", "Flipped pixels",
         "How far codes move, and how much of an image is left, with flipped pixels; median and quartiles of a method's runs.",
         lambda: relations.flip_curves(scores)),
    ]  # fmt: skip
    for name, title, caption, draw in plan:
        yield _picture(name + tail, title, caption, draw, is_chart=True)
    yield from _of_runs(scores, folder, tail, by, n)


def _of_runs(scores: Scores, folder: Path, tail: str, by: str, n: int) -> Iterator[Exhibit]:
    """Pictures of the best run of each method, and more of the best of all."""
    best = scores.best(by)
    for method in scores.methods:
        chosen = scores.best(by, method)
        if chosen is not None:
            title = f"Best traversal of {method}"
            value = scores.columns[by][[run["run"] for run in scores.runs].index(chosen["run"])]
            said = f"{chosen['setting'] or 'its only setting'}, seed {chosen['seed']}: {by} {digits(float(value))}"
            yield _picture(
                f"traversal-{method}{tail}", title, f"{said}. Each row changes one dimension, highest KL first.",
                lambda name=chosen["run"]: pictures.traversal(pictures.opened(folder, name)),  # type: ignore[misc]
            )  # fmt: skip
    if best is None:
        return
    where = f"{best['method']}, {best['setting'] or 'its only setting'}, seed {best['seed']}, the best run by {by}"
    yield _picture(
        f"flipped{tail}", "Robustness: flipped pixels", f"{where}. Inputs with flipped pixels above their "
        "reconstructions.", lambda: pictures.flipped(pictures.opened(folder, best["run"])),
    )  # fmt: skip
    yield _picture(
        f"shifted{tail}", "Robustness: an unseen shape and inverted images", f"{where}. A model that ignores its input "
        "draws what it knows.", lambda: pictures.shifted(pictures.opened(folder, best["run"])),
    )  # fmt: skip
    try:
        shown = pictures.of_best(pictures.opened(folder, best["run"]), n)
    except Problem:
        return  # said above
    for name, title, caption, is_chart, draw in shown:
        yield _picture(f"best-{name}{tail}", f"Best run: {title.lower()}", caption, draw, is_chart)


def _picture(name: str, title: str, caption: str, draw: Callable[[], Drawn], is_chart: bool = False) -> Exhibit:
    try:
        figure, rows = draw()
    except Problem as problem:
        return Exhibit(name, title, caption, reason=str(problem))
    data = as_csv(rows, list(dict.fromkeys(key for row in rows for key in row)))
    return Exhibit(name, title, caption, is_chart, figure, data=data)
