"""The page of results on the Penn Treebank.

`python docs/results/ptb.py train 0/2` trains and measures every second run of the plan (resuming what was cut off),
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
]


def main(words: list[str]) -> None:
    """Trains a share of the plan, or writes the page."""
    if words[:1] == ["train"]:
        part, of = (int(number) for number in words[1].split("/"))
        work(PLANS, measure, "ptb", (part, of), **COMMON)
    else:
        from language_page import ptb

        (Path(__file__).parent / "ptb.md").write_text(ptb(records(plan.name for plan in PLANS)))


if __name__ == "__main__":
    main(sys.argv[1:])
