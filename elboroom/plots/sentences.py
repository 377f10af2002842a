"""What a model of text says, and a map of its codes."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from sklearn.manifold import TSNE

from elboroom.plots.style import FIRST, SEVERAL, styled
from elboroom.runs.run import Run

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


@styled
def code_map(run: Run, n: int = 1000) -> Figure:
    """t-SNE of the codes of some sentences, coloured by the first label where there is one."""
    split = run.split(most=n)
    codes = split.codes[0].double().numpy()
    perplexity = min(30.0, (len(codes) - 1) / 3)
    spread = codes.std(0)
    shown = codes[:, spread > 0] if (spread > 0).any() else codes
    xy = TSNE(perplexity=perplexity, init="pca" if shown.shape[1] > 1 else "random", random_state=0).fit_transform(
        shown
    )
    figure = Figure(figsize=(5.4, 4.2), layout="constrained")
    ax = figure.subplots()
    label = next(iter(run.data.about.labels), None)
    values = run.data.labels[split.rows, 0] if label is not None else np.zeros(len(xy), np.int64)
    tints = FIRST if label is None else [SEVERAL[k % len(SEVERAL)] for k in values]
    ax.scatter(xy[:, 0], xy[:, 1], s=6, c=tints, linewidths=0, rasterized=True)
    if label is not None and run.data.about.labels[label] <= len(SEVERAL):
        names = run.data.classes.get(label) or [str(k) for k in range(run.data.about.labels[label])]
        dots = [
            Line2D([], [], color=SEVERAL[k], marker="o", linestyle="", markersize=4, label=name)
            for k, name in enumerate(names)
        ]
        ax.legend(handles=dots, title=label, loc="best")
    ax.set_xticks([])
    ax.set_yticks([])
    return figure
