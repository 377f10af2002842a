"""study.md from the kept table: medians by setting, and whether beta does what the theory says."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from elboroom.studies.scores import Scores
from elboroom.studies.summary import markdown, summary, wide

METRICS = ("beta-vae", "factor-vae", "mig", "sap", "dci", "modularity", "irs")
EVIDENCE = ("distortion", "rate", "elbo", "log_likelihood", "active_units", "udr")
TITLES = {
    "violins": "Scores by method",
    "strengths": "Score against strength",
    "trade-off": "Reconstruction against disentanglement",
    "plane": "Rate-distortion plane",
    "correlations": "Rank correlations",
    "variance": "Seed against objective",
    "udr": "Agreement of seeds",
    "labels": "Label efficiency",
    "flips": "Flipped pixels",
}


def page(kept: Path) -> str:
    """The page; what is not there yet is missing from it, not invented."""
    rows = _rows(kept / "table.parquet")
    scores = Scores.of(rows, rows[0]["data"])
    found = summary(rows, ("method", "setting"))
    with (kept / "timings.csv").open() as file:
        hours = sum(float(t["train"] or 0) + float(t["measure"] or 0) for t in csv.DictReader(file)) / 3600
    tables = (markdown(wide(found, names), ["method", "setting", "n", *names]) for names in (EVIDENCE, METRICS))
    evidence, metrics = (table.rstrip() for table in tables)
    charts = "\n\n".join(f"## {title}\n\n![{title.lower()}](study/{name}.svg)" for name, title in TITLES.items())
    return f"""# A study: four methods, two strengths, three seeds

`elbo study run docs/results/study.toml`: {len(scores.runs)} runs on dSprites of {_steps(rows):,} steps of batch 64, burgess nets, 10
dimensions, Adam 5e-4, one thread each; {hours:.1f} hours of one core with all measuring. Every number below is a median with its
quartiles, `median [q25, q75]`; estimators and settings are in the table ([study/table.parquet](study/table.parquet)).

{evidence}

{metrics}

{_theory(scores)}

{_explained(scores)}

{charts}

Data behind each figure: `study/*.csv`. Made by `python docs/results/study.py`.
"""


def _rows(path: Path) -> list[dict[str, Any]]:
    answer = duckdb.connect().execute(f"SELECT * FROM '{path}'")
    names = [column[0] for column in answer.description]
    return [
        {k: ("" if v is None and k in ("unit", "setting") else v) for k, v in zip(names, row, strict=True)}
        for row in answer.fetchall()
    ]


def _steps(rows: list[dict[str, Any]]) -> int:
    import json

    return int(json.loads(rows[0]["options"])["steps"])


def _theory(scores: Scores) -> str:
    """A nat of rate that costs more is bought less: distortion up, rate down, for every seed."""
    settings = [name for name, _ in scores.settings("beta-vae")]
    weak, strong = (
        {m: scores.of_method(m, "beta-vae", s) for m in ("distortion", "rate")} for s in (settings[0], settings[-1])
    )
    worse = weak["distortion"].max() < strong["distortion"].min()
    less = weak["rate"].min() > strong["rate"].max()
    said = "as the theory says" if worse and less else "which is not what the theory says"
    slope = (np.median(strong["distortion"]) - np.median(weak["distortion"])) / (
        np.median(weak["rate"]) - np.median(strong["rate"])
    )
    return (
        f"From {settings[0]} to {settings[-1]} the distortion of beta-VAE goes from {np.median(weak['distortion']):.1f} to "
        f"{np.median(strong['distortion']):.1f} nats and its rate from {np.median(weak['rate']):.1f} to {np.median(strong['rate']):.1f}, "
        f"{'without overlap of the seeds' if worse and less else 'with overlap of the seeds'}, {said}: at the optimum beta is the slope "
        f"of the curve, and between the two settings {slope:.1f} nats of distortion are paid for a nat of rate."
    )


def _explained(scores: Scores) -> str:
    """How much of each score is method, setting and seed."""
    parts = [
        (name, found) for name in METRICS if name in scores.columns and (found := scores.variance(name)) is not None
    ]
    said = ", ".join(f"{name} {one:.0%} / {both - one:.0%} / {1 - both:.0%}" for name, (one, both) in parts)
    return f"Variance explained by method / added by its setting / left to the seed: {said}."
