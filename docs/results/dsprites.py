"""The page of results on dSprites.

`python docs/results/dsprites.py train` trains and measures what is left of the plan (two processes share it;
what was cut off goes on where it was),
`modes` and `downstream` add measures to the records that are there, `pictures` draws traversals of the best run, and
`python docs/results/dsprites.py` writes dsprites.md from the records.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from records import Plan, again, publish, records, work

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
    Plan("dsprites-dip-vae-i-s1", "dip-vae-i", {"seed": 1}),
]
PLAIN = "dsprites-beta-vae-1-s0"
PREDICTED = (PLAIN, "dsprites-factor-vae-10-s0")  # whose factors are predicted from few labels: minutes each
MODES = {"beta-vae": "paper-dip", "sap": "paper"}  # in which others published, beside those of the study


def measure(run: Any) -> None:
    """Likelihood, all disentanglement metrics in their dlib modes, DCI included, and two in those of another paper."""
    from elboroom.runs import measure

    measure.metrics(run, samples=100)
    modes(run)
    if run.folder.name in PREDICTED:
        downstream(run)


def modes(run: Any) -> None:
    """Metrics in a mode that is not dlib, under names that say so."""
    from elboroom.evaluate.codes import code_table
    from elboroom.evaluate.disentanglement import evaluate

    found = evaluate(code_table(run), list(MODES), MODES)
    run.record({f"{name} {MODES[name]}": score for name, score in found.items()})


def downstream(run: Any) -> None:
    """Factors predicted from 10 to 10,000 labels."""
    from elboroom.runs import measure

    measure.metrics(run, "downstream")


def pictures() -> None:
    """Traversals of the best run, and of the plain VAE beside it."""
    from dsprites_page import best, picture

    import elboroom
    from elboroom.plots import save, traversals

    known = records(plan.name for plan in PLANS)
    for name in dict.fromkeys([best(known) or PLAIN, PLAIN]):
        run = elboroom.load(next(plan for plan in PLANS if plan.name == name).folder)
        save(traversals(run), picture(name))
        print(picture(name).name)


def main(words: list[str]) -> None:
    """Trains what is left of the plan, adds to its records, or writes the page."""
    if words == ["train"]:
        work(PLANS, measure, "dsprites", **COMMON)
    elif words == ["modes"]:
        again(PLANS, modes)
    elif words == ["downstream"]:
        again([plan for plan in PLANS if plan.name in PREDICTED], downstream)
    elif words == ["pictures"]:
        pictures()
    else:
        from dsprites_page import page

        names = [plan.name for plan in PLANS]
        publish("dsprites", page(records(names), STEPS), names)


if __name__ == "__main__":
    main(sys.argv[1:])
