"""Measures of runs that need their factors: disentanglement on the code table, agreement of several runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from elboroom.core.problem import Problem
from elboroom.evaluate.codes import code_table
from elboroom.evaluate.disentanglement import evaluate
from elboroom.evaluate.disentanglement.udr import udr
from elboroom.run import Run
from elboroom.training.checkpoint import write_json


def disentanglement(
    run: Run, names: str | Sequence[str] = "all", mode: str = "dlib", representation: str = "mean", seed: int = 0,
    interval: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Metrics of a run by name, added to its metrics.json; every image is encoded once."""
    found = evaluate(code_table(run), names, mode, seed, representation, interval)
    content = run.measured | {name: score.to_json() for name, score in found.items()}
    write_json(run.folder / "metrics.json", content)
    return content


def agreement(runs: Sequence[Run], n: int = 10_000) -> dict[str, Any]:
    """UDR of each of several runs that differ in their seed only, on the same images."""
    if len(runs) < 2:
        raise Problem("udr compares runs with one another: name at least two")
    if len({run.spec.data["hash"] for run in runs}) > 1:
        raise Problem("udr compares runs on the same data")
    measured = [(run.split("train", n).codes[0].numpy(), run.kl_per_dim("train")) for run in runs]
    found = udr(measured)
    names = [str(run.folder) for run in runs]
    return {
        name: {"value": value, "mode": found.mode, "unit": ""} for name, value in zip(names, found.values, strict=True)
    }
