"""The page of results on the Penn Treebank.

`python docs/results/ptb.py train [NAME ...]` trains and measures what is left of the plan, or these runs of it (two processes
share it; what was cut off goes on where it was),
`python docs/results/ptb.py` writes ptb.md from the records that are there.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from language import measure
from records import Plan, chosen, publish, records, work

COMMON: dict[str, Any] = {  # the rest is what `elbo train` does where nothing is said
    "embed": 256,
    "hidden": 256,
    "latent": 32,
    "epochs": 20,
    "precision": "32-fast",
    "threads": 1,
}
FLOOR = {"target": 8.0, "unit": "per_dim", "reduce": "sample"}
PLANS = [
    Plan("ptb-lm", "lm"),
    Plan("ptb-bn-vae-0.6", "bn-vae", {"gamma": 0.6}),
    Plan("ptb-ae-pretrained-free-bits", "ae-pretrained-free-bits", {"target": 8.0}),
    Plan("ptb-vae-annealed", "vae-annealed"),
    Plan("ptb-flow-prior-free-bits", "flow-prior", {"samples": 2, "free_bits": 8.0}),
    Plan("ptb-free-bits", "free-bits", FLOOR),
    Plan("ptb-bn-vae-0.7", "bn-vae", {"gamma": 0.7}),
    Plan("ptb-vae-cyclical", "vae-cyclical"),
    Plan("ptb-lagging-vae", "lagging-vae"),
    Plan("ptb-vmf-vae-13", "vmf-vae", {"kappa": 13.0}),
    Plan("ptb-vamp-vae", "vamp-vae", {"pseudo_inputs": 100}),
    Plan("ptb-mog-vae", "mog-vae"),
    Plan("ptb-flow-prior", "flow-prior", {"samples": 2}),
    Plan("ptb-implicit-vae", "implicit-vae"),
    Plan("ptb-apo-vae", "apo-vae"),
    Plan("ptb-control-vae-4", "control-vae", {"target": 4.0}),
    Plan("ptb-control-vae-8", "control-vae", {"target": 8.0}),
    Plan("ptb-vae-annealed-dilated", "vae-annealed", {"net": "dilated"}),
]


def main(words: list[str]) -> None:
    """Trains what is left of the plan, or writes the page."""
    if words[:1] == ["train"]:
        work(chosen(PLANS, words[1:]), measure, "ptb", **COMMON)
    else:
        from language_page import ptb

        names = [plan.name for plan in PLANS]
        publish("ptb", ptb(records(names), names), names)


if __name__ == "__main__":
    main(sys.argv[1:])
