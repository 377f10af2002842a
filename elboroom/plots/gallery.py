"""The gallery: every figure that a run can have, each with a title and a sentence that says what to look for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from elboroom.core.problem import Problem
from elboroom.families.gaussian import NoPrior
from elboroom.plots import images, latent, robustness
from elboroom.plots.attributes import attributes
from elboroom.plots.codes import Codes
from elboroom.plots.curves import curves
from elboroom.plots.labels import label_efficiency
from elboroom.plots.sentences import Rows, code_map, strips
from elboroom.plots.style import MINUS, save
from elboroom.runs.run import Run

Plan = tuple[str, str, str, bool, Callable[[], Figure]]

# what only images have
PICTURES = {"reconstructions", "traversals", "samples", "densities", "interpolations", "attributes", "flips", "shift"}


@dataclass(frozen=True)
class Exhibit:
    """A figure in its frame; where the model cannot have it, the reason stands in its place."""

    name: str
    title: str
    caption: str
    chart: bool  # lines and bars, so kept as SVG too; else pixels
    figure: Figure | None = None
    reason: str = ""
    rows: Rows = ()  # sentences in place of a figure

    def save(self, folder: Path) -> list[Path]:
        """Writes NAME.png, and NAME.svg for charts."""
        if self.figure is None:
            return []
        return [save(self.figure, folder / f"{self.name}{suffix}") for suffix in (".png", ".svg")[: 1 + self.chart]]


def gallery(run: Run, n: int = 10_000) -> Iterator[Exhibit]:
    """The exhibits of a run, drawn one after the other; n is how many codes and samples are looked at."""
    if not run.latent:
        yield from _spoken(run)
        return
    codes = Codes.of(run, n)
    rows = f"{len(codes.split.rows):,} examples of {codes.split.name}"
    ranked = "variance of the mean" if codes.rate is None else "mean KL"
    against = (
        "where it departs from the line, p(z), samples of the prior are unlike codes of data"
        if not isinstance(run.model.prior, NoPrior)
        else "look for several modes and for long tails"
    )
    plan: list[Plan] = [
        (
            "curves",
            "Training",
            "Every term in nats per example, by step; weights that move are drawn in the second colour. "
            "Look for terms that still fall at the end, and for a KL that drops to zero.",
            True,
            lambda: curves(run),
        ),
        (
            "reconstructions",
            "Reconstructions",
            f"Inputs from {codes.split.name}, their outputs and the signed difference: only edges should show colour, "
            "a whole object in colour was misplaced or missed.",
            False,
            lambda: images.reconstructions(run),
        ),
        (
            "traversals",
            "Traversals",
            f"Each row moves one dimension and keeps all others, ordered by {ranked}: a row that changes one thing only "
            "has found a factor, a row that changes nothing is unused.",
            False,
            lambda: images.traversals(run, codes),
        ),
        (
            "samples",
            "Prior samples",
            "Images decoded from draws of the prior: they should look like the data, and differ from one another.",
            False,
            lambda: images.samples(run),
        ),
        (
            "densities",
            "Pixel means",
            f"The mean of {n:,} samples beside that of the data: colour in the difference is where the prior puts "
            "too much (orange) or too little (blue).",
            False,
            lambda: images.densities(run, n),
        ),
        (
            "interpolations",
            "Interpolations",
            "The shortest way between the codes of two inputs: look for shapes that stay whole along the way, "
            "rather than one image fading into the other.",
            False,
            lambda: images.interpolations(run),
        ),
        (
            "rates",
            "Rate by dimension",
            f"The mean KL of each dimension over {rows}; active dimensions, whose mean varies with x, are in colour.",
            True,
            lambda: latent.rates(run, codes),
        ),
        (
            "aggregate",
            "Aggregate posterior",
            f"Draws of q(z|x) over {rows}, by dimension: {against}.",
            True,
            lambda: latent.aggregate(run, codes),
        ),
        (
            "activity",
            "Collapse: active and passive dimensions",
            f"{_counted(codes)}: passive ones have means near 0 and deviations near 1 (dashed), active ones wide means and "
            "small deviations. Each density is scaled to its peak.",
            True,
            lambda: latent.activity(run, codes),
        ),
        (
            "pairs",
            "Codes in pairs",
            "Means of q(z|x) in the first dimensions: look for clusters, holes, and shapes that are not axis-aligned.",
            False,
            lambda: latent.pairs(run, codes),
        ),
        (
            "attributes",
            "Attributes",
            f"One image edited along the vector of each {next(iter(run.data.about.labels), 'label')}, from taken away "
            f"({MINUS}2) over kept (0) to added twice (+2); beside it how often the vector tells that value from the others, "
            "and in brackets how often a constant answer does.",
            False,
            lambda: attributes(run),
        ),
        (
            "flips",
            "Flipped pixels",
            "Ever more pixels flipped, each row of inputs above its outputs: drift is how far the codes move, in deviations of "
            "the prior, IoU how much of the clean object is left.",
            False,
            lambda: robustness.flips(run),
        ),
        (
            "shift",
            "Domain shift",
            "A triangle, which was never seen, decoded while one dimension moves, and inverted images above their outputs: the "
            "model draws what it knows. Where it notices, its ELBO is above few of the data.",
            False,
            lambda: robustness.shift(run),
        ),
        (
            "labels",
            "Label efficiency",
            "How well the factors are predicted from the codes by number of labels: the sooner the line of the test points "
            "rises, the fewer labels do.",
            True,
            lambda: label_efficiency(run),
        ),
    ]
    if run.tokeniser is not None:
        yield from _spoken(run)
        about = (
            "The codes of some sentences by t-SNE, coloured by their first label: what lies together has like codes."
        )
        plan = [*plan[1:], ("map", "Map of the codes", about, False, lambda: code_map(run))]
    absent = set() if run.spec.about.kind == "pixels" else set(PICTURES)
    absent |= set() if run.data.about.labels else {"attributes"}
    absent |= (
        set() if any(name.startswith("downstream-") for name in run.measured) else {"labels"}
    )  # minutes to measure
    for name, title, caption, chart, draw in plan:
        if name in absent:
            continue
        try:
            yield Exhibit(name, title, caption, chart, draw())
        except Problem as problem:
            yield Exhibit(name, title, caption, chart, reason=str(problem))


def _spoken(run: Run) -> Iterator[Exhibit]:
    """The curves, and what a model of text says."""
    about = (
        "Every term in nats per sentence, by step; weights that move are drawn in the second colour. "
        "Look for terms that still fall at the end, and for a KL that drops to zero."
    )
    yield Exhibit("curves", "Training", about, True, curves(run))
    for strip in strips(run):
        yield Exhibit(strip.name, strip.title, strip.caption, False, rows=strip.rows)


def _counted(codes: Codes) -> str:
    """How many dimensions are active, as a sentence begins."""
    count, total = int(codes.active.sum()), len(codes.active)
    return f"{count} of {total} dimensions {'is' if count == 1 else 'are'} active"
