"""Scores: the numbers of a study as one column a metric over its runs, and what is computed from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elboroom.core.problem import Problem, unknown
from elboroom.evaluate.disentanglement import metrics
from elboroom.evaluate.disentanglement.agreement import Ranks, rank_agreement, selection_regret, variance_explained
from elboroom.studies.analysis.summary import best_of, mixed, place
from elboroom.studies.analysis.table import Row

Floats = NDArray[np.float64]
HEAD = ("run", "method", "setting", "strength", "seed")
EVIDENCE = ("elbo", "distortion", "rate", "log_likelihood", "mutual_information", "active_units")
FIRST = ("mig", "dci", "factor-vae", "beta-vae", "sap", "elbo", "distortion")  # by which runs are called best, if there
RULES = (
    "elbo",
    "distortion",
    "rate",
    "total-correlation",
    "gaussian-tc",
    "udr",
)  # by which runs are picked, no factor known


@dataclass(frozen=True)
class Scores:
    """The runs of a study on one data set, and their numbers: one column a metric, NaN where a run has none."""

    data: str
    runs: tuple[Row, ...]  # run, method, setting, strength, seed
    columns: dict[str, Floats]  # metric -> (runs,)
    units: dict[str, str]
    estimators: dict[str, str]
    left_out: tuple[str, ...] = ()  # why a metric has no column

    @classmethod
    def of(cls, rows: Iterable[Row], data: str) -> Scores:
        """The rows of one data set, at one size; a metric that was measured in two ways is left out."""
        here = [row for row in rows if place(row) == data and row["value"] is not None]
        reasons = {metric: reason for (_, metric), reason in mixed(here).items()}
        kept = [row for row in here if row["metric"] not in reasons]
        if not kept:
            raise Problem(f"no run on {data} is finished")
        runs = {row["run"]: {key: row[key] for key in HEAD} for row in kept}
        at = {name: i for i, name in enumerate(runs)}
        columns: dict[str, Floats] = {}
        for row in kept:
            columns.setdefault(row["metric"], np.full(len(runs), np.nan))[at[row["run"]]] = row["value"]
        units = {row["metric"]: row["unit"] for row in kept}
        estimators = {row["metric"]: row["estimator"] for row in kept}
        return cls(data, tuple(runs.values()), columns, units, estimators, tuple(reasons.values()))

    @property
    def methods(self) -> list[str]:
        """In the order of the study."""
        return list(dict.fromkeys(run["method"] for run in self.runs))

    @cached_property
    def supervised(self) -> list[str]:
        """Metrics that know the factors."""
        known = {name: entry for name, entry in metrics().items() if name in self.columns}
        return [name for name, entry in known.items() if entry.need(self.estimators[name]) != "codes"]

    @cached_property
    def unsupervised(self) -> list[str]:
        """What can be had without factors."""
        blind = [name for name, entry in metrics().items() if entry.need(entry.modes[0]) == "codes"]
        return [name for name in (*EVIDENCE, *blind, "udr") if name in self.columns and self.varies(name)]

    @property
    def downstream(self) -> list[str]:
        """Accuracies by number of labels, then efficiencies."""
        found = [name for name in self.columns if name.startswith(("downstream-", "efficiency-"))]
        return sorted(found, key=lambda name: (name.split("-")[0], int(name.split("-")[1])))

    def varies(self, metric: str) -> bool:
        """Whether a metric tells runs apart."""
        known = self.columns[metric][np.isfinite(self.columns[metric])]
        return len(known) > 1 and bool(np.ptp(known) > 0)

    def headline(self, asked: str | None = None) -> str:
        """The metric by which runs are called best."""
        if asked is not None:
            if asked not in self.columns:
                raise unknown("metric", asked, self.columns, "this table")
            if best_of(asked) is None:
                raise Problem(f"{asked} has no better direction, so it cannot choose the best run")
            return asked
        return next((name for name in (*FIRST, *self.columns) if name in self.columns and best_of(name)), "")

    def best(self, metric: str, method: str | None = None) -> Row | None:
        """The run that is best by a metric, among all or those of a method."""
        if best_of(metric) is None:
            return None
        signed = -self.columns[metric] if best_of(metric) is min else self.columns[metric]
        known = [i for i, run in enumerate(self.runs) if method in (None, run["method"]) and np.isfinite(signed[i])]
        return self.runs[max(known, key=lambda i: signed[i])] if known else None

    def of_method(self, metric: str, method: str, setting: str | None = None) -> Floats:
        """The known values of a metric for one method, or one of its settings."""
        chosen = [run["method"] == method and setting in (None, run["setting"]) for run in self.runs]
        column: Floats = self.columns[metric][np.array(chosen)]
        known: Floats = column[np.isfinite(column)]
        return known

    def settings(self, method: str) -> list[tuple[str, float | None]]:
        """The settings of a method with their strengths, weakest first."""
        found = {run["setting"]: run["strength"] for run in self.runs if run["method"] == method}
        return sorted(found.items(), key=lambda pair: (pair[1] is None, pair[1] or 0.0))

    def correlation(self, rows: Sequence[str], columns: Sequence[str], permutations: int = 1000) -> Ranks:
        """Spearman's rank correlation of two sets of metrics over the runs."""
        left, right = ({name: self.columns[name] for name in names} for names in (rows, columns))
        return rank_agreement(left, right, permutations=permutations)

    def variance(self, metric: str) -> tuple[float, float] | None:
        """The shares of a metric's variance that the method explains, and that method and setting explain together."""
        methods, cells = ([run[key] for run in self.runs] for key in ("method", "setting"))
        one = variance_explained(self.columns[metric], methods)
        both = variance_explained(self.columns[metric], methods, cells)
        return None if one is None or both is None else (one, both)

    def selection(self) -> list[Row]:
        """What each rule that knows no factor would pick, and the rank of that run by each metric."""
        found = []
        for rule in RULES:
            if rule in self.columns and self.varies(rule):
                lower = best_of(rule) is not max  # of the rate, of which neither is better, the lowest is picked
                values = self.columns[rule]
                pick = int(np.nanargmin(values) if lower else np.nanargmax(values))
                row: dict[str, Any] = {
                    "rule": f"{'lowest' if lower else 'highest'} {rule}",
                    "picks": self.runs[pick]["run"],
                }
                for metric in self.supervised:
                    if np.isfinite(self.columns[metric][pick]):
                        regret = selection_regret(self.columns[metric], values, lower)
                        row[metric] = f"{regret.rank:g} of {regret.n}"
                found.append(row)
        return found
