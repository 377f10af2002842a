"""The page of results on binarized MNIST.

`python docs/results/binarized_mnist.py train` trains and measures what is left of the plan (two processes share it; what was
cut off goes on where it was), `python docs/results/binarized_mnist.py` writes binarized-mnist.md from the records.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from records import Plan, publish, records, work

EPOCH = 500  # steps of batch 100
EPOCHS = 100
COMMON: dict[str, Any] = {
    "net": "mlp-300-300",
    "latent": 40,
    "epochs": EPOCHS,
    "batch_size": 100,
    "lr": 5e-4,
    "threads": 1,
    "patience": 4,
    "look_every": 5 * EPOCH,
    "checkpoint_every": 5 * EPOCH,
    "log_every": 100,
}
PLANS = [
    Plan("binarized-mnist-vae", "vae"),
    Plan("binarized-mnist-vae-iaf", "vae-iaf"),
    Plan("binarized-mnist-iwae", "iwae"),
    Plan("binarized-mnist-flow-prior", "flow-prior", {"samples": 2}),
    Plan("binarized-mnist-vamp-vae", "vamp-vae"),
]


def measure(run: Any) -> None:
    """The likelihood of the whole test split by IW-500."""
    run.evaluate(samples=500, iw_most=None)


def main(words: list[str]) -> None:
    """Trains what is left of the plan, or writes the page."""
    if words == ["train"]:
        work(PLANS, measure, "binarized-mnist", **COMMON)
    else:
        from binarized_mnist_page import page

        names = [plan.name for plan in PLANS]
        text = page(records(names), EPOCHS)
        publish("binarized-mnist", text, names)


if __name__ == "__main__":
    main(sys.argv[1:])
