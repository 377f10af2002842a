"""What a model of text says, and a map of its codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from sklearn.manifold import TSNE

from elboroom.plots.style import FIRST, SEVERAL, styled
from elboroom.runs.run import Run

Rows = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Strips:
    """Rows of sentences that belong together, with a title and a sentence that says what to look for."""

    name: str
    title: str
    caption: str
    rows: Rows


def strips(run: Run, n: int = 10, points: int = 7) -> list[Strips]:
    """Samples, reconstructions and interpolations of a run."""
    split = run.rows()[0]
    found = [
        Strips(
            "samples",
            "Samples",
            "Sentences drawn word by word from z of the prior: they should read like the data and differ from one another.",
            tuple((sentence,) for sentence in run.sample(n)),
        )
    ]
    if not run.latent:
        return found
    given = run.examples(n)
    assert given.index is not None
    found.append(
        Strips(
            "reconstructions",
            "Reconstructions",
            f"Sentences from {split}, and below each what is decoded greedily from the mean of its code: the same sentence for "
            "all of them is a code that says nothing.",
            tuple(zip(run.data.sentences(given.index), run.reconstruct(given), strict=True)),
        )
    )
    ways = run.interpolate(run.examples(3), run.examples(3, seed=1), points)
    found.append(
        Strips(
            "interpolations",
            "Interpolations",
            "The shortest way between the codes of two sentences, whose reconstructions are the ends: neighbours should be "
            "alike, and all of them sentences.",
            tuple(tuple(way) for way in ways),
        )
    )
    return found


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
