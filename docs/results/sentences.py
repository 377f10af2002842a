"""The page of results on the generated sentences, whose factors are known: disentanglement of text.

`python docs/results/sentences.py train` trains and measures what is left of the plan (two processes share it; what was cut off
goes on where it was), `python docs/results/sentences.py` writes sentences.md from the records.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from language import write
from records import KEPT, Plan, records, work
from tables import OTHERS, SCORES, rows

STEPS = 6_000
COMMON: dict[str, Any] = {
    "steps": STEPS,
    "batch_size": 64,
    "lr": 1e-3,
    "embed": 64,
    "hidden": 128,
    "latent": 16,
    "dropout": 0.0,
    "threads": 1,
}
PLANS = [  # with a rate: of its own accord a decoder that knows the grammar makes no use of z, at any weight
    Plan("sentences-bn-vae-0.6", "bn-vae", {"gamma": 0.6}),
    Plan("sentences-free-bits-12", "free-bits", {"target": 12.0, "unit": "per_dim", "reduce": "sample"}),
]
LIKELIHOOD = {
    "distortion": "R",
    "rate": "KL",
    "elbo": "ELBO",
    "mutual_information": "MI",
    "active_units": "AU",
}


def measure(run: Any) -> None:
    """The likelihood, all metrics of disentanglement, as for images, those of text, and some sentences."""
    from elboroom.runs import measure

    measure.metrics(run, samples=100)
    write(run)


def page(known: dict[str, Any]) -> str:
    """The page; what is not measured yet is missing from the tables."""
    from language_page import said

    return f"""# Sentences with known factors

All 147,456 sentences of the built-in grammar, `--data sentences`: the nine factors of each are known and independent, so that
text is measured as dSprites is. {len(known)} runs, LSTM 64/128, 16 dimensions, no dropout, Adam 1e-3, {STEPS:,} steps of batch
64.

{rows(known, "sentences-", LIKELIHOOD)}

Metrics of disentanglement, in the modes of the study of Locatello et al. 2019 where it has them:

{rows(known, "sentences-", SCORES)}

{rows(known, "sentences-", OTHERS)}

No published table uses these sentences: the numbers are to be read against each other.

## What they say

{said(known, "sentences-")}

Made from the records in `{KEPT.name}/` by `python docs/results/sentences.py`.
"""


def main(words: list[str]) -> None:
    """Trains what is left of the plan, or writes the page."""
    if words == ["train"]:
        work(PLANS, measure, "sentences", **COMMON)
    else:
        (Path(__file__).parent / "sentences.md").write_text(page(records(plan.name for plan in PLANS)))


if __name__ == "__main__":
    main(sys.argv[1:])
