"""The page of results on the generated sentences, whose factors are known: disentanglement of text.

`python docs/results/sentences.py train [NAME ...]` trains and measures what is left of the plan, or these runs of it (two
processes share it; what was cut off goes on where it was), `python docs/results/sentences.py` writes sentences.md from the
records.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from language import write
from records import KEPT, Plan, chosen, outdated, publish, records, work
from tables import OTHERS, SCORES, rows

STEPS = 10_000
COMMON: dict[str, Any] = {"steps": STEPS, "embed": 64, "hidden": 128, "latent": 16, "threads": 1}
PLANS = [
    Plan("sentences-ae", "ae"),
    Plan("sentences-dae", "dae", {"drop": 0.1}),
    Plan("sentences-daae", "daae", {"drop": 0.1, "lam": 0.1}),
    Plan("sentences-wae-s", "wae-s"),
    Plan("sentences-bn-vae-0.6", "bn-vae", {"gamma": 0.6}),
    Plan("sentences-free-bits-12", "free-bits", {"target": 12.0, "unit": "per_dim", "reduce": "sample"}),
    Plan("sentences-ae-pretrained-free-bits-8", "ae-pretrained-free-bits", {"target": 8.0}),
    Plan("sentences-beta-tcvae", "beta-tcvae", {"alpha": 0.1, "beta": 0.5, "gamma": 0.1}),
    Plan("sentences-factor-vae", "factor-vae"),
]
LIKELIHOOD = {
    "distortion": "R",
    "rate": "KL",
    "elbo": "ELBO",
    "mutual_information": "MI",
    "active_units": "AU",
    "exact": "written again exactly",
}


def measure(run: Any) -> None:
    """The likelihood, all metrics of disentanglement, as for images, those of text, and some sentences."""
    from elboroom.runs import measure

    measure.metrics(run, samples=100)
    write(run)
    given = run.data.sentences(run.rows("test")[1][:2_000])
    same = [a == b for a, b in zip(given, run.reconstruct(given), strict=True)]
    (run.folder / "edits.json").write_text(json.dumps({"exact": sum(same) / len(same), "sentences": len(same)}) + "\n")


def known() -> dict[str, Any]:
    """The records that are there, with the share of sentences that are written again exactly."""
    found = records(plan.name for plan in PLANS)
    for name, record in found.items():
        if (path := KEPT / name / "edits.json").exists():
            record["metrics"]["exact"] = {"value": json.loads(path.read_text())["exact"]}
    return found


def page(found: dict[str, Any]) -> str:
    """The page; what is not measured yet is missing from the tables."""
    from language_page import missing, said

    before = {name: r for name, r in found.items() if outdated(r["spec"])}
    found = {name: r for name, r in found.items() if name not in before}
    return f"""# Sentences with known factors

All 147,456 sentences of the built-in grammar, `--data sentences`: the nine factors of each are known and independent, so that
text is measured as dSprites is. LSTM 64/128, 16 dimensions, {STEPS:,} steps, all else as `elbo train` has it where nothing is
said ([defaults](../defaults.md#text)). `free-bits` has a floor of 12 nats, about all that a sentence says (ln 147,456 is 11.9).
A decoder that has learnt the grammar gains nothing by a z that costs what it tells, so `beta-tcvae` has weights below one (0.1,
0.5 for the total correlation, 0.1); `factor-vae`, whose KL has a weight of one, is shown as it is.

{missing(found, [plan.name for plan in PLANS], "sentences-")}{rows(found, "sentences-", LIKELIHOOD)}

Metrics of disentanglement, in the modes of the study of Locatello et al. 2019 where it has them:

{rows(found, "sentences-", SCORES)}

{rows(found, "sentences-", OTHERS)}

No published table uses these sentences: the numbers are to be read against each other.

## What they say

{said(found, "sentences-")}
{_before(before)}
Made from the records in `{KEPT.name}/` by `python docs/results/sentences.py`.
"""


def _before(found: dict[str, Any]) -> str:
    """Runs that were not made again since the defaults changed."""
    if not found:
        return ""
    return f"""
## Earlier defaults

Not made again yet: trunk a, Adam 1e-3 without decay, no dropout, 6,000 steps of batch 64. Not to be held against the rows
above: their nets began with states that are nearly alike.

{rows(found, "sentences-", LIKELIHOOD)}

{rows(found, "sentences-", SCORES)}
"""


def main(words: list[str]) -> None:
    """Trains what is left of the plan, or writes the page."""
    if words[:1] == ["train"]:
        work(chosen(PLANS, words[1:]), measure, "sentences", **COMMON)
    else:
        publish("sentences", page(known()), (plan.name for plan in PLANS))


if __name__ == "__main__":
    main(sys.argv[1:])
