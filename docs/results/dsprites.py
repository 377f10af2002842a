"""The page of results on dSprites.

`python docs/results/dsprites.py train 0/2` trains and measures every second run of the plan (resuming what was cut off),
`python docs/results/dsprites.py` writes dsprites.md from the records that are there.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from records import Plan, records, work

STEPS = 20_000
COMMON: dict[str, Any] = {"steps": STEPS, "batch_size": 64, "lr": 5e-4, "threads": 1, "net": "burgess", "latent": 10}
PLANS = [
    Plan("dsprites-beta-vae-1-s0", "beta-vae", {"beta": 1.0}),
    Plan("dsprites-beta-vae-4-s0", "beta-vae", {"beta": 4.0}),
    Plan("dsprites-beta-tcvae-6-s0", "beta-tcvae", {"beta": 6.0}),
    Plan("dsprites-factor-vae-10-s0", "factor-vae", {"gamma": 10.0}),
    Plan("dsprites-dip-vae-i-s0", "dip-vae-i", {}),
    Plan("dsprites-dip-vae-ii-s0", "dip-vae-ii", {}),
    Plan("dsprites-capacity-25-s0", "beta-vae-capacity", {"capacity": 25.0, "gamma": 100.0}),
    Plan("dsprites-control-18-s0", "control-vae", {"target": 18.0}),
    Plan("dsprites-beta-vae-4-s1", "beta-vae", {"beta": 4.0, "seed": 1}),
    Plan("dsprites-beta-tcvae-6-s1", "beta-tcvae", {"beta": 6.0, "seed": 1}),
    Plan("dsprites-factor-vae-10-s1", "factor-vae", {"gamma": 10.0, "seed": 1}),
]


def measure(run: Any) -> None:
    """Likelihood and all disentanglement metrics in their dlib modes, DCI included."""
    from elboroom import measures

    run.evaluate(samples=100)
    measures.disentanglement(run, "all")


def main(words: list[str]) -> None:
    """Trains a share of the plan, or writes the page."""
    if words[:1] == ["train"]:
        part, of = (int(number) for number in words[1].split("/"))
        work(PLANS, measure, "dsprites", (part, of), **COMMON)
    else:
        from dsprites_page import page

        (Path(__file__).parent / "dsprites.md").write_text(page(records(plan.name for plan in PLANS), STEPS))


if __name__ == "__main__":
    main(sys.argv[1:])
