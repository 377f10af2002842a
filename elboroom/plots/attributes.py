"""The picture of attribute vectors: an example edited along the vector of each value of a label."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from elboroom.core.problem import Problem
from elboroom.latent.attributes import HingeClassifier, attribute_vector, edit
from elboroom.plots.pictures import colour, contact_sheet
from elboroom.plots.style import MINUS
from elboroom.runs.run import Run

STEPS = np.linspace(-2, 2, 9)  # beyond 1 in size it extrapolates


def attributes(run: Run, label: str | None = None, most: int = 8, seed: int = 0) -> Figure:
    """One row a value of a label, by default the first: z + t w for t from -2 (removed) over 0 to 2 (added).

    Beside each row stands how well the projection on its vector tells that value from the others.
    """
    names = list(run.data.about.labels)
    if run.spec.about.kind != "pixels":
        raise Problem("edits can be shown only for images")
    if not names or (label is not None and label not in names):
        raise Problem(f"there is no label to edit; this data has: {', '.join(names) or 'none'}")
    if run.given:
        raise Problem("a conditional model takes its labels beside z; change u, not z")
    column = names.index(label) if label else 0
    split = run.split("train", 5000)
    codes, values = split.codes[0].numpy(), run.data.labels[split.rows, column]
    start = run.encode(run.examples(1, seed=seed))
    rows, said = [], []
    for value in np.unique(values)[:most]:
        has = values == value
        w = attribute_vector(codes, has)
        found = HingeClassifier.fit(codes, has)
        rows.append(run.decode(edit(start, w, STEPS)[0].astype(np.float32)))
        said.append(
            f"{names[column]} {value}\n{found.accuracy(codes, has):.0%} ({max(has.mean(), 1 - has.mean()):.0%})"
        )
    return contact_sheet(colour(np.stack(rows)), said, [f"{t:+.1f}".replace("-", MINUS) for t in STEPS])
