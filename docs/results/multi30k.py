"""The page of results on Multi30k captions: every method for text, on one trunk.

`python docs/results/multi30k.py train` trains and measures what is left of the plan (two processes share it;
what was cut off goes on where it was),
`python docs/results/multi30k.py` writes multi30k.md from the records that are there.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from language import measure
from records import Plan, records, work

EPOCH = 453  # steps of batch 64
COMMON: dict[str, Any] = {
    "min_count": 2,
    "embed": 128,
    "hidden": 128,
    "latent": 32,
    "epochs": 10,
    "batch_size": 64,
    "lr": 1e-3,
    "threads": 1,
    "patience": 10,  # looks, one an epoch: the run goes on to its end, and the best is kept
    "look_every": EPOCH,
    "checkpoint_every": EPOCH,
}


def _free_bits(unit: str, reduce: str) -> Plan:
    name = f"multi30k-free-bits-{unit.replace('_', '-')}-{reduce}"
    return Plan(name, "free-bits", {"target": 8.0, "unit": unit, "reduce": reduce})


PLANS = [
    Plan("multi30k-lm", "lm"),
    Plan("multi30k-vae", "vae"),
    Plan("multi30k-vae-annealed", "vae-annealed"),
    Plan("multi30k-beta-vae-0.4", "beta-vae", {"beta": 0.4}),
    Plan("multi30k-bn-vae-0.6", "bn-vae", {"gamma": 0.6}),
    _free_bits("per_dim", "sample"),
    Plan("multi30k-ae-pretrained-free-bits", "ae-pretrained-free-bits", {"target": 8.0}),
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
    Plan("multi30k-ae", "ae"),
    Plan("multi30k-dae", "dae"),
    Plan("multi30k-wae-d", "wae-d"),
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
    if words == ["train"]:
        work(PLANS, measure, "multi30k", **COMMON)
    else:
        from language_page import multi30k

        (Path(__file__).parent / "multi30k.md").write_text(multi30k(records(plan.name for plan in PLANS)))


if __name__ == "__main__":
    main(sys.argv[1:])
