"""study.md from the kept table: medians by setting, and whether beta does what the theory says."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from elboroom.studies.analysis.scores import Scores
from elboroom.studies.analysis.summary import markdown, summary, wide

METRICS = ("beta-vae", "factor-vae", "mig", "dci", "modularity", "gaussian-tc", "mean-mi")
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
    runs, steps = len(scores.runs), json.loads(rows[0]["options"])["steps"]
    return f"""# A study: four methods, two strengths, three seeds

`elbo study run docs/results/study.toml`: {runs} runs on dSprites of {steps:,} steps of batch 64, burgess nets,
10 dimensions, Adam 5e-4, one thread each; {hours:.1f} hours of a worker with all measuring. Every number below is a median with
its quartiles, `median [q25, q75]`; estimators and settings are in the table ([study/table.parquet](study/table.parquet)).

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
    rows = [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
    return [row | {"unit": row["unit"] or "", "setting": row["setting"] or ""} for row in rows]


def _theory(scores: Scores) -> str:
    """A nat of rate that costs more is bought less: distortion up, rate down, for every seed."""
    weak, *_, strong = (setting for setting, _ in scores.settings("beta-vae"))
    d, e = (scores.of_method("distortion", "beta-vae", setting) for setting in (weak, strong))
    r, s = (scores.of_method("rate", "beta-vae", setting) for setting in (weak, strong))
    is_so = d.max() < e.min() and r.min() > s.max()
    said = "for every seed, as the theory says" if is_so else "but not for every seed, as the theory would have it"
    before, after, high, low = (float(np.median(values)) for values in (d, e, r, s))
    return (
        f"From {weak} to {strong} the distortion of beta-VAE goes from {before:.1f} to {after:.1f} nats and its rate from "
        f"{high:.1f} to {low:.1f}, {said}. At the optimum beta is the slope of the curve; between the two settings "
        f"{(after - before) / (high - low):.1f} nats of distortion are paid for a nat of rate."
    )


def _explained(scores: Scores) -> str:
    """How much of each score is method, setting and seed."""
    found = {name: scores.variance(name) for name in METRICS if name in scores.columns}
    parts = {name: shares for name, shares in found.items() if shares is not None}
    said = ", ".join(f"{name} {one:.0%} / {both - one:.0%} / {1 - both:.0%}" for name, (one, both) in parts.items())
    return f"Variance explained by method / added by its setting / left to the seed: {said}."
