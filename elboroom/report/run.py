"""The page of a run."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup
from pydantic import BaseModel

from elboroom.core.calls import asked
from elboroom.core.locks import one_process
from elboroom.core.progress import stage
from elboroom.evaluate.verdicts import of_metrics
from elboroom.explorer.frames import frames, module
from elboroom.plots.curves import series
from elboroom.plots.figures import gallery
from elboroom.report import numbers
from elboroom.report.chart import Panel
from elboroom.report.frame import Framed, framed
from elboroom.report.page import page_at, write_page
from elboroom.runs.run import Run
from elboroom.training.spec import Spec


@asked
def write_report(run: Run, path: str | Path | None = None, n: int = 10_000) -> Path:
    """Writes the report of a run, by default as report.html in its folder, and its figures beside it in figures/.

    Numbers are those of metrics.json; where there are none, they are measured. n is how many codes and samples are drawn.
    """
    out = page_at(path, run.folder)
    with one_process(run.folder):
        return _written(run, out, n)


def _written(run: Run, out: Path, n: int) -> Path:
    spec = run.spec
    with stage("numbers"):
        metrics = numbers.measured(run)
    exhibits = _exhibits(run, n)
    with stage("sliders"):
        moved = frames(run) if run.latent else None
    return write_page(
        out,
        "run.html",
        title=spec.title,
        data=Path(spec.about.name).name or spec.about.name,
        summary=_summary(spec),
        card=spec.card,
        facts=_facts(run),
        headline=numbers.headline(metrics),
        verdicts=of_metrics(metrics),
        exhibits=exhibits,
        frames=moved,
        sliders=Markup(module()),
        measured=numbers.table(metrics),
        scores=numbers.score_table(metrics),
        specification={name: options for name, options in _specification(spec).items() if options},
        commands=_commands(run),
        notes=_notes(spec),
        version=spec.versions.get("elboroom", ""),
    )


def _exhibits(run: Run, n: int) -> list[Framed]:
    """The figures, saved and framed; curves can be pointed at."""
    folder, found = run.folder / "figures", []
    with stage("figures"):
        for exhibit in gallery(run, n):
            exhibit.save(folder)
            panels = [Panel.of(s.thinned()) for s in series(run.log)] if exhibit.name == "curves" else []
            found.append(framed(exhibit, folder, scale=0.8, panels=panels))
    return found


def _summary(spec: Spec) -> str:
    """What the method is, and what was chosen for this run."""
    chosen = " and ".join(f"{axis} {name}" for axis, name in spec.axes.items())
    return spec.card.summary + (f" Here with {chosen}." if chosen else "")


def _facts(run: Run) -> list[str]:
    spec, about = run.spec, run.spec.about
    shape = f"{about.kind} {' × '.join(map(str, about.shape))}"  # noqa: RUF001
    return [
        f"{run.step:,} steps",
        f"batch {spec.fit.batch_size}",
        f"seed {spec.fit.seed}",
        f"{run.latent} latent dimension{'s' * (run.latent != 1)}",
        f"{run.parameters:,} parameters",
        f"{about.levels:,} kinds of token" if about.kind == "tokens" else shape,
        f"{about.n:,} training examples",
        *([f"recipe {Path(spec.recipe).stem}"] if spec.recipe else []),
        *([f"given {', '.join(run.given)}"] if run.given else []),
    ]


@dataclass(frozen=True)
class Option:
    """A value of a specification, with what it means."""

    name: str
    value: str
    departs: bool  # from its default
    meaning: str = ""

    @classmethod
    def of(cls, name: str, value: Any, default: Any, meaning: str) -> Option:
        """As it is shown."""
        shown = "—" if value in (None, "") else f"{value:g}" if isinstance(value, float) else str(value)
        return cls(name.replace("_", " "), shown, bool(value != default), meaning)


def _specification(spec: Spec) -> dict[str, list[Option]]:
    data = {
        "source": spec.data["source"],
        "size": spec.data["size"],
        "splits": ", ".join(f"{name} {count:,}" for name, count in spec.data["splits"].items()),
        "hash": spec.data["hash"],
    }
    kind, options = spec.about.kind, spec.options
    return {
        "Method": [Option.of(o.name, options[o.name], o.default_for(kind), o.help) for o in spec.card.options],
        "Model": _fields(spec.model),
        "Training": _fields(spec.fit),
        "Data": [Option.of(name, value, value, "") for name, value in data.items() if value is not None],
    }


def _fields(model: BaseModel) -> list[Option]:
    fields = type(model).model_fields
    return [Option.of(name, value, fields[name].default, fields[name].description or "") for name, value in model]


def _commands(run: Run) -> list[str]:
    """What makes the run again."""
    spec, folder = run.spec, shlex.quote(run.folder.name)
    if spec.until <= spec.fit.steps:
        return [spec.command]
    return [f"{spec.command} --out {folder}", f"elbo resume {folder} --steps {spec.until - spec.fit.steps}"]


def _notes(spec: Spec) -> list[str]:
    notes = [
        f"Seed {spec.fit.seed}, {spec.fit.threads} thread{'s' * (spec.fit.threads != 1)}: on the same processor with the "
        "same versions this gives the same weights, bit for bit.",
        "Versions: " + ", ".join(f"{name} {text}" for name, text in spec.versions.items()) + ".",
    ]
    if spec.own:
        notes.append(
            f"This run used your own {' and '.join(spec.own)}, handed in from Python; of data the run keeps a copy where it is "
            "small, and --data FILE hands it in again."
        )
    if spec.recipe:
        notes.append(f"Options that were not said are those of the recipe {spec.recipe}; all of them stand above.")
    if spec.warm:
        notes.append(f"It started from the weights of {spec.warm}.")
    return notes
