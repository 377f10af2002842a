"""Does the error that is printed beside IW-K hold? Repeats with other draws, against it, on small runs of five kinds and more.

    python tools/iw_errors.py FOLDER [--repeats 40] [--rows 50] [--samples 100]

Runs are trained into FOLDER once (some minutes each) and measured on the same rows again and again, with other draws alone.
`scatter` is the standard deviation of the repeats, `printed` the mean of the error that each of them gives, and `gain` what
the last doubling of K added to the bound. The scatter of 40 repeats is itself known to 11 %.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

import elboroom
from elboroom.evaluate.likelihood import log_likelihood
from elboroom.evaluate.likelihood.posthoc import posthoc
from elboroom.evaluate.result import Result
from elboroom.evaluate.split import Split
from elboroom.families.fitted import is_sampled
from elboroom.runs.run import Run

SHARED: dict[str, Any] = {"lr": 1e-3, "batch_size": 64, "threads": 1, "log_every": 100}
KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "dSprites, convolutions": ("vae", "dsprites", {"latent": 10, "net": "burgess", "steps": 1500}),
    "binarized MNIST": ("vae", "binarized-mnist", {"latent": 40, "net": "mlp-300-300", "steps": 1000}),
    "binarized MNIST, flow posterior": ("vae-iaf", "binarized-mnist", {"latent": 40, "net": "mlp-300-300", "steps": 1000}),
    "binarized MNIST, sampled posterior": ("avb", "binarized-mnist", {"latent": 8, "net": "mlp-300", "steps": 1000}),
    "binarized MNIST, points, post hoc": ("wae-mmd", "binarized-mnist", {"latent": 8, "net": "mlp-300", "steps": 1000}),
    "sentences of Multi30k": ("beta-vae", "multi30k", {"beta": 0.2, "latent": 16, "hidden": 128, "embed": 64, "steps": 400}),
}  # fmt: skip


def trained(folder: Path, method: str, data: str, options: dict[str, Any]) -> Run:
    """The run of that folder, trained where it is not there."""
    if (folder / "spec.json").exists():
        return elboroom.load(folder)
    return elboroom.train(method, data, folder, **SHARED, **options)


def measured(split: Split, samples: int) -> Result:
    """IW-K of a split, post hoc where codes are points."""
    sampled = split.has_density or is_sampled(split.model)
    return log_likelihood(split, samples) if sampled else posthoc(split, samples)


def line(name: str, found: list[Result]) -> str:
    """One row of the table."""
    values = [result.value for result in found if result.value is not None]
    scatter, printed = statistics.stdev(values), statistics.mean(r.errors["importance_noise"] for r in found)
    effective = statistics.mean(result.parts["effective_samples"] for result in found)
    gain = statistics.mean(result.parts.get("gain_of_doubling", float("nan")) for result in found)
    cells = [name, f"{statistics.mean(values):.2f}", f"{effective:.1f}", f"{scatter:.3f}", f"{printed:.3f}"]
    return "| " + " | ".join([*cells, f"{printed / scatter:.2f}", f"{gain:.2f}"]) + " |"


def main() -> None:
    """Trains what is missing, repeats, prints a table in Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--samples", type=int, default=100)
    given = parser.parse_args()
    print(
        f"| run | IW-{given.samples} | effective | scatter | printed | printed / scatter | gain |\n"
        + "| --- " * 7
        + "|"
    )
    for name, (method, data, options) in KINDS.items():
        run = trained(given.folder / name.replace(", ", "-").replace(" ", "-").lower(), method, data, options)
        found = [measured(run.split(most=given.rows, seed=seed), given.samples) for seed in range(given.repeats)]
        print(line(name, found), flush=True)


if __name__ == "__main__":
    main()
