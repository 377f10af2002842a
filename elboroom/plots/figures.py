"""Every figure, once: what it is called and shows, what it needs, and how it is drawn.

`elbo plot` draws those that have a line in its list (`what`), the report of a run those that have a caption.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from matplotlib.figure import Figure

from elboroom.core.problem import Problem, unknown
from elboroom.families.gaussian import NoPrior
from elboroom.plots import images, latent, manifold, robustness, sentences, whole
from elboroom.plots.attributes import attributes
from elboroom.plots.codes import Codes
from elboroom.plots.curves import curves
from elboroom.plots.exhibit import Exhibit
from elboroom.plots.fits import kl_fits
from elboroom.plots.labels import label_efficiency
from elboroom.plots.plane import rate_distortion
from elboroom.plots.sentences import Sentences
from elboroom.plots.style import MINUS
from elboroom.runs.run import Run

Need = Literal["images", "text", "latent", "labels", "downstream", "style", "blocks"]
HAS: dict[Need, Callable[[Run], bool]] = {
    "images": lambda run: run.spec.about.kind == "pixels",
    "text": lambda run: run.tokeniser is not None,
    "latent": lambda run: bool(run.latent),
    "labels": lambda run: bool(run.data.about.labels),
    "style": lambda run: bool(run.styles()),
    "blocks": lambda run: bool(run.styles()) and len(run.model.blocks) > 1,
    "downstream": lambda run: any(name.startswith("downstream-") for name in run.measured),  # it takes minutes
}


@dataclass(frozen=True)
class View:
    """A run as its figures look at it: they share the codes of at most n examples."""

    run: Run
    n: int = 10_000
    label: str = ""  # which one a figure of a label shows; the first where none is said

    @cached_property
    def codes(self) -> Codes:
        """The codes, drawn when they are first looked at."""
        return Codes.of(self.run, self.n)

    @property
    def rows(self) -> str:
        """Whose codes they are."""
        return f"{len(self.codes.split.rows):,} examples of {self.codes.split.name}"


@dataclass(frozen=True)
class Plot:
    """A figure that can be drawn: of one run, which comes as a View, of several, or of none."""

    name: str
    title: str
    draw: Callable[..., Figure | Sentences]
    what: str = ""  # a line of `elbo plot list`; nothing where only reports have it
    caption: str | Callable[[View], str] = ""  # what to look for; nothing where reports do not have it
    chart: bool = False  # lines and bars, so kept as SVG too; else pixels
    needs: tuple[Need, ...] = ()  # without which a report leaves it out
    of: Literal["one run", "runs", "no run"] = "one run"
    labelled: bool = False  # whether it is of one label

    def figure(self, runs: Sequence[Run], label: str = "") -> Figure:
        """The figure of the runs given to `elbo plot`."""
        if label and not self.labelled:
            raise Problem(f"--label has no effect on {self.name}; remove it")
        if self.of == "no run" and runs:
            raise Problem(f"this figure takes no run; use: elbo plot {self.name}")
        if self.of == "one run" and len(runs) != 1:
            raise Problem(f"this figure shows one run; you gave {len(runs)}")
        drawn = self.draw(runs) if self.of == "runs" else self.draw(*(View(run, label=label) for run in runs))
        assert isinstance(drawn, Figure)
        return drawn

    def exhibit(self, view: View) -> Exhibit:
        """Drawn for a report; where that cannot be, the exhibit says why."""
        caption = self.caption if isinstance(self.caption, str) else self.caption(view)
        try:
            drawn = self.draw(view)
        except Problem as problem:
            return Exhibit(self.name, self.title, caption, self.chart, reason=str(problem))
        if isinstance(drawn, Figure):
            return Exhibit(self.name, self.title, caption, self.chart, drawn)
        return Exhibit(self.name, self.title, caption, sentences=drawn)


def gallery(run: Run, n: int = 10_000) -> Iterator[Exhibit]:
    """The exhibits of a run, drawn one after the other; n is how many codes and samples are looked at."""
    view = View(run, n)
    for plot in FIGURES:
        if plot.caption and all(HAS[need](run) for need in plot.needs):
            yield plot.exhibit(view)


def listing() -> dict[str, str]:
    """What `elbo plot` can draw: names, and a line on each."""
    return {plot.name: plot.what for plot in FIGURES if plot.what}


def named(name: str) -> Plot:
    """What `elbo plot` draws by this name."""
    for plot in FIGURES:
        if plot.what and plot.name == name:
            return plot
    raise unknown("figure", name, listing())


def exhibit(run: Run, name: str, label: str = "") -> Exhibit:
    """A figure of a run by its name; what the run cannot have is refused in a sentence."""
    known = [plot for plot in FIGURES if plot.name == name and plot.of == "one run"]
    fits = [plot for plot in known if all(HAS[need](run) for need in plot.needs)]
    if not known:
        raise unknown("figure", name, {plot.name for plot in FIGURES if plot.of == "one run"})
    if not fits:
        raise Problem(f"this run has no {name}, which needs {' and '.join(known[0].needs)}")
    if label and not fits[0].labelled:
        raise Problem(f"--label has no effect on {name}; remove it")
    drawn = fits[0].exhibit(View(run, label=label))
    if drawn.reason:
        raise Problem(drawn.reason)
    return drawn


def _of_curves(view: View) -> str:
    unit = "example" if view.run.tokeniser is None else "sentence"
    return (
        f"Every term in nats per {unit}, by step; weights that change are in the second colour. "
        "Look for terms that still fall at the end, and for a KL that drops to zero (posterior collapse)."
    )


def _of_traversals(view: View) -> str:
    ranked = "variance of the mean" if view.codes.rate is None else "mean KL"
    return (
        f"Each row changes one dimension and keeps the others, ordered by {ranked}: a row that changes one thing only "
        "has learnt a factor; a row that changes nothing is unused."
    )


def _of_aggregate(view: View) -> str:
    look = "where it differs from the line, p(z), samples from the prior are unlike the codes of the data"
    if isinstance(view.run.model.prior, NoPrior):
        look = "look for several modes and for long tails"
    return f"Draws of q(z|x) over {view.rows}, by dimension: {look}."


def _of_collapse(view: View) -> str:
    count, total = int(view.codes.active.sum()), len(view.codes.active)
    return (
        f"{count} of {total} dimensions {'is' if count == 1 else 'are'} active: passive ones have means near 0 and "
        "deviations near 1 (dashed), active ones have wide means and small deviations. Densities are scaled to their peak."
    )


FIGURES: tuple[Plot, ...] = (  # in the order of a report
    Plot(
        "curves", "Training", lambda view: curves(view.run), "every term and weight, by step", _of_curves, chart=True
    ),
    Plot(
        "samples", "Samples", lambda view: sentences.samples(view.run), needs=("text",),
        caption="Sentences decoded from z drawn from the prior: they should read like the data and differ from one "
        "another.",
    ),
    Plot(
        "reconstructions", "Reconstructions", lambda view: sentences.reconstructions(view.run), needs=("text", "latent"),
        caption=lambda view: f"Sentences from {view.run.rows()[0]}, and below each its greedy reconstruction from the mean "
        "of q(z|x): if all reconstructions are the same, the code is ignored.",
    ),
    Plot(
        "transfer", "Transfer", lambda view: sentences.transfers(view.run), needs=("text", "style"),
        caption=lambda view: f"Sentences from {view.run.rows()[0]} in every style, unselected, and below each what becomes of "
        "it in another one: the style should be the other, the content the same.",
    ),
    Plot(
        "blocks", "Style and content", lambda view: sentences.style_map(view.run),
        "blocks of z by t-SNE, coloured by the label of the style",
        "The blocks of z by t-SNE, coloured by the label that is the style, with the accuracy of a linear probe: the style "
        "should fall apart into its classes, the content should not.", needs=("blocks",),
    ),
    Plot(
        "interpolations", "Interpolations", lambda view: sentences.interpolations(view.run), needs=("text", "latent"),
        caption="The shortest path between the codes of two sentences, with their reconstructions at the ends: neighbours "
        "should be similar, and all should be sentences.",
    ),
    Plot(
        "data", "Data", lambda view: images.data(view.run, view.n), "examples of the data, and their mean",
        needs=("images",),
    ),
    Plot(
        "reconstructions", "Reconstructions", lambda view: images.reconstructions(view.run),
        "inputs, outputs and their difference", needs=("images", "latent"),
        caption=lambda view: f"Inputs from {view.codes.split.name}, their outputs and the signed difference: only edges "
        "should show colour; a whole object in colour was misplaced or missed.",
    ),
    Plot(
        "traversals", "Traversals", lambda view: images.traversals(view.run, view.codes),
        "one dimension at a time, highest KL first", _of_traversals, needs=("images", "latent"),
    ),
    Plot(
        "samples", "Prior samples", lambda view: images.samples(view.run), "images from the prior",
        "Images decoded from draws of the prior: they should look like the data, and differ from one another.",
        needs=("images", "latent"),
    ),
    Plot(
        "densities", "Pixel means", lambda view: images.densities(view.run, view.n),
        "pixel means of data and of samples", needs=("images", "latent"),
        caption=lambda view: f"Mean of {view.n:,} samples, beside that of the data: in the difference, colour shows where "
        "the prior puts too much (orange) or too little (blue).",
    ),
    Plot(
        "interpolations", "Interpolations", lambda view: images.interpolations(view.run),
        "the path from one code to another",
        "The shortest path between the codes of two inputs: look for shapes that stay whole along it, rather than one "
        "image fading into the other.", needs=("images", "latent"),
    ),
    Plot(
        "transfer", "Transfer", lambda view: images.transfers(view.run), "images in every style of a run",
        caption=lambda view: f"Images from {view.run.rows()[0]}, unselected, and beside each what becomes of it in every "
        "style: the style should be that of the column, the content that of the row.", needs=("images", "style"),
    ),
    Plot(
        "rates", "KL per dimension", lambda view: latent.rates(view.run, view.codes), "KL of each dimension",
        lambda view: f"The mean KL of each dimension over {view.rows}; active dimensions, whose mean varies with x, are in "
        "colour.", chart=True, needs=("latent",),
    ),
    Plot(
        "aggregate", "Aggregate posterior", lambda view: latent.aggregate(view.run, view.codes),
        "q(z) of each dimension against the prior", _of_aggregate, chart=True, needs=("latent",),
    ),
    Plot(
        "collapse", "Collapse: active and passive dimensions", lambda view: latent.collapse(view.run, view.codes),
        "means and standard deviations of active and passive dimensions", _of_collapse, chart=True, needs=("latent",),
    ),
    Plot(
        "dimensions", "Each dimension", lambda view: latent.dimensions(view.run, view.codes),
        "means and standard deviations of each dimension", chart=True, needs=("latent",),
    ),
    Plot(
        "pairs", "Codes in pairs", lambda view: latent.pairs(view.run, view.codes), "codes in pairs of dimensions",
        "Means of q(z|x) in the first dimensions: look for clusters, holes, and shapes that are not axis-aligned.",
        needs=("latent",),
    ),
    Plot(
        "attributes", "Attributes", lambda view: attributes(view.run, view.label),
        "edits along the attribute vector of a label, z + t w",
        lambda view: "One image edited along the vector of each "
        f"{view.label or next(iter(view.run.data.about.labels), 'label')}, from removed ({MINUS}2) over unchanged (0) to added "
        f"twice (+2). Beside it how often the vector, learnt from the training split, tells on the {view.run.rows()[0]} split "
        "whether an image has that value, and how often the commoner answer would without looking at z.",
        needs=("images", "latent", "labels"), labelled=True,
    ),
    Plot(
        "flips", "Flipped pixels", lambda view: robustness.flips(view.run), "flipped pixels: drift and overlap",
        "More and more flipped pixels, inputs above outputs: drift is how far the codes move, in standard deviations of "
        "the prior; IoU is how much of the clean object is left.", needs=("images", "latent"),
    ),
    Plot(
        "shift", "Domain shift", lambda view: robustness.shift(view.run), "an unseen triangle and inverted images",
        "An unseen triangle, decoded while one dimension changes, and inverted images above their outputs: the "
        "model draws what it knows. If it notices, few examples have a lower ELBO.", needs=("images", "latent"),
    ),
    Plot(
        "flip-traversals", "Traversals of flipped pixels", lambda view: whole.of_flips(view.run, view.codes),
        "every dimension traversed from inputs with flipped pixels", needs=("images", "latent"),
    ),
    Plot(
        "shift-traversals", "Traversals of foreign inputs", lambda view: whole.of_shift(view.run, view.codes),
        "the same from an unseen triangle and an inverted image", needs=("images", "latent"),
    ),
    Plot(
        "labels", "Label efficiency", lambda view: label_efficiency(view.run),
        "accuracy of predicting factors by number of labels",
        "Accuracy of predicting the factors from the codes, by number of labels: the sooner the test line "
        "rises, the fewer labels are needed.", chart=True, needs=("latent", "downstream"),
    ),
    Plot(
        "map", "Map of the codes", lambda view: sentences.code_map(view.run), "codes by t-SNE, coloured by a label",
        "The codes of some sentences by t-SNE, coloured by their first label: sentences close together have similar codes.",
        needs=("text", "latent"),
    ),
    Plot("map", "Map of the codes", lambda view: sentences.code_map(view.run), needs=("latent",)),  # not in reports
    Plot(
        "rate-distortion", "Rate-distortion plane", rate_distortion, "rate against distortion, one point per run", chart=True,
        of="runs",
    ),
    Plot(
        "manifold", "Codes beside other maps", lambda view: manifold.of_run(view.run),
        "codes beside PCA, MDS, Isomap, LLE, t-SNE, ...",
    ),
    Plot(
        "kl-fits", "Forward and reverse KL", kl_fits,
        "a Gaussian fitted by KL(p || q) and by KL(q || p); takes no run", chart=True, of="no run",
    ),
    Plot(
        "swiss-roll", "Swiss roll", manifold.of_roll, "the same on the Swiss roll; takes no run", of="no run"
    ),
)  # fmt: skip
