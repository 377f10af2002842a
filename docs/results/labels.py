"""The page of results on few labels: how well the sentiment of a review is read off its code.

`python docs/results/labels.py train [NAME ...]` trains and measures what is left of the plan, or these runs of it (several
processes share it; what was cut off goes on where it was), `python docs/results/labels.py` writes labels.md from the records.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from records import Plan, chosen, publish, records, work
from tables import Records, shown, table, value

from elboroom.evaluate.probe import SIZES

COMMON: dict[str, Any] = {  # the rest is what `elbo train` does where nothing is said
    "min_count": 5,
    "longest": 15,
    "embed": 128,
    "hidden": 256,
    "latent": 32,
    "epochs": 3,
    "precision": "32-fast",
    "threads": 1,
}
PLANS = [
    Plan("labels-ae", "ae"),
    Plan("labels-vae-annealed", "vae-annealed"),
    Plan("labels-delta-vae", "delta-vae", {"delta": 0.1}),
    Plan("labels-lagging-vae", "lagging-vae", {"at_most": 15, "window": 5}),
    Plan("labels-vae-cyclical", "vae-cyclical"),
    Plan("labels-free-bits-9", "free-bits", {"target": 9.0, "unit": "per_dim", "reduce": "sample"}),
    Plan("labels-ae-pretrained-free-bits-6", "ae-pretrained-free-bits", {"target": 6.0}),
    Plan("labels-bn-vae-0.7", "bn-vae", {"gamma": 0.7}),
]
PUBLISHED = [  # Zhu et al. 2020, short Yelp
    ["AE", "81.1", "86.2", "90.3", "89.4", "94.1"],
    ["VAE", "66.1", "82.6", "88.4", "89.6", "94.5"],
    ["delta-VAE", "61.8", "61.9", "62.6", "62.9", "93.8"],
    ["Agg-VAE", "80.9", "85.9", "88.8", "90.6", "93.7"],
    ["cyclic", "62.4", "75.5", "80.3", "88.7", "94.2"],
    ["FB (9)", "79.8", "84.4", "88.8", "91.1", "94.7"],
    ["AE + FB (6)", "87.6", "90.2", "92.0", "93.4", "94.9"],
    ["BN-VAE (0.7)", "88.8", "91.6", "92.5", "94.1", "95.4"],
]
HEAD = [f"{size:,}" for size in SIZES]


def measure(run: Any) -> None:
    """The two parts of the ELBO, what z tells, and the probe."""
    from elboroom.runs import measure

    measure.metrics(run, ["likelihood"], samples=1, iw_most=1)
    measure.metrics(run, ["probe"])


def page(found: Records) -> str:
    """The page; rows of runs that have no record say so."""
    body = [_row(plan.name, found) for plan in PLANS]
    return f"""# Few labels

`yelp-sentiment`, whose split is not the published one ([style.md](style.md)). Autoencoders learn from all sentences and see no
label: LSTM 128/256, 32 dimensions, words seen five times or more, 3 epochs, `--precision 32-fast`, all else as `elbo train` has
it where nothing is said ([defaults](../defaults.md#text)). A number in a name is gamma, the target or the floor. Then a
logistic regression on the means of 100 to 10,000 labelled codes tells the sentiment of 10,000 codes of the test split: accuracy
in percent, the mean of ten draws of which sentences are labelled, ± the error of that mean. 61 % of sentences are positive.

{table(["run", "R", "KL", "MI", *HEAD], body)}

Published (Zhu et al. 2020, short Yelp, a classifier that is linear or has one hidden layer):

{table(["", *HEAD], PUBLISHED)}

{_order(found)}"""


def _row(name: str, found: Records) -> list[str]:
    short = name.removeprefix("labels-")
    if name not in found:
        return [short, "not yet run", *[""] * (2 + len(SIZES))]
    record = found[name]
    parts = [shown(value(record, key), key) for key in ("distortion", "rate", "mutual_information")]
    return [short, *parts, *(_accuracy(record, size) for size in SIZES)]


def _accuracy(record: dict[str, Any], size: int) -> str:
    entry = record["metrics"][f"probe-{size}"]
    error = entry.get("errors", {}).get("labels")
    return f"{100 * entry['value']:.1f}" + (f" ± {100 * error:.1f}" if error is not None else "")


def _order(found: Records) -> str:
    """Who is best with few labels, here and there."""
    names = [plan.name for plan in PLANS if plan.name in found]
    if len(names) < len(PLANS):
        return ""
    few = {name: found[name]["metrics"][f"probe-{SIZES[0]}"]["value"] for name in names}
    best = sorted(few, key=lambda name: -few[name])
    listed = ", ".join(f"{name.removeprefix('labels-')} {100 * few[name]:.1f}" for name in best)
    published = "BN-VAE, AE + FB, AE, Agg-VAE, FB, VAE, cyclic, delta-VAE"
    return f"With {SIZES[0]} labels, from the best on: {listed}. Published: {published}.\n"


if __name__ == "__main__":
    if sys.argv[1:2] == ["train"]:
        work(chosen(PLANS, sys.argv[2:]), measure, "yelp-sentiment", **COMMON)
    known = [plan.name for plan in PLANS]
    publish("labels", page(records(known)), known)
