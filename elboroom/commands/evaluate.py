"""elbo eval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from elboroom.commands.output import Folders, Json, Seed, SplitName, print_json, print_table
from elboroom.core.problem import Problem, unknown

if TYPE_CHECKING:
    from elboroom.evaluate.registry import Metric


def evaluate(
    ctx: typer.Context,
    folders: Folders,
    metrics: Annotated[
        str,
        typer.Option(
            "--metrics",
            help="likelihood, all, or names of metrics, comma-separated; text measures generated sentences, probe predicts the "
            "first label from few examples; all leaves out downstream, which predicts every factor from 10 to 10,000 "
            "labels and takes minutes; udr needs several runs",
        ),
    ] = "likelihood",
    mode: Annotated[
        str, typer.Option("--mode", help="mode of the metrics that have modes; for downstream: boosting or logistic")
    ] = "dlib",
    representation: Annotated[str, typer.Option("--representation", help="mean or sampled")] = "mean",
    interval: Annotated[
        bool, typer.Option("--interval", help="add intervals: compute every metric several times")
    ] = False,
    smaller: Annotated[
        bool, typer.Option("--smaller", help="allow data with fewer rows than a protocol needs")
    ] = False,
    split: SplitName = None,
    samples: Annotated[int, typer.Option("--samples", min=1, help="K of the importance-weighted bound")] = 100,
    most: Annotated[int, typer.Option("--most", min=2, help="largest number of examples")] = 10_000,
    iw_most: Annotated[int, typer.Option("--iw-most", min=0, help="examples for IW-K; 0 is all")] = 1000,
    proposal: Annotated[
        str, typer.Option("--proposal", help="gaussian or flow: fitted to a q(z|x) without a density")
    ] = "gaussian",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Measure a run: ELBO and its parts, IW-K, active units, mutual information; with --metrics, its codes too."""
    from elboroom.evaluate.likelihood.proposal import NAMES
    from elboroom.evaluate.registry import chosen
    from elboroom.families.fitted import is_sampled
    from elboroom.runs import load, measure

    names = [name.strip() for name in metrics.split(",") if name.strip()]
    if proposal not in NAMES:
        raise unknown("proposal", proposal, NAMES)
    asked = chosen(names, has_sentences=True)
    options = ctx.params | {"iw_most": iw_most or None}
    _refuse_idle(ctx, asked)
    if len(asked) == 1 and asked[0].needs == "several runs":
        results = measure.agreement([load(folder) for folder in folders], asked[0].name)
        found = {name: result.to_json() for name, result in results.items()}
        return print_json(found) if json else _table({"run": {"method": asked[0].name, "step": 0}} | found)
    runs, everything = {folder: load(folder) for folder in folders}, {}
    if _was_said(ctx, "proposal") and not any(is_sampled(run.model) for run in runs.values()):
        raise Problem("--proposal has no effect here; remove it (q(z|x) has a density or is a point)")
    for folder, run in runs.items():
        content = everything[str(folder)] = measure.metrics(run, names, **options)
        if not json:
            _table(content, f"{folder}: ")
    if json:
        print_json(everything if len(folders) > 1 else everything[str(folders[0])])


def _refuse_idle(ctx: typer.Context, asked: list[Metric]) -> None:
    """Refuses, in a sentence, an option that none of the metrics asked for would read."""
    read = {option for entry in asked for option in entry.options} | {"folders", "metrics", "json"}
    for option in ctx.params:
        if option not in read and _was_said(ctx, option):
            names = ",".join(sorted(ctx.params["metrics"].split(",")))
            raise Problem(f"--{option.replace('_', '-')} has no effect with --metrics {names}; remove it")


def _was_said(ctx: typer.Context, option: str) -> bool:
    source = ctx.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def _table(found: dict[str, Any], title: str = "") -> None:
    from elboroom.evaluate.result import Result

    rows: list[list[object]] = []
    shown = {name: entry for name, entry in found.items() if name not in ("run", "rate_per_dim")}  # the rate again
    results = {name: Result.from_json(name, entry) for name, entry in shown.items()}
    settings: dict[str, Any] = next((r.settings for r in results.values() if "data" in r.settings), {})
    for name, result in results.items():
        value = "—" if result.value is None else f"{round(result.value, 4) + 0.0:.4f}".rstrip("0").rstrip(".")
        errors = ", ".join(f"± {e:.2g} {kind.replace('_', ' ')}" for kind, e in result.errors.items())
        if result.interval:
            errors = f"{result.interval['low']:.3f} to {result.interval['high']:.3f}"
        ceiling, how = result.parts.get("ceiling"), result.estimator
        unit = result.unit + (f" (at most {ceiling:.2f})" if isinstance(ceiling, float) else "")
        n = result.settings.get("n", settings.get("n"))
        if "fitted" in how and result.value is not None and "effective_samples" in result.parts:
            how += f", {result.parts['effective_samples']:.1f} effective of {result.settings['K']}"
        how += f", {n:,} row{'s' * (n != 1)}" if result.value is not None and n != settings.get("n") else ""
        rows.append([name.replace("_", " "), value, errors or result.reason, unit, how])
    run, on = found["run"], ""
    if settings:
        on = f", on {settings['n']:,} rows of {settings['split']} of {settings['data']}"
    print_table(
        ["measure", "value", "error or interval", "unit", "estimator"],
        rows,
        f"{title}{run.get('title', run['method'])}, step {run['step']:,}{on}",
    )
