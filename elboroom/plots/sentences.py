"""What a model of text says, and maps of codes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from sklearn.manifold import TSNE

from elboroom.core.model import WHOLE
from elboroom.core.problem import Problem
from elboroom.evaluate.blocks import of_run as blocks
from elboroom.evaluate.subject import Subject
from elboroom.plots.style import FIRST, SEVERAL, styled
from elboroom.runs.run import Run
from elboroom.training.batches import batch_of

TINY = 1e-9  # of the size of codes: spread below which a dimension is constant
Sentences = tuple[tuple[str, ...], ...]


def samples(run: Run, n: int = 10) -> Sentences:
    """Sentences drawn from the prior."""
    return tuple((sentence,) for sentence in run.sample(n))


def reconstructions(run: Run, n: int = 10) -> Sentences:
    """Sentences, each with what is decoded from the mean of its code."""
    given = run.examples(n)
    assert given.index is not None
    return tuple(zip(run.data.sentences(given.index), run.reconstruct(given), strict=True))


def interpolations(run: Run, n: int = 3, points: int = 7) -> Sentences:
    """The ways between the codes of n pairs of sentences."""
    return tuple(tuple(way) for way in run.interpolate(run.examples(n), run.examples(n, seed=1), points))


def transfers(run: Run, n: int = 10) -> Sentences:
    """n sentences for each label of a run, in all of its values, each with what becomes of it in the next one."""
    found = list[tuple[str, ...]]()
    for label, values in run.styles().items():
        for k, value in enumerate(values):
            chosen = of_style(run, label, k, n // len(values) or 1)
            given, to = run.data.sentences(chosen), values[(k + 1) % len(values)]
            made = run.transfer(batch_of(run.data, chosen, run.given), {label: to}) if given else []
            found += [(f"{value}: {a}", f"{to}: {b}") for a, b in zip(given, made, strict=True)]
    return tuple(found)


def of_style(run: Run, label: str, value: int, n: int) -> NDArray[np.int64]:
    """At most n rows that have a value of a label, drawn once and the same every time."""
    rows = run.rows()[1]
    own = rows[run.data.labels[rows, list(run.data.about.labels).index(label)] == value]
    return np.random.default_rng(0).choice(own, min(n, len(own)), replace=False)


@styled
def style_map(run: Run, n: int = 1000) -> Figure:
    """t-SNE of each block of z side by side, coloured by the label of a style; above each how well a probe tells it.

    A row a label.
    """
    if len(run.model.blocks) < 2 or not run.styles():
        raise Problem(
            f"{run.spec.method} of this run has no block of style; train style-vae or style-ae for this figure"
        )
    split, parts = run.split(most=n), {name: where for name, where in run.model.blocks.items() if name != WHOLE}
    maps = {name: flattened(split.codes[0].double().numpy()[:, where]) for name, where in parts.items()}
    styles = run.styles()
    figure = Figure(figsize=(3.6 * len(parts), 3.4 * len(styles)), layout="constrained")
    for row, (label, names) in zip(figure.subfigures(len(styles), squeeze=False)[:, 0], styles.items(), strict=True):
        values = run.data.labels[split.rows, list(run.data.about.labels).index(label)]
        told = blocks(Subject(run), label=label)
        for ax, (name, xy) in zip(np.atleast_1d(row.subplots(1, len(parts))), maps.items(), strict=True):
            ax.scatter(
                xy[:, 0], xy[:, 1], s=5, c=[SEVERAL[k % len(SEVERAL)] for k in values], linewidths=0, rasterized=True
            )
            ax.set_title(f"{name}: {told[f'block-{name}'].value:.3f} of {label} told")
            ax.set_xticks([])
            ax.set_yticks([])
        if len(names) <= len(SEVERAL):
            row.legend(handles=_dots(names), title=label, loc="outside right center")
        whole = told[f"block-{WHOLE}"]
        row.supxlabel(f"all of z: {whole.value:.3f}; chance {whole.parts['majority']:.3f}")
    return figure


def flattened(codes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Codes in the plane, by t-SNE, (n, 2)."""
    perplexity = min(30.0, (len(codes) - 1) / 3)
    spread = codes.std(0)
    shown = codes[:, spread > TINY * np.abs(codes).max(initial=0)]
    if not shown.shape[1] or len(np.unique(shown, axis=0)) < 4:  # t-SNE would not survive it
        raise Problem("the codes are all but equal, so there is no map of them")
    made = TSNE(perplexity=perplexity, init="pca" if shown.shape[1] > 1 else "random", random_state=0)
    return np.asarray(made.fit_transform(shown))


def _dots(names: Sequence[str]) -> list[Line2D]:
    """What each colour stands for."""
    return [
        Line2D([], [], color=SEVERAL[k], marker="o", linestyle="", markersize=4, label=name)
        for k, name in enumerate(names)
    ]


@styled
def code_map(run: Run, n: int = 1000) -> Figure:
    """t-SNE of the codes of some examples, sentences or images, coloured by the first label where there is one."""
    split = run.split(most=n)
    xy = flattened(split.codes[0].double().numpy())
    figure = Figure(figsize=(5.4, 4.2), layout="constrained")
    ax = figure.subplots()
    label = next(iter(run.data.about.labels), None)
    values = run.data.labels[split.rows, 0] if label is not None else np.zeros(len(xy), np.int64)
    tints = FIRST if label is None else [SEVERAL[k % len(SEVERAL)] for k in values]
    ax.scatter(xy[:, 0], xy[:, 1], s=6, c=tints, linewidths=0, rasterized=True)
    if label is not None and run.data.about.labels[label] <= len(SEVERAL):
        names = run.data.classes.get(label) or [str(k) for k in range(run.data.about.labels[label])]
        ax.legend(handles=_dots(names), title=label, loc="best")
    ax.set_xticks([])
    ax.set_yticks([])
    return figure
