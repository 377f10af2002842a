"""The page of results on Multi30k captions: every method for text, on one trunk.

`python docs/results/multi30k.py train [NAME ...]` trains and measures what is left of the plan, or of these runs of it (two
processes share it; what was cut off goes on where it was),
`python docs/results/multi30k.py` writes multi30k.md from the records that are there.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from language import measure
from records import Plan, chosen, publish, records, work

COMMON: dict[str, Any] = {  # the rest is what `elbo train` does where nothing is said
    "min_count": 2,
    "embed": 128,
    "hidden": 128,
    "latent": 32,
    "epochs": 5,
    "threads": 1,
}


LONG = {"epochs": 10}  # autoencoders learn what a code can hold for longer
TWICE = {"epochs": 15, "precision": "32-fast"}  # two stages, and in the second a decoder that begins anew


def _free_bits(unit: str, reduce: str) -> Plan:
    name = f"multi30k-free-bits-{unit.replace('_', '-')}-{reduce}"
    return Plan(name, "free-bits", {"target": 8.0, "unit": unit, "reduce": reduce})


PLANS = [
    Plan("multi30k-lm", "lm"),
    Plan("multi30k-vae", "vae"),
    Plan("multi30k-vae-annealed", "vae-annealed"),
    Plan("multi30k-vae-annealed-dilated", "vae-annealed", {"net": "dilated"}),
    Plan("multi30k-beta-vae-0.4", "beta-vae", {"beta": 0.4}),
    Plan("multi30k-bn-vae-0.6", "bn-vae", {"gamma": 0.6}),
    _free_bits("per_dim", "sample"),
    Plan("multi30k-ae-pretrained-free-bits", "ae-pretrained-free-bits", {"target": 8.0, **TWICE}),
    Plan("multi30k-ae-pretrained-free-bits-16", "ae-pretrained-free-bits", {"target": 16.0, **LONG}),
    Plan("multi30k-vae-cyclical", "vae-cyclical"),
    Plan("multi30k-skip-vae", "skip-vae"),
    Plan("multi30k-delta-vae", "delta-vae", {"delta": 0.1}),
    Plan("multi30k-delta-vae-ar1", "delta-vae-ar1"),
    Plan("multi30k-bn-vae-tau", "bn-vae-tau"),
    Plan("multi30k-control-vae", "control-vae", {"target": 8.0}),
    Plan("multi30k-mdr-vae", "mdr-vae", {"rate": 8.0}),
    _free_bits("total", "sample"),
    _free_bits("total", "batch"),
    _free_bits("per_dim", "batch"),
    Plan("multi30k-ae", "ae", LONG),
    Plan("multi30k-dae", "dae", {"epochs": 15}),
    Plan("multi30k-wae-d", "wae-d", LONG),
    Plan("multi30k-wae-s", "wae-s"),
    Plan("multi30k-aae", "aae"),
    Plan("multi30k-laae", "laae"),
    Plan("multi30k-daae", "daae"),
    Plan("multi30k-beta-tcvae", "beta-tcvae"),
    Plan("multi30k-factor-vae", "factor-vae"),
    Plan("multi30k-dip-vae-i", "dip-vae-i"),
    Plan("multi30k-dip-vae-ii", "dip-vae-ii"),
    Plan("multi30k-lagging-vae", "lagging-vae", {"at_most": 15, "window": 5}),
    Plan("multi30k-sa-vae", "sa-vae", {"inner_steps": 5, "through": "difference", "epochs": 3}),
    Plan("multi30k-vmf-vae-13", "vmf-vae", {"kappa": 13.0}),
    Plan("multi30k-power-spherical-13", "vmf-vae", {"posterior": "power-spherical", "kappa": 13.0}),
    Plan("multi30k-mog-vae", "mog-vae"),
    Plan("multi30k-mog-vae-free-bits", "mog-vae", {"free_bits": 8.0}),
    Plan("multi30k-vamp-vae", "vamp-vae"),
    Plan("multi30k-vamp-vae-free-bits", "vamp-vae", {"free_bits": 8.0}),
    Plan("multi30k-flow-prior", "flow-prior"),
    Plan("multi30k-flow-prior-free-bits", "flow-prior", {"free_bits": 8.0}),
    Plan("multi30k-vae-iaf", "vae-iaf"),
    Plan("multi30k-vae-nsf", "vae", {"posterior": "nsf"}),
    Plan("multi30k-implicit-vae", "implicit-vae"),
    Plan("multi30k-implicit-vae-mlp", "implicit-vae", {"generator": "mlp", "critic_loss": "logistic"}),
    Plan("multi30k-implicit-vae-mi", "implicit-vae-mi"),
    Plan("multi30k-p-vae", "p-vae"),
    Plan("multi30k-apo-vae", "apo-vae"),
    Plan("multi30k-apo-vae-mlp", "apo-vae", {"generator": "mlp", "critic_loss": "logistic"}),
    Plan("multi30k-apo-vae-vamp", "apo-vae-vamp"),
]


def main(words: list[str]) -> None:
    """Trains what is left of the plan, or writes the page."""
    if words[:1] == ["train"]:
        work(chosen(PLANS, words[1:]), measure, "multi30k", **COMMON)
    else:
        from language_page import multi30k

        names = [plan.name for plan in PLANS]
        publish("multi30k", multi30k(records(names), names), names)


if __name__ == "__main__":
    main(sys.argv[1:])
