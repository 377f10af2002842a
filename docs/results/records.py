"""Runs behind a page of results: a plan is trained into runs/, measured, and kept as small records beside the page.

A record is spec.json, metrics.json and the log thinned to 200 lines; a page is made from records alone.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import made

import elboroom
from elboroom.commands.progress import Bar
from elboroom.runs.run import Run

ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).parent / "runs"
LINES = 200


@dataclass(frozen=True)
class Plan:
    """One run of a page."""

    name: str
    method: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where it is trained."""
        return ROOT / "runs" / self.name

    def finished(self) -> bool:
        """Whether its record is kept, and is of the defaults of today."""
        kept = KEPT / self.name
        return (kept / "metrics.json").exists() and not outdated(json.loads((kept / "spec.json").read_text()))


def outdated(spec: dict[str, Any]) -> bool:
    """Whether a run on text is of the time before trunk c, when Adam too began with the small weights of SGD."""
    small = spec["model"].get("trunk") == "a" and spec["fit"].get("optimiser", "adam") != "sgd"
    return small and spec["data"]["about"]["kind"] == "tokens"


def train(plan: Plan, data: str, **common: Any) -> Run:
    """The trained run: from its folder, resumed there, or from the start."""
    if (plan.folder / "spec.json").exists():
        try:
            return elboroom.resume(plan.folder, bar=Bar)
        except elboroom.Problem as problem:
            if "complete" not in str(problem):
                raise
            return elboroom.load(plan.folder)
    return elboroom.train(plan.method, data, plan.folder, bar=Bar, **{**common, **plan.options})


def keep(run: Run, name: str) -> None:
    """Writes the record of a measured run."""
    folder = KEPT / name
    folder.mkdir(parents=True, exist_ok=True)
    for file in ("spec.json", "metrics.json", "timing.json", "sentences.json", "edits.json"):
        if (run.folder / file).exists():  # where it was trained is nobody's business
            (folder / file).write_text((run.folder / file).read_text().replace(f"{ROOT}/", ""))
    (folder / made.FILE).write_text(json.dumps(made.here(), indent=1) + "\n")
    log = run.log
    step = max(1, len(log) // LINES)
    thin = log[::step] if log[-1] in log[::step] else [*log[::step], log[-1]]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in thin))


def records(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The records that are there, by name: spec, metrics, log."""
    found = {}
    for name in names:
        folder = KEPT / name
        if (folder / "metrics.json").exists():
            found[name] = {
                "spec": json.loads((folder / "spec.json").read_text()),
                "metrics": json.loads((folder / "metrics.json").read_text()),
                "log": [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()],
            }
    return found


def publish(page: str, text: str, names: Iterable[str]) -> None:
    """Writes a page, with how each of its rows was made at its end."""
    text = text.rstrip("\n") + "\n" + made.section(page, names)
    (KEPT.parent / f"{page}.md").write_text(text, encoding="utf-8")


def chosen(plans: list[Plan], names: list[str]) -> list[Plan]:
    """The plans of these names, in their order; all of them where none is named."""
    by_name = {plan.name: plan for plan in plans}
    return [by_name[name] for name in names] if names else plans


def work(plans: list[Plan], measure: Callable[[Run], None], data: str, **common: Any) -> None:
    """Trains, measures and keeps every plan that has no record yet and that no other process is at."""
    for plan in plans:
        with claimed(plan) as mine:
            if mine and not plan.finished():
                run = train(plan, data, **common)
                measure(run)
                keep(run, plan.name)


@contextmanager
def claimed(plan: Plan) -> Iterator[bool]:
    """Whether this process alone is at the plan; its claim ends with it, however it ends."""
    plan.folder.parent.mkdir(parents=True, exist_ok=True)
    with plan.folder.with_name(f"{plan.name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def again(plans: list[Plan], measure: Callable[[Run], None]) -> None:
    """Measures more of the plans that have a record, and keeps it; their runs must still be there."""
    for plan in plans:
        if plan.finished():
            run = elboroom.load(plan.folder)
            measure(run)
            keep(run, plan.name)
