"""The picture of attribute vectors: an example edited along the vector of each value of a label."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from elboroom.core.problem import Problem, unknown
from elboroom.latent.attributes import HingeClassifier, attribute_vector, edit, majority_rate
from elboroom.plots.pictures import colour, contact_sheet
from elboroom.plots.style import MINUS
from elboroom.runs.run import Run

STEPS = np.linspace(-2, 2, 9)  # beyond 1 in size it extrapolates
LEARNT, TESTED = 5_000, 5_000  # examples


def attributes(run: Run, label: str | None = None, seed: int = 0) -> Figure:
    """One row a value of a label, by default the first: z + t w for t from -2 (removed) over 0 to 2 (added).

    Beside each row stands how often the projection on its vector, learnt from the training split, is right about that value
    on the test split, and how often the commoner answer alone would be.
    """
    names = list(run.data.about.labels)
    if run.spec.about.kind != "pixels":
        raise Problem("edits can be shown only for images")
    if not names:
        raise Problem("there is no label to edit; this data has none")
    if label and label not in names:
        raise unknown("label", label, names, run.data.about.name)
    if run.given:
        raise Problem("a conditional model takes its labels beside z; change u, not z")
    column = names.index(label) if label else 0
    learn, test = run.split("train", LEARNT), run.split(most=TESTED)
    codes, others = (part.codes[0].numpy() for part in (learn, test))
    values, answers = (run.data.labels[part.rows, column] for part in (learn, test))
    known = run.data.classes.get(names[column], ())
    start = run.encode(run.examples(1, seed=seed))
    rows, said = [], []
    for value in np.unique(values):
        w, found = attribute_vector(codes, values == value), HingeClassifier.fit(codes, values == value)
        rows.append(run.decode(edit(start, w, STEPS)[0].astype(np.float32)))
        right, constant = found.accuracy(others, answers == value), majority_rate(answers == value)
        said.append(
            f"{names[column]} {known[value] if known else value}\n{right:.0%} right on {test.name}\n{constant:.0%} without z"
        )
    return contact_sheet(colour(np.stack(rows)), said, [f"{t:+.1f}".replace("-", MINUS) for t in STEPS])
