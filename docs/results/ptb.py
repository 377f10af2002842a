"""The page of results on the Penn Treebank.

`python docs/results/ptb.py train` trains and measures what is left of the plan (two processes share it;
what was cut off goes on where it was),
`python docs/results/ptb.py` writes ptb.md from the records that are there.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from language import measure
from records import Plan, records, work

EPOCH = 657  # steps of batch 64
COMMON: dict[str, Any] = {
    "embed": 256,
    "hidden": 256,
    "latent": 32,
    "epochs": 12,
    "batch_size": 64,
    "lr": 1e-3,
    "threads": 1,
    "patience": 3,  # looks, one an epoch
    "look_every": EPOCH,
    "checkpoint_every": EPOCH // 2,
}
PLANS = [
    Plan("ptb-lm", "lm"),
    Plan("ptb-vae-annealed", "vae-annealed"),
    Plan("ptb-bn-vae-0.6", "bn-vae", {"gamma": 0.6}),
    Plan("ptb-free-bits", "free-bits", {"target": 8.0, "unit": "per_dim", "reduce": "sample"}),
    Plan("ptb-ae-pretrained-free-bits", "ae-pretrained-free-bits", {"target": 8.0, "patience": 12}),
    Plan("ptb-vae-cyclical", "vae-cyclical", {"patience": 12}),
    Plan("ptb-vmf-vae-13", "vmf-vae", {"kappa": 13.0}),
    Plan("ptb-vamp-vae", "vamp-vae", {"pseudo_inputs": 100}),
    Plan("ptb-flow-prior", "flow-prior", {"samples": 2}),
    Plan("ptb-flow-prior-free-bits", "flow-prior", {"samples": 2, "free_bits": 8.0}),
    Plan("ptb-implicit-vae", "implicit-vae"),
    Plan("ptb-apo-vae", "apo-vae"),
]


def main(words: list[str]) -> None:
    """Trains what is left of the plan, or writes the page."""
    if words == ["train"]:
        work(PLANS, measure, "ptb", **COMMON)
    else:
        from language_page import ptb

        (Path(__file__).parent / "ptb.md").write_text(ptb(records(plan.name for plan in PLANS)))


if __name__ == "__main__":
    main(sys.argv[1:])
